// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"rukpak.io/rukpak/internal/registry"
)

// Set is all that is configured. The zero value and nil have no rules: every
// reference is reached where it says.
type Set struct {
	// Logins are credentials by host and path, as in auth.json: they are tried
	// after those of rules, at any endpoint that they are for.
	Logins []registry.Login
	rules  []Rule
}

// NewSet makes a set of rules. Of several with the same prefix the first counts;
// see Conflicts.
func NewSet(list []Rule, logins []registry.Login) *Set {
	s := &Set{Logins: logins}
	seen := map[string]bool{}
	for _, rule := range list {
		rule.Prefix = Normal(rule.Prefix)
		if same := withoutPort(rule.Prefix); !seen[same] {
			seen[same] = true
			s.rules = append(s.rules, rule)
		}
	}
	slices.SortStableFunc(s.rules, func(a, b Rule) int { return cmp.Compare(a.Prefix, b.Prefix) })
	return s
}

// Rules of the set, by prefix.
func (s *Set) Rules() []Rule {
	if s == nil {
		return nil
	}
	return s.rules
}

// Match gives the rule for a text that begins with a host, such as a reference:
// that with the longest prefix. It is nil if there is none.
func (s *Set) Match(text string) *Rule {
	rule, _ := s.match(Normal(text))
	return rule
}

// MatchURL gives the rule for a URL, or nil.
func (s *Set) MatchURL(u *url.URL) *Rule {
	rule, _ := s.match(urlText(u))
	return rule
}

func (s *Set) match(text string) (found *Rule, covered int) {
	if s == nil {
		return nil, 0
	}
	plain := withoutPort(text)
	for i := range s.rules {
		rule := &s.rules[i]
		length := covers(withoutPort(rule.Prefix), plain)
		if length > 0 && (found == nil || longer(rule.Prefix, found.Prefix)) {
			found, covered = rule, length
		}
	}
	if found != nil {
		covered += len(text) - len(plain) // the port is a part of the host
	}
	return found, covered
}

// blockedByHTTP gives the rule that blocks a reference with the port of HTTP, and
// is about its host without one: over plain HTTP that is the same server.
func (s *Set) blockedByHTTP(text string) *Rule {
	host := hostOf(text)
	bare, ok := strings.CutSuffix(host, httpPort)
	if !ok {
		return nil
	}
	if rule, _ := s.match(bare + text[len(host):]); rule != nil && rule.Blocked {
		return rule
	}
	return nil
}

// longer tells which of two prefixes counts; of equally long ones that without
// a wildcard.
func longer(a, b string) bool {
	return len(a) > len(b) || len(a) == len(b) && b[0] == '*'
}

// BlockedError says which rule refuses a reference.
type BlockedError struct{ What, Rule string }

// Error names both.
func (e *BlockedError) Error() string {
	return fmt.Sprintf("%s is blocked by %s", e.What, e.Rule)
}

// ProblemError says which rule cannot be used.
type ProblemError struct {
	Rule string
	Err  error
}

// Error names the rule.
func (e *ProblemError) Error() string {
	return fmt.Sprintf("%s cannot be used: %v", e.Rule, e.Err)
}

// Unwrap gives the problem.
func (e *ProblemError) Unwrap() error { return e.Err }

// Usable gives the error of a rule that blocks or is broken. Nil rules are usable.
func (r *Rule) Usable(what string) error {
	switch {
	case r == nil:
		return nil
	case r.Blocked:
		return &BlockedError{What: what, Rule: r.From}
	case r.Problem != nil:
		return &ProblemError{Rule: r.From, Err: r.Problem}
	}
	return nil
}

// RewriteURL gives where a URL is reached; ok is false if no rule moves it.
func (s *Set) RewriteURL(u *url.URL) (moved *url.URL, ok bool) {
	text := urlText(u)
	rule, covered := s.match(text)
	if rule == nil || rule.Rewrite == "" {
		return u, false
	}
	host, path, _ := strings.Cut(Normal(rule.Rewrite)+text[covered:], "/")
	copied := *u
	copied.Host, copied.RawPath = host, ""
	copied.Path = "/" + path
	if strings.HasSuffix(u.Path, "/") && !strings.HasSuffix(copied.Path, "/") {
		copied.Path += "/"
	}
	return &copied, true
}
