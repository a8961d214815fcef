// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"bytes"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rukpak.io/rukpak/internal/registry/docker"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/registry/tomlfile"
)

var hostKeys = []string{"capabilities", "ca", "client", "skip_verify", "override_path", "header", "dial_timeout"}

// ParseHosts reads the hosts.toml of one host. Its error names file and line of
// each fault; containerd logs such a fault and goes on without mirrors.
func ParseHosts(into *rules.Document, host, file string, data []byte) (rules.Rule, error) {
	rule := rules.Rule{Prefix: host, From: file}
	root, err := tomlfile.Parse(file, data)
	if err != nil {
		return rule, err
	}
	p := &parser{Reader: tomlfile.Reader{File: file}, dir: filepath.Dir(file), prefix: host}
	p.Known(root, append([]string{"server", "host"}, hostKeys...)...)
	if hosts := p.Table(root, "host"); hosts != nil {
		for _, key := range hosts.Keys {
			p.host(&rule, key)
		}
	}
	p.server(&rule, root)
	for _, note := range p.Notes {
		into.NoteOn(rule.From, p.At(note.Line), note.Text)
	}
	return rule, p.Err()
}

type parser struct {
	tomlfile.Reader
	dir    string
	prefix string
}

// host reads one [host."URL"].
func (p *parser) host(rule *rules.Rule, key tomlfile.Key) {
	if key.Value.Kind != tomlfile.Object {
		p.Fail(key.Line, "host %q is no table", key.Name)
		return
	}
	p.Known(key.Value.Table, hostKeys...)
	m, scope, ok := p.endpoint(key.Name, key.Line, key.Value.Table)
	switch {
	case !ok:
	case !scope.pull && !scope.resolve:
		p.Note(key.Line, "the host %q is left out: it is for neither pull nor resolve", key.Name)
	default:
		m.For = scope.references()
		rule.Mirrors = append(rule.Mirrors, m)
	}
}

// server reads what is asked last: the registry itself, or what takes its place.
func (p *parser) server(rule *rules.Rule, root *tomlfile.Table) {
	text, line := p.String(root, "server")
	if text == "" {
		m, _, ok := p.endpoint("https://"+strings.Replace(p.prefix, "*", "default.invalid", 1), root.Line, root)
		if ok {
			rule.Primary = m.Access
		}
		if v := root.Get("capabilities"); v != nil {
			p.Note(v.Line, "capabilities has no effect here: without server, the registry itself is asked for everything")
		}
		if v := root.Get("override_path"); v != nil {
			p.Note(v.Line, "override_path has no effect here: there is no server")
		}
		return
	}
	m, scope, ok := p.endpoint(text, line, root)
	if !ok {
		return
	}
	m.For = scope.references()
	if rules.Normal(m.Location) == rules.Normal(p.prefix) && m.APIPath == "" && m.For == rules.All {
		rule.Primary = m.Access
		return
	}
	rule.MirrorOnly = true // whatever is asked last, it is not the registry itself
	if !scope.pull && !scope.resolve {
		return
	}
	same := func(other rules.Mirror) bool {
		return other.Location == m.Location && other.APIPath == m.APIPath && other.PlainHTTP == m.PlainHTTP
	}
	if !slices.ContainsFunc(rule.Mirrors, same) {
		rule.Mirrors = append(rule.Mirrors, m)
	}
}

// capabilities say what a host is asked for.
type capabilities struct{ pull, resolve bool }

func (c capabilities) references() rules.Scope {
	switch {
	case c.pull && c.resolve:
		return rules.All
	case c.pull:
		return rules.Digests
	}
	return rules.Tags
}

// endpoint reads what a URL and the fields of its table say.
func (p *parser) endpoint(text string, line int, t *tomlfile.Table) (rules.Mirror, capabilities, bool) {
	m := rules.Mirror{From: p.At(line)}
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		p.Fail(line, "%q is not a URL such as https://mirror.example.com", strings.TrimPrefix(text, "https://"))
		return m, capabilities{}, false
	}
	m.Location = strings.ToLower(u.Host)
	p.path(&m, strings.TrimRight(u.Path, "/"), t)
	p.tls(&m.Access, t)
	p.scheme(&m.Access, u, line)
	if header := p.Table(t, "header"); header != nil {
		m.Headers = http.Header{}
		for _, key := range header.Keys {
			m.Headers[key.Name] = p.StringOrStrings(key.Value, "header "+key.Name) // keys are sent as written
		}
	}
	if limit, line := p.String(t, "dial_timeout"); limit != "" {
		if m.DialTimeout, err = time.ParseDuration(limit); err != nil || m.DialTimeout <= 0 {
			p.Fail(line, "dial_timeout is %q; it must be a duration such as 30s", limit)
		}
	}
	return m, p.capabilities(t), true
}

