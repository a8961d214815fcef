// SPDX-License-Identifier: Apache-2.0

package containers

import (
	"strings"

	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/registry/tomlfile"
)

var topKeys = []string{
	"registry", "unqualified-search-registries", "credential-helpers", "short-name-mode", "aliases",
	"additional-layer-store-auth-helper", "registries",
}

// ParseConf reads one registries.conf, or one drop-in file, into a document. Its
// error names file and line of each fault.
func ParseConf(into *rules.Document, file string, data []byte, dropIn bool) error {
	root, err := tomlfile.Parse(file, data)
	if err != nil {
		return err
	}
	r := &tomlfile.Reader{File: file}
	r.Known(root, topKeys...)
	old := r.Table(root, "registries")
	current := r.Tables(root, "registry")
	switch {
	case old != nil && (len(current) > 0 || root.Get("unqualified-search-registries") != nil):
		r.Fail(old.Line, "the file mixes version 1 ([registries.search] and the like) with version 2 ([[registry]]); keep one")
	case old != nil && dropIn:
		r.Fail(old.Line, "a drop-in file must be of version 2; it has [registries]")
	case old != nil:
		add(into, version1(r, old))
	}
	globals(r, root)
	var found []rules.Rule
	var list []located
	for _, table := range current {
		before := len(r.Notes)
		rule, ok := registry(r, table)
		r.About(rule.From, before)
		if ok {
			list = append(list, located{rule, table.Line})
		}
	}
	contradictions(r, list)
	for _, one := range list {
		found = append(found, one.Rule)
	}
	add(into, found)
	for _, note := range r.Notes {
		into.NoteOn(note.Rule, r.At(note.Line), note.Text)
	}
	return r.Err()
}

// located is a rule and its line.
type located struct {
	rules.Rule
	line int
}

// contradictions finds tables of a file that say different things of one
// location, also those that are passed over in the end.
func contradictions(r *tomlfile.Reader, list []located) {
	first := map[string]located{}
	for _, one := range list {
		location := one.Rewrite
		if location == "" {
			if strings.HasPrefix(one.Prefix, "*") {
				continue
			}
			location = one.Prefix
		}
		before, known := first[location]
		if !known {
			first[location] = one
			continue
		}
		if before.Primary.PlainHTTP != one.Primary.PlainHTTP || before.Blocked != one.Blocked {
			r.Fail(one.line, "the location %q stands in line %d, too, with other values of insecure or blocked", location, before.line)
		}
	}
}

// globals notes what is not about how a registry is reached.
func globals(r *tomlfile.Reader, root *tomlfile.Table) {
	for _, host := range r.Strings(root, "unqualified-search-registries") {
		if strings.Contains(host, "/") || host == "" {
			r.Fail(root.Get("unqualified-search-registries").Line, "unqualified-search-registries: %q is not a host", host)
		}
	}
	if mode, line := r.String(root, "short-name-mode"); root.Get("short-name-mode") != nil {
		switch mode {
		case "", "enforcing", "permissive", "disabled":
		default:
			r.Fail(line, "short-name-mode is %q; it must be enforcing, permissive or disabled", mode)
		}
	}
	for _, name := range []string{"unqualified-search-registries", "short-name-mode", "aliases"} {
		if v := root.Get(name); v != nil && !(v.Kind == tomlfile.Array && len(v.Items) == 0) {
			r.Note(v.Line, "%s is left out: references without a host are Docker's here, as in a Pod", name)
		}
	}
	if v := root.Get("additional-layer-store-auth-helper"); v != nil {
		r.Note(v.Line, "additional-layer-store-auth-helper is left out: it is about storage")
	}
	for _, helper := range r.Strings(root, "credential-helpers") {
		if helper != "containers-auth.json" {
			r.Note(root.Get("credential-helpers").Line, "the credential helper %q is left out: only auth.json is read", helper)
		}
	}
}

// version1 reads the old form, which knows no mirrors.
func version1(r *tomlfile.Reader, old *tomlfile.Table) []rules.Rule {
	r.Known(old, "search", "insecure", "block")
	var list []rules.Rule
	if search := r.Table(old, "search"); search != nil && len(r.Strings(search, "registries")) > 0 {
		r.Note(search.Line, "registries.search is left out: references without a host are Docker's here, as in a Pod")
	}
	byPrefix := map[string]int{}
	each := func(name string, set func(*rules.Rule)) {
		table := r.Table(old, name)
		if table == nil {
			return
		}
		for _, place := range r.Strings(table, "registries") {
			place, ok := location(r, table.Line, "registries."+name, place)
			if !ok {
				continue
			}
			at, known := byPrefix[place]
			if !known {
				at = len(list)
				byPrefix[place] = at
				list = append(list, rules.Rule{Prefix: place, From: r.At(table.Line)})
			}
			set(&list[at])
		}
	}
	each("insecure", func(rule *rules.Rule) { insecure(&rule.Primary) })
	each("block", func(rule *rules.Rule) { rule.Blocked = true })
	return list
}

