// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
)

// Keychain finds the credentials for a repository among those of several pull
// secrets. The zero value has none.
type Keychain struct{ entries []entry }

// entry is one line of a pull secret.
type entry struct {
	pattern pattern
	auth    authn.AuthConfig
}

// Login is credentials, and the host, with or without the beginning of a path,
// that they are for, as the keys of a Docker configuration write it. An empty
// For stands for any repository: the place that holds such a Login says which.
type Login struct {
	For string
	authn.AuthConfig
}

// NewKeychain makes a keychain of logins, earlier ones before later ones.
func NewKeychain(logins []Login) Keychain {
	var k Keychain
	for _, l := range logins {
		e := entry{pattern: parsePattern(l.For), auth: l.AuthConfig}
		e.pattern.any = l.For == ""
		k.entries = append(k.entries, e)
	}
	return k
}

var _ authn.Keychain = Keychain{}

// Candidates gives the credentials that may open a repository, in the order in
// which to try them: the most specific first, and of equal ones that of the
// earlier secret. It is empty if no secret is about the repository; then it can
// only be asked for anonymously.
func (k Keychain) Candidates(target authn.Resource) []authn.Authenticator {
	wanted := parseTarget(target.String())
	var found []entry
	for _, e := range k.entries {
		if e.pattern.matches(wanted) {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b entry) int { return b.pattern.compare(a.pattern) })
	var candidates []authn.Authenticator
	seen := map[authn.AuthConfig]bool{}
	for _, e := range found {
		if !seen[e.auth] {
			seen[e.auth] = true
			candidates = append(candidates, authn.FromConfig(e.auth))
		}
	}
	return candidates
}

// Knows tells whether any login is about a host, whatever the path.
func (k Keychain) Knows(host string) bool {
	wanted := parseTarget(host)
	for _, e := range k.entries {
		about := e.pattern
		about.path = ""
		if about.matches(wanted) {
			return true
		}
	}
	return false
}

// Resolve gives the first of the candidates, or anonymous access.
func (k Keychain) Resolve(target authn.Resource) (authn.Authenticator, error) {
	if candidates := k.Candidates(target); len(candidates) > 0 {
		return candidates[0], nil
	}
	return authn.Anonymous, nil
}
