// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"rukpak.io/rukpak/internal/registry"
)

// Endpoint is one place to ask for a reference.
type Endpoint struct {
	// Reference is what to ask for there: the reference with its prefix replaced.
	Reference name.Reference
	// Mirror is false for the primary.
	Mirror bool
	// Moved is true if it is not where the reference says.
	Moved bool
	// APIPath is the path of the registry API; empty means "/v2".
	APIPath string
	// Namespace is the host of the user's reference, for the query parameter "ns"
	// of mirrors; empty means none.
	Namespace string
	// Rule says where the rule or mirror stands that produced it; empty means no
	// rule.
	Rule string
	// AccessRule says where the rule stands that the mirror's access was completed
	// from; empty means none.
	AccessRule string
	Access
	// Skipped says why it is not asked; empty if it is.
	Skipped string
}

// Host is the server, "host[:port]".
func (e *Endpoint) Host() string { return e.Reference.Context().RegistryStr() }

// Credentials gives the logins of the endpoint and then those of the set.
func (s *Set) Credentials(e *Endpoint) registry.Keychain {
	logins := e.Logins
	if s != nil {
		logins = append(logins[:len(logins):len(logins)], s.Logins...)
	}
	return registry.NewKeychain(logins)
}

// Resolution is how a reference is reached.
type Resolution struct {
	// Rule that is about the reference; nil if none is.
	Rule *Rule
	// Endpoints in the order in which they are asked.
	Endpoints []Endpoint
	// Skipped are endpoints that are not asked for this reference.
	Skipped []Endpoint
}

// Resolve finds the endpoints of a reference. It fails with a *BlockedError, a
// *ProblemError, or because no endpoint is left.
func (s *Set) Resolve(ref name.Reference) (Resolution, error) {
	text := Text(ref)
	rule, covered := s.match(text)
	if blocked := s.blockedByHTTP(text); blocked != nil {
		rule = blocked
	}
	found := Resolution{Rule: rule}
	if err := rule.Usable(text); err != nil {
		return found, err
	}
	_, digested := ref.(name.Digest)
	for _, e := range s.endpoints(ref, rule, text, covered) {
		if e.Skipped == "" && e.scope != All && !e.scope.Covers(digested) {
			e.Skipped = fmt.Sprintf("it is only for references by %s", e.scope)
		}
		if e.Skipped != "" {
			found.Skipped = append(found.Skipped, e.Endpoint)
			continue
		}
		found.Endpoints = append(found.Endpoints, e.Endpoint)
	}
	if len(found.Endpoints) == 0 {
		return found, &ProblemError{Rule: rule.From, Err: errors.New("it leaves no endpoint for " + text + ": " + Reasons(found.Skipped))}
	}
	return found, nil
}

// Reasons says of endpoints why each is not asked.
func Reasons(skipped []Endpoint) string {
	var all []string
	for _, e := range skipped {
		all = append(all, fmt.Sprintf("%s (%s)", Normal(e.Host()), e.Skipped))
	}
	if len(all) == 0 {
		return "it has no mirror and never asks the primary"
	}
	return strings.Join(all, ", ")
}

type scoped struct {
	Endpoint
	scope Scope
}

func (s *Set) endpoints(ref name.Reference, rule *Rule, text string, covered int) []scoped {
	if rule == nil {
		return []scoped{{Endpoint: Endpoint{Reference: ref}}}
	}
	var all []scoped
	for i := range rule.Mirrors {
		all = append(all, s.mirror(ref, &rule.Mirrors[i], text, covered))
	}
	if !rule.MirrorOnly {
		primary := Endpoint{Reference: ref, Rule: rule.From, Access: rule.Primary}
		if rule.Rewrite != "" {
			primary = s.moved(ref, primary, Normal(rule.Rewrite)+text[covered:])
			primary.Access = rule.Primary.Completed(s.other(rule.Rewrite, rule))
		}
		all = append(all, scoped{Endpoint: primary})
	}
	return all
}

func (s *Set) mirror(ref name.Reference, m *Mirror, text string, covered int) scoped {
	e := s.moved(ref, Endpoint{Rule: m.From, Mirror: true, APIPath: m.APIPath}, Normal(m.Location)+text[covered:])
	e.Namespace = hostOf(text)
	e.Access = m.Access
	if about := s.Match(m.Location); about != nil {
		e.Access, e.AccessRule = m.Completed(about), about.From
	}
	return scoped{e, m.For}
}

// other gives the rule about a location, if it is not the given one.
func (s *Set) other(location string, than *Rule) *Rule {
	if about := s.Match(location); about != than {
		return about
	}
	return nil
}

// moved completes an endpoint that is elsewhere than the reference says.
func (s *Set) moved(ref name.Reference, e Endpoint, target string) Endpoint {
	parsed, err := name.ParseReference(target, name.WithDefaultTag(""))
	if err != nil || Normal(parsed.Name()) != target { // such as a host without dot or port, which would be taken for a path at Docker's
		e.Reference, e.Skipped = ref, fmt.Sprintf("%q is not a reference", target)
		return e
	}
	e.Reference, e.Moved = parsed, true
	about := s.Match(target)
	if blocked := s.blockedByHTTP(target); blocked != nil {
		about = blocked
	}
	if about != nil && about.Blocked {
		e.Skipped = (&BlockedError{What: "its address", Rule: about.From}).Error()
	}
	return e
}

// Text gives a reference in the form in which rules are compared with it:
// "docker.io/library/nginx:latest".
func Text(ref name.Reference) string { return Normal(ref.Name()) }