// insecure means both in this format: HTTPS without verification, then plain
// HTTP.
func insecure(a *rules.Access) { a.PlainHTTP, a.SkipVerify = true, true }

// registry reads one [[registry]].
func registry(r *tomlfile.Reader, table *tomlfile.Table) (rules.Rule, bool) {
	r.Known(table, "prefix", "location", "insecure", "blocked", "mirror", "mirror-by-digest-only", "pull-from-mirror")
	rule := rules.Rule{From: r.At(table.Line)}
	ok := false
	if rule.Prefix, rule.Rewrite, ok = place(r, table); !ok {
		return rule, false
	}
	if set, _ := r.Bool(table, "insecure"); set {
		insecure(&rule.Primary)
	}
	rule.Blocked, _ = r.Bool(table, "blocked")
	if v := table.Get("pull-from-mirror"); v != nil {
		r.Fail(v.Line, "pull-from-mirror belongs into [[registry.mirror]], not into [[registry]]")
	}
	byDigest, _ := r.Bool(table, "mirror-by-digest-only")
	for _, one := range r.Tables(table, "mirror") {
		if m, ok := mirror(r, one, byDigest); ok {
			rule.Mirrors = append(rule.Mirrors, m)
		}
	}
	return rule, true
}

// place reads what a table is about, and where that is if it is elsewhere.
func place(r *tomlfile.Reader, table *tomlfile.Table) (about, rewrite string, ok bool) {
	text, line := r.String(table, "location")
	at, ok := "", true
	if text != "" {
		at, ok = location(r, line, "location", text)
	}
	prefixText, prefixLine := r.String(table, "prefix")
	switch {
	case prefixText != "":
		good := false
		if about, good = prefix(r, prefixLine, prefixText); !good || !ok {
			return "", "", false
		}
	case !ok:
		return "", "", false
	case at == "":
		r.Fail(table.Line, "a [[registry]] needs a prefix or a location")
		return "", "", false
	default:
		return at, "", true
	}
	if at == "" && !strings.HasPrefix(about, "*.") {
		r.Fail(table.Line, "the prefix %q needs a location: only one with a wildcard does without", about)
		return "", "", false
	}
	if at != about {
		rewrite = at
	}
	return about, rewrite, true
}

// mirror reads one [[registry.mirror]].
func mirror(r *tomlfile.Reader, table *tomlfile.Table, byDigest bool) (rules.Mirror, bool) {
	r.Known(table, "location", "insecure", "pull-from-mirror")
	m := rules.Mirror{From: r.At(table.Line)}
	text, line := r.String(table, "location")
	if text == "" {
		r.Fail(table.Line, "a mirror needs a location")
		return m, false
	}
	ok := false
	if m.Location, ok = location(r, line, "location", text); !ok {
		return m, false
	}
	if set, _ := r.Bool(table, "insecure"); set {
		insecure(&m.Access)
	}
	scope, line := r.String(table, "pull-from-mirror")
	if scope != "" && byDigest {
		r.Fail(line, "pull-from-mirror and mirror-by-digest-only exclude one another")
	}
	if byDigest {
		m.For = rules.Digests
	}
	switch scope {
	case "", "all":
	case "digest-only":
		m.For = rules.Digests
	case "tag-only":
		m.For = rules.Tags
	default:
		r.Fail(line, "pull-from-mirror is %q; it must be all, digest-only or tag-only", scope)
		return m, false
	}
	return m, true
}

// location checks "host[:port][/path]".
func location(r *tomlfile.Reader, line int, name, text string) (string, bool) {
	text = strings.TrimRight(text, "/")
	switch {
	case strings.Contains(text, "://"):
		r.Fail(line, "%s %q has a scheme; write it without, and say insecure = true for plain HTTP", name, text)
	case text == "" || strings.HasPrefix(text, "/"):
		r.Fail(line, "%s is empty or begins with a slash; it must begin with a host", name)
	case strings.ContainsAny(text, " \t\r\n*"):
		r.Fail(line, "%s %q holds a space or a wildcard", name, text)
	default:
		return text, true
	}
	return "", false
}

// prefix checks what a table is about.
func prefix(r *tomlfile.Reader, line int, text string) (string, bool) {
	domain, wild := strings.CutPrefix(text, "*.")
	if !wild {
		return location(r, line, "prefix", text)
	}
	domain, ok := location(r, line, "prefix", domain)
	if ok && strings.ContainsAny(domain, "/:@") {
		r.Fail(line, "the prefix %q has a wildcard and more than a domain", text)
		return "", false
	}
	return "*." + domain, ok
}
