// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"rukpak.io/rukpak/internal/registry"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/registry/tomlfile"
)

// Dialect is whose file it is.
type Dialect string

// The dialects.
const (
	Docker     Dialect = "config.json"
	Containers Dialect = "auth.json" // has no credsStore
)

// ParseConfig reads a config.json or auth.json into a document. Its error is a
// *tomlfile.Error, as that of all formats, and shows none of the credentials.
func ParseConfig(into *rules.Document, file string, data []byte, dialect Dialect) error {
	logins, err := registry.LoginsOfFile(data)
	if err != nil {
		return located(file, data, err)
	}
	var rest struct {
		CredHelpers map[string]string `json:"credHelpers"`
		CredsStore  string            `json:"credsStore"`
		HTTPHeaders map[string]any    `json:"HttpHeaders"`
		Proxies     map[string]any    `json:"proxies"`
	}
	if err := json.Unmarshal(data, &rest); err != nil {
		return typed(file, data, err)
	}
	into.Logins = append(into.Logins, logins...)
	for _, host := range slices.Sorted(maps.Keys(rest.CredHelpers)) {
		into.Helpers = append(into.Helpers, rules.Helper{Host: host, Name: rest.CredHelpers[host], From: file})
	}
	switch {
	case rest.CredsStore == "":
	case dialect == Containers:
		into.Note(file, "credsStore has no effect: containers' tools do not read it")
	default:
		into.Helpers = append(into.Helpers, rules.Helper{Name: rest.CredsStore, From: file})
	}
	if len(rest.HTTPHeaders) > 0 {
		into.Note(file, "HttpHeaders is left out: Docker sends them to its daemon, not to registries")
	}
	if len(rest.Proxies) > 0 {
		into.Note(file, "proxies is left out: Docker gives them to containers, and does not go through them itself")
	}
	return nil
}

func located(file string, data []byte, err error) error {
	found := &tomlfile.Error{File: file, Problem: err.Error()}
	if problem, ok := errors.AsType[*registry.FileProblem](err); ok && problem.Offset > 0 {
		found.Line = lineAt(data, problem.Offset)
	}
	return found
}

// typed leaves out the value, which the decoder quotes.
func typed(file string, data []byte, err error) error {
	found := &tomlfile.Error{File: file, Problem: "it is not valid JSON"}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		found.Line = lineAt(data, wrong.Offset)
		found.Problem = fmt.Sprintf("%s has another type than in Docker's configuration", wrong.Field)
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		found.Line = lineAt(data, syntax.Offset)
	}
	return found
}

func lineAt(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(int64(len(data)), max(0, offset-1))], []byte("\n"))
}

// WriteConfig makes a config.json or auth.json; nil if there is nothing to say.
func WriteConfig(d *rules.Document, dialect Dialect, notes *[]rules.Note) ([]byte, error) {
	logins := allLogins(d, dialect, notes)
	if len(logins) == 0 && len(d.Helpers) == 0 {
		return nil, nil
	}
	file := struct {
		Auths       map[string]entry  `json:"auths,omitempty"`
		CredHelpers map[string]string `json:"credHelpers,omitempty"`
		CredsStore  string            `json:"credsStore,omitempty"`
	}{Auths: map[string]entry{}, CredHelpers: map[string]string{}}
	for _, login := range logins {
		if _, twice := file.Auths[login.For]; twice {
			*notes = append(*notes, rules.Note{Where: login.For, What: "several credentials are for it; only the first are kept"})
			continue
		}
		file.Auths[login.For] = entryOf(login)
	}
	for _, helper := range d.Helpers {
		switch {
		case helper.Host != "":
			file.CredHelpers[helper.Host] = helper.Name
		case dialect == Docker:
			file.CredsStore = helper.Name
		default:
			*notes = append(*notes, rules.Note{Where: helper.From, What: fmt.Sprintf("credsStore %q is lost: containers' tools do not read it", helper.Name)})
		}
	}
	data, err := json.MarshalIndent(file, "", "  ")
	return append(data, '\n'), err
}

type entry struct {
	Auth          string `json:"auth,omitempty"`
	IdentityToken string `json:"identitytoken,omitempty"`
	RegistryToken string `json:"registrytoken,omitempty"`
}

func entryOf(l registry.Login) entry {
	e := entry{IdentityToken: l.IdentityToken, RegistryToken: l.RegistryToken}
	if l.Username != "" || l.Password != "" {
		e.Auth = base64.StdEncoding.EncodeToString([]byte(l.Username + ":" + l.Password))
	}
	return e
}

// allLogins gives the logins of rules with the places that they are for, and
// those of the document.
func allLogins(d *rules.Document, dialect Dialect, notes *[]rules.Note) []registry.Login {
	var all []registry.Login
	add := func(from, place string, logins []registry.Login) {
		for _, login := range logins {
			if login.For == "" {
				if place == "" || place[0] == '*' {
					*notes = append(*notes, rules.Note{Where: from, What: "credentials for every host under a wildcard are lost: the file has them by host"})
					continue
				}
				login.For = place
			}
			all = append(all, login)
		}
	}
	for i := range d.Rules {
		r := &d.Rules[i]
		for _, m := range r.Mirrors {
			add(m.From, m.Location, m.Logins)
		}
		place := r.Prefix
		if r.Rewrite != "" {
			place = r.Rewrite
		}
		add(r.From, place, r.Primary.Logins)
	}
	for i := range all {
		all[i].For = key(all[i].For, dialect, notes)
	}
	for _, login := range d.Logins {
		login.For = key(login.For, dialect, notes)
		all = append(all, login)
	}
	return all
}

// key is how the file spells a place.
func key(place string, dialect Dialect, notes *[]rules.Note) string {
	place = registry.PlaceOf(place)
	host, path := rules.Split(place)
	if dialect == Containers {
		return place
	}
	if path != "" {
		*notes = append(*notes, rules.Note{Where: place, What: fmt.Sprintf("credentials are widened to all of %s: Docker knows them by host only", host)})
	}
	if host == rules.DockerHub {
		return "https://index.docker.io/v1/"
	}
	return host
}
