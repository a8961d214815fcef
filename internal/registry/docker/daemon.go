// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/registry/tomlfile"
)

// Read reads a folder with config.json, daemon.json and certs.d, each of which
// may be absent, or one file, a config.json or daemon.json.
func Read(path string) (*rules.Document, error) {
	found := &rules.Document{}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if filepath.Base(path) == "daemon.json" {
			return found, ParseDaemon(found, path, data)
		}
		return found, ParseConfig(found, path, data, Docker)
	}
	var failures []error
	read := 0
	config := func(d *rules.Document, file string, data []byte) error { return ParseConfig(d, file, data, Docker) }
	for i, parse := range []func(*rules.Document, string, []byte) error{config, ParseDaemon} {
		file := filepath.Join(path, []string{"config.json", "daemon.json"}[i])
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = parse(found, file, data)
		}
		read++
		failures = append(failures, err)
	}
	if _, err := os.Stat(filepath.Join(path, "certs.d")); err == nil {
		read++
	}
	if read == 0 {
		return nil, fmt.Errorf("%s holds neither config.json nor daemon.json nor certs.d", path)
	}
	failures = append(failures, ReadCerts(found, filepath.Join(path, "certs.d")))
	return found, errors.Join(failures...)
}

// ParseDaemon reads the parts of a daemon.json about registries.
func ParseDaemon(into *rules.Document, file string, data []byte) error {
	var daemon struct {
		Mirrors  []string `json:"registry-mirrors"`
		Insecure []string `json:"insecure-registries"`
	}
	if err := json.Unmarshal(data, &daemon); err != nil {
		return typed(file, data, err)
	}
	if len(daemon.Mirrors) > 0 {
		rule := rules.Rule{Prefix: rules.DockerHub, From: file + ": registry-mirrors"}
		for i, text := range daemon.Mirrors {
			mirror, err := mirrorOf(text)
			if err != nil {
				return &tomlfile.Error{File: file, Problem: fmt.Sprintf("registry-mirrors[%d]: %v", i, err)}
			}
			mirror.From = fmt.Sprintf("%s: registry-mirrors[%d]", file, i)
			rule.Mirrors = append(rule.Mirrors, mirror)
		}
		into.Rules = append(into.Rules, rule)
	}
	for i, host := range daemon.Insecure {
		from := fmt.Sprintf("%s: insecure-registries[%d]", file, i)
		if _, err := netip.ParsePrefix(host); err == nil {
			into.Note(from, "the range "+host+" is left out: rules are about names, not about addresses that they resolve to")
			continue
		}
		into.HostAccess(host, from, func(a *rules.Access) { a.PlainHTTP, a.SkipVerify = true, true })
	}
	return nil
}

func mirrorOf(text string) (rules.Mirror, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return rules.Mirror{}, errors.New("it is not an URL such as https://mirror.example.com")
	}
	if path := strings.Trim(u.Path, "/"); path != "" || u.RawQuery != "" || u.User != nil {
		return rules.Mirror{}, errors.New("a mirror of Docker has neither path nor query nor credentials")
	}
	return rules.Mirror{Location: u.Host, Access: rules.Access{PlainHTTP: u.Scheme == "http"}}, nil
}

// Write makes config.json, daemon.json and certs.d, and says what they cannot
// express.
func Write(d *rules.Document) (rules.Files, []rules.Note, error) {
	files, notes := rules.Files{}, []rules.Note{}
	config, err := WriteConfig(d, Docker, &notes)
	if err != nil {
		return nil, nil, err
	}
	if config != nil {
		files["config.json"] = config
	}
	lists := daemonOf(d, &notes)
	if len(lists) > 0 {
		data, err := json.MarshalIndent(lists, "", "  ")
		if err != nil {
			return nil, nil, err
		}
		files["daemon.json"] = append(data, '\n')
	}
	WriteCerts(d, "certs.d", files, &notes)
	return files, notes, nil
}

// daemon is what a daemon.json says of registries, and what it cannot say.
type daemon struct {
	lists map[string][]string
	notes *[]rules.Note
}

func (d *daemon) lose(from, what string) {
	*d.notes = append(*d.notes, rules.Note{Where: from, What: what})
}

func daemonOf(document *rules.Document, notes *[]rules.Note) map[string][]string {
	d := &daemon{lists: map[string][]string{}, notes: notes}
	for i := range document.Rules {
		d.rule(&document.Rules[i])
	}
	return d.lists
}

func (d *daemon) rule(r *rules.Rule) {
	d.insecure(r.PrimaryHost(), r.From, &r.Primary)
	switch {
	case r.Blocked:
		d.lose(r.From, "blocking is lost: Docker has no such thing")
	case r.Rewrite != "":
		d.lose(r.From, "the rewrite is lost: Docker has no such thing")
	case r.MirrorOnly:
		d.lose(r.From, "the primary is asked after the mirrors: Docker cannot leave it out")
	}
	for _, what := range r.Primary.Extras() {
		d.lose(r.From, "there is no place for "+what+" in daemon.json")
	}
	if len(r.Mirrors) > 0 && rules.Normal(r.Prefix) != rules.DockerHub {
		d.lose(r.From, "its mirrors are lost: Docker has mirrors for docker.io as a whole only")
		return
	}
	for m := range r.Mirrors {
		d.mirror(&r.Mirrors[m])
	}
}

// insecure notes a host that is not verified.
func (d *daemon) insecure(host, from string, a *rules.Access) {
	if !a.PlainHTTP && !a.SkipVerify {
		return
	}
	if a.PlainHTTP != a.SkipVerify {
		d.lose(from, "Docker's insecure-registries means both: HTTPS without verification, then plain HTTP")
	}
	switch {
	case host[0] == '*':
		d.lose(from, "insecure hosts under a wildcard are lost: Docker knows hosts")
	case !slices.Contains(d.lists["insecure-registries"], host):
		d.lists["insecure-registries"] = append(d.lists["insecure-registries"], host)
	}
}

func (d *daemon) mirror(m *rules.Mirror) {
	host, path := rules.Split(m.Location)
	if path != "" || m.APIPath != "" {
		d.lose(m.From, "the mirror is lost: Docker has mirrors without a path only")
		return
	}
	if m.For != rules.All {
		d.lose(m.From, "the mirror is asked for all references: Docker makes no difference")
	}
	scheme := "https"
	switch {
	case m.SkipVerify:
		d.insecure(host, m.From, &m.Access)
	case m.PlainHTTP:
		scheme = "http"
	}
	d.lists["registry-mirrors"] = append(d.lists["registry-mirrors"], scheme+"://"+host)
	for _, what := range m.Extras() {
		d.lose(m.From, "there is no place for "+what+" in daemon.json")
	}
}