// path finds where the API is: "/v2" is appended unless override_path says that
// the path is whole. A path below /v2 is part of the names of repositories.
func (p *parser) path(m *rules.Mirror, path string, t *tomlfile.Table) {
	whole, _ := p.Bool(t, "override_path")
	if !whole && !strings.HasSuffix(path, "/v2") {
		path += "/v2"
	}
	switch rest, below := strings.CutPrefix(path, "/v2/"); {
	case path == "/v2":
	case below:
		m.Location += "/" + rest
	case path == "":
		m.APIPath = "/"
	default:
		m.APIPath = path
	}
}

// scheme decides between HTTP and HTTPS as containerd does: of http:// with any
// TLS setting, and another port than 80, HTTPS is tried first.
func (p *parser) scheme(a *rules.Access, u *url.URL, line int) {
	if u.Scheme != "http" {
		return
	}
	a.PlainHTTP = true
	if tls := a.CA != nil || a.Certificate != nil || a.SkipVerify; !tls {
		return
	}
	if u.Port() == "" || u.Port() == "80" {
		a.SkipVerify, a.CA, a.Certificate = false, nil, nil
		return
	}
	if !a.SkipVerify {
		p.Note(line, "HTTPS is tried first, and without verification: plain HTTP would be next")
	}
	a.SkipVerify = true
}

func (p *parser) tls(a *rules.Access, t *tomlfile.Table) {
	a.SkipVerify, _ = p.Bool(t, "skip_verify")
	if v := t.Get("ca"); v != nil {
		for _, name := range p.StringOrStrings(v, "ca") {
			data := p.file(v.Line, "ca", name)
			if data != nil && !bytes.Contains(data, []byte("-----BEGIN CERTIFICATE-----")) {
				p.Fail(v.Line, "ca %q holds no certificate in PEM", name)
			}
			a.CA = append(a.CA, data...)
			a.Origins.CA = p.At(v.Line)
		}
	}
	if v := t.Get("client"); v != nil {
		pairs := p.clients(v)
		if len(pairs) > 1 {
			p.Note(v.Line, "of %d client certificates only the first is used", len(pairs))
		}
		if len(pairs) > 0 {
			a.Certificate, a.Origins.Certificate = pairs[0], p.At(v.Line)
		}
	}
}

// clients reads "file", ["file", ...] or [["certificate", "key"], ...].
func (p *parser) clients(v *tomlfile.Value) (pairs []*rules.KeyPair) {
	items := []*tomlfile.Value{v}
	if v.Kind == tomlfile.Array {
		items = v.Items
	}
	for _, item := range items {
		names := p.StringOrStrings(item, "client")
		switch {
		case len(names) == 1 || len(names) == 2 && names[1] == "":
			if data := p.file(item.Line, "client", names[0]); data != nil {
				pairs = append(pairs, &rules.KeyPair{Certificate: data, Key: data})
			}
		case len(names) == 2:
			pair, err := docker.ReadPair(p.absolute(names[0]), p.absolute(names[1]))
			if err != nil {
				p.Fail(item.Line, "client: %v", err)
				continue
			}
			pairs = append(pairs, pair)
		default:
			p.Fail(item.Line, "client has %d names; it must be a file, or a certificate and a key", len(names))
		}
	}
	return pairs
}

func (p *parser) absolute(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.dir, name)
}

func (p *parser) file(line int, field, name string) []byte {
	data, err := os.ReadFile(p.absolute(name))
	if err != nil {
		p.Fail(line, "%s: %v", field, err)
		return nil
	}
	return data
}

func (p *parser) capabilities(t *tomlfile.Table) capabilities {
	v := t.Get("capabilities")
	if v == nil {
		return capabilities{true, true}
	}
	list := p.Strings(t, "capabilities")
	if len(list) == 0 {
		return capabilities{true, true}
	}
	var c capabilities
	for _, word := range list {
		switch strings.ToLower(word) {
		case "pull":
			c.pull = true
		case "resolve":
			c.resolve = true
		case "push", "referrers":
		default:
			p.Fail(v.Line, "unknown capability %q; known are pull, resolve, push, referrers", word)
		}
	}
	return c
}
