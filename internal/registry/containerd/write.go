// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rukpak.io/rukpak/internal/registry/docker"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/registry/tomlfile"
)

// Write makes a tree certs.d of hosts.toml files, with the certificates that
// they name, and Docker's config.json, and says what they cannot express.
func Write(d *rules.Document) (rules.Files, []rules.Note, error) {
	w := &writer{files: rules.Files{}, notes: []rules.Note{}}
	for i := range d.Rules {
		w.rule(&d.Rules[i])
	}
	config, err := docker.WriteConfig(d, docker.Docker, &w.notes)
	if err != nil {
		return nil, nil, err
	}
	if config != nil {
		w.files["config.json"] = config
	}
	return w.files, w.notes, nil
}

type writer struct {
	files rules.Files
	notes []rules.Note
	text  strings.Builder
	dir   string // of the host at hand
}

func (w *writer) lose(from, format string, args ...any) {
	w.notes = append(w.notes, rules.Note{Where: from, What: fmt.Sprintf(format, args...)})
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.text, format+"\n", args...) }

func (w *writer) rule(r *rules.Rule) {
	host, path := rules.Split(r.Prefix)
	switch {
	case path != "":
		w.lose(r.From, "the rule is lost: hosts.toml is about whole hosts, not about %s", r.Prefix)
		return
	case strings.HasPrefix(host, "*."):
		w.lose(r.From, "the rule is lost: hosts.toml knows no domains, only hosts and all hosts")
		return
	case r.Blocked:
		w.lose(r.From, "blocking is lost: hosts.toml has no such thing; use an admission policy")
		return
	}
	w.text.Reset()
	w.dir = "certs.d/" + dirOf(host) + "/"
	mirrors := r.Mirrors
	switch {
	case r.MirrorOnly && len(mirrors) > 0:
		last := mirrors[len(mirrors)-1]
		mirrors = mirrors[:len(mirrors)-1]
		w.line("server = %s", tomlfile.Quote(urlOf(&last)))
		w.mirrorFields("server", &last)
	case r.Rewrite != "":
		place := rules.Mirror{Location: r.Rewrite, From: r.From, Access: r.Primary}
		w.line("server = %s", tomlfile.Quote(urlOf(&place)))
		w.mirrorFields("server", &place)
	default:
		if host != "*" {
			w.line("server = %s", tomlfile.Quote(urlOf(&rules.Mirror{Location: host, Access: r.Primary})))
		}
		w.access("server", r.From, &r.Primary)
	}
	for i := range mirrors {
		w.line("")
		w.line("[host.%s]", tomlfile.Quote(urlOf(&mirrors[i])))
		w.mirrorFields(fmt.Sprintf("mirror%d", i), &mirrors[i])
	}
	w.files[w.dir+hostsFile] = []byte(w.text.String())
}

// serverOf is where a registry's API is.
func serverOf(host string) string {
	if host == rules.DockerHub {
		return "registry-1.docker.io"
	}
	return host
}

// urlOf is the URL of an API.
func urlOf(m *rules.Mirror) string {
	host, path := rules.Split(m.Location)
	host = serverOf(host)
	scheme := "https://"
	if m.PlainHTTP {
		scheme = "http://"
	}
	switch {
	case m.APIPath == "/":
		return strings.TrimSuffix(scheme+host+"/"+path, "/")
	case m.APIPath != "":
		return strings.TrimSuffix(scheme+host+m.APIPath+"/"+path, "/")
	case path != "":
		return scheme + host + "/v2/" + path
	}
	return scheme + host
}

func (w *writer) mirrorFields(name string, m *rules.Mirror) {
	switch m.For {
	case rules.Digests:
		w.line(`capabilities = ["pull"]`)
	case rules.Tags:
		w.line(`capabilities = ["resolve"]`)
	default:
		w.line(`capabilities = ["pull", "resolve"]`)
	}
	if _, path := rules.Split(m.Location); path != "" || m.APIPath != "" {
		w.line("override_path = true")
	}
	w.access(name, m.From, &m.Access)
}

// access writes the fields of one endpoint.
func (w *writer) access(name, from string, a *rules.Access) {
	if a.SkipVerify {
		w.line("skip_verify = true")
	}
	if a.CA != nil {
		w.files[w.dir+name+"-ca.crt"] = a.CA
		w.line("ca = %s", tomlfile.Quote(name+"-ca.crt"))
	}
	if a.Certificate != nil {
		certificate, key := name+"-client.cert", name+"-client.key"
		w.files[w.dir+certificate], w.files[w.dir+key] = a.Certificate.Certificate, a.Certificate.Key
		w.line("client = [[%s, %s]]", tomlfile.Quote(certificate), tomlfile.Quote(key))
	}
	if a.DialTimeout != 0 {
		w.line("dial_timeout = %s", tomlfile.Quote(a.DialTimeout.String()))
	}
	if len(a.Headers) > 0 {
		w.headers(a)
	}
	for _, what := range a.Extras() {
		if what != "the headers" && what != "the time limit for connecting" {
			w.lose(from, "there is no place for %s in hosts.toml", what)
		}
	}
}

// headers are an inline table, so that they belong to the table at hand.
func (w *writer) headers(a *rules.Access) {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(a.Headers)) {
		var values []string
		for _, value := range a.Headers[key] {
			values = append(values, tomlfile.Quote(value))
		}
		all = append(all, fmt.Sprintf("%s = [%s]", tomlfile.Quote(key), strings.Join(values, ", ")))
	}
	w.line("header = {%s}", strings.Join(all, ", "))
}
