// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"rukpak.io/rukpak/internal/registry"
)

// Document is a whole configuration, as a reader made it of files or objects,
// and as a writer takes it.
type Document struct {
	Rules   []Rule
	Logins  []registry.Login
	Helpers []Helper
	// Notes are about what the reader had to leave out.
	Notes []Note
}

// Helper is a program that keeps credentials, "docker-credential-<Name>".
type Helper struct {
	Host string // "" for all hosts that have no entry
	Name string
	From string
}

// Note says that something could not be expressed, and what becomes of it.
type Note struct {
	Where string `json:"where"`
	What  string `json:"what"`
	// Rule is the From of the rule that it is about; empty means no one rule.
	Rule string `json:"-"`
}

// Note adds a note.
func (d *Document) Note(where, what string) {
	d.Notes = append(d.Notes, Note{Where: where, What: what})
}

// NoteOn adds a note about the rule that has this From.
func (d *Document) NoteOn(rule, where, what string) {
	d.Notes = append(d.Notes, Note{Where: where, What: what, Rule: rule})
}

// Set gives the rules in force.
func (d *Document) Set() *Set { return NewSet(d.Rules, d.Logins) }

// Files are what a writer makes, by path.
type Files map[string][]byte

// HostAccess gives every endpoint at one host an authority, a client
// certificate, or both, as folders of certificates do. Where no rule is about
// the host as a whole, one is added that does else what was done before.
func (d *Document) HostAccess(host, from string, set func(*Access)) {
	host = Normal(host)
	whole := func(r Rule) bool { return Normal(r.Prefix) == host }
	if !slices.ContainsFunc(d.Rules, whole) {
		added := Rule{From: from}
		if about := NewSet(d.Rules, nil).Match(host); about != nil { // one with a wildcard
			added = *about
			added.Mirrors = slices.Clone(about.Mirrors)
		}
		added.Prefix = host
		d.Rules = append(d.Rules, added)
	}
	for i := range d.Rules {
		rule := &d.Rules[i]
		if rule.PrimaryHost() == host {
			set(&rule.Primary)
		}
		for m := range rule.Mirrors {
			if hostOf(Normal(rule.Mirrors[m].Location)) == host {
				set(&rule.Mirrors[m].Access)
			}
		}
	}
}

// PrimaryHost is the host of the primary; with a wildcard and no rewrite it is
// the wildcard.
func (r *Rule) PrimaryHost() string {
	if r.Rewrite != "" {
		return hostOf(Normal(r.Rewrite))
	}
	return hostOf(Normal(r.Prefix))
}

// Split cuts a prefix or location into host and path.
func Split(text string) (host, path string) {
	text = Normal(text)
	host = hostOf(text)
	if len(text) > len(host) {
		path = text[len(host)+1:]
	}
	return host, path
}

// Extras names what an Access has that no file of another tool can express
// beside certificates and credentials.
func (a *Access) Extras() []string {
	var all []string
	for _, one := range []struct {
		name string
		set  bool
	}{
		{"the proxy", a.Proxy != nil},
		{"the headers", len(a.Headers) > 0},
		{"the time limit for connecting", a.DialTimeout != 0},
		{"the retries", a.Retry != Retry{}},
		{"the rate limit", a.Rate != Rate{}},
	} {
		if one.set {
			all = append(all, one.name)
		}
	}
	return all
}
