// SPDX-License-Identifier: Apache-2.0

package containers

import (
	"fmt"
	"strings"

	"rukpak.io/rukpak/internal/registry/docker"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/registry/tomlfile"
)

// Write makes registries.conf, certs.d and auth.json, and says what they cannot
// express.
func Write(d *rules.Document) (rules.Files, []rules.Note, error) {
	w := &writer{notes: []rules.Note{}}
	for i := range d.Rules {
		w.rule(&d.Rules[i])
	}
	files := rules.Files{}
	if w.text.Len() > 0 {
		files["registries.conf"] = []byte(w.text.String())
	}
	docker.WriteCerts(d, "certs.d", files, &w.notes)
	auth, err := docker.WriteConfig(d, docker.Containers, &w.notes)
	if err != nil {
		return nil, nil, err
	}
	if auth != nil {
		files["auth.json"] = auth
	}
	return files, w.notes, nil
}

type writer struct {
	text  strings.Builder
	notes []rules.Note
}

func (w *writer) lose(from, format string, args ...any) {
	w.notes = append(w.notes, rules.Note{Where: from, What: fmt.Sprintf(format, args...)})
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.text, format+"\n", args...) }

func (w *writer) rule(r *rules.Rule) {
	for _, what := range r.Primary.Extras() {
		w.lose(r.From, "there is no place for %s in registries.conf", what)
	}
	if r.Prefix == "*" {
		w.lose(r.From, "the rule is lost: registries.conf has no rule about every host")
		return
	}
	mirrors, primary, access := r.Mirrors, r.Rewrite, r.Primary
	if r.MirrorOnly && len(mirrors) > 0 {
		mirrors, primary, access = w.withoutPrimary(r)
	}
	if !r.Blocked && primary == "" && len(mirrors) == 0 && !access.PlainHTTP && !access.SkipVerify {
		return // it says no more than certs.d and auth.json do
	}
	if w.text.Len() > 0 {
		w.line("")
	}
	w.line("[[registry]]")
	w.line("prefix = %s", tomlfile.Quote(r.Prefix))
	switch {
	case primary != "":
		w.line("location = %s", tomlfile.Quote(primary))
	case !strings.HasPrefix(r.Prefix, "*."):
		w.line("location = %s", tomlfile.Quote(r.Prefix))
	}
	if r.Blocked {
		w.line("blocked = true")
	}
	w.insecure(r.From, &access)
	for i := range mirrors {
		w.mirror(&mirrors[i])
	}
}

// withoutPrimary puts the last mirror where the primary would be: the format
// always asks the primary in the end.
func (w *writer) withoutPrimary(r *rules.Rule) ([]rules.Mirror, string, rules.Access) {
	last := r.Mirrors[len(r.Mirrors)-1]
	location, ok := w.place(&last)
	if !ok {
		location = last.Location
	}
	if last.For != rules.All {
		w.lose(last.From, "the mirror is asked for all references: it takes the place of the primary, which is never asked, and for that the format makes no difference")
	}
	for _, what := range last.Extras() {
		w.lose(last.From, "there is no place for %s in registries.conf", what)
	}
	return r.Mirrors[:len(r.Mirrors)-1], location, last.Access
}

func (w *writer) insecure(from string, a *rules.Access) {
	if !a.PlainHTTP && !a.SkipVerify {
		return
	}
	if a.PlainHTTP != a.SkipVerify {
		w.lose(from, "insecure means both in registries.conf: HTTPS without verification, then plain HTTP")
	}
	w.line("insecure = true")
}

// place is the location of a mirror with the path of its API, if that can be
// said.
func (w *writer) place(m *rules.Mirror) (string, bool) {
	path, ok := strings.CutPrefix(m.APIPath, "/v2")
	if m.APIPath == "" || m.APIPath == "/v2" {
		return m.Location, true
	}
	host, rest := rules.Split(m.Location)
	if !ok || path[0] != '/' {
		w.lose(m.From, "the path %s of its API is lost: registries.conf has /v2 only", m.APIPath)
		return "", false
	}
	return strings.TrimSuffix(host+path+"/"+rest, "/"), true
}

func (w *writer) mirror(m *rules.Mirror) {
	location, ok := w.place(m)
	if !ok {
		return
	}
	w.line("")
	w.line("[[registry.mirror]]")
	w.line("location = %s", tomlfile.Quote(location))
	w.insecure(m.From, &m.Access)
	switch m.For {
	case rules.Digests:
		w.line(`pull-from-mirror = "digest-only"`)
	case rules.Tags:
		w.line(`pull-from-mirror = "tag-only"`)
	}
	for _, what := range m.Extras() {
		w.lose(m.From, "there is no place for %s in registries.conf", what)
	}
}
