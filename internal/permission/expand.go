// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/pod-security-admission/api"
)

// Expansion is the difference between two powers, in the terms of Powers. Powers that are equal, however they are written,
// have none.
type Expansion struct {
	Gained Powers `json:"gained"`
	Lost   Powers `json:"lost"`
}

// Grows reports whether anything is gained.
func (e *Expansion) Grows() bool { return !e.Gained.Empty() }

// Empty reports whether there is nothing at all.
func (p *Powers) Empty() bool {
	return len(p.Grants)+len(p.MayGain)+len(p.Accounts)+len(p.Pods)+len(p.Intercepts)+len(p.Owns)+len(p.Namespaces)+len(p.Registries) == 0
}

// Expand says what new may do that old may not, and the other way round. Nil is no content at all.
func Expand(old, new *Powers) *Expansion {
	if old == nil {
		old = &Powers{}
	}
	if new == nil {
		new = &Powers{}
	}
	return expand(old, new, scopedOf(old.Grants), scopedOf(new.Grants))
}

func expand(old, new *Powers, heldOld, heldNew map[Subject]scoped) *Expansion {
	return &Expansion{Gained: beyond(new, old, heldNew, heldOld), Lost: beyond(old, new, heldOld, heldNew)}
}

// Covers reports whether all that other may do, p may do.
func (p *Powers) Covers(other *Powers) bool {
	rest := beyond(other, p, scopedOf(other.Grants), scopedOf(p.Grants))
	return rest.Empty()
}

// beyond is what is in p and not covered by what is in base; held are the rules of their grants.
func beyond(p, base *Powers, held, heldBase map[Subject]scoped) Powers {
	full := NewRules(everything()...)
	gains := slices.DeleteFunc(slices.Clone(p.MayGain), func(g Gain) bool {
		return g.Subject != nil && heldBase[*g.Subject][""].Covers(full)
	})
	foreign := slices.DeleteFunc(slices.Clone(p.Accounts), func(a Account) bool { return a.Owned })
	return Powers{
		Grants:     grantsBeyond(held, heldBase),
		MayGain:    without(gains, base.MayGain, Gain.covers),
		Accounts:   without(foreign, base.Accounts, Account.covers),
		Pods:       without(p.Pods, base.Pods, PodPower.covers),
		Intercepts: without(p.Intercepts, base.Intercepts, Intercept.covers),
		Owns:       without(p.Owns, base.Owns, func(a, b Owned) bool { return a == b }),
		Namespaces: without(p.Namespaces, base.Namespaces, func(a, b string) bool { return a == b }),
		Registries: without(p.Registries, base.Registries, func(a, b Registry) bool { return a.Name == b.Name }),
	}
}

// without leaves out what one of base covers.
func without[T any](all, base []T, covers func(a, b T) bool) []T {
	var rest []T
	for _, one := range all {
		if !slices.ContainsFunc(base, func(b T) bool { return covers(b, one) }) {
			rest = append(rest, one)
		}
	}
	return rest
}

func grantsBeyond(held, base map[Subject]scoped) []Grant {
	rest := map[Subject]scoped{}
	for s, byNamespace := range held {
		if left := byNamespace.minus(base[s]).canonical(); len(left) > 0 {
			rest[s] = left
		}
	}
	return grantList(rest)
}

func (g Gain) covers(o Gain) bool {
	if (g.Subject == nil) != (o.Subject == nil) || g.Subject != nil && *g.Subject != *o.Subject {
		return false
	}
	return g.Way == o.Way && (g.Namespace == "" && g.Subject != nil || g.Namespace == o.Namespace) && (g.Value == "" || g.Value == o.Value)
}

// covers compares accounts that the content does not bring. What their rights are is told by the grants.
func (a Account) covers(o Account) bool {
	return a.Namespace == o.Namespace && a.Name == o.Name && (len(o.Tokens) == 0 || len(a.Tokens) > 0)
}

func (p PodPower) covers(o PodPower) bool {
	if p.Namespace != "" && p.Namespace != o.Namespace {
		return false
	}
	switch {
	case p.What == PodLevel && o.What == PodLevel:
		return api.CompareLevels(api.Level(p.Value), api.Level(o.Value)) <= 0
	case p.What == PodHostPath && (o.What == PodHostPath || o.What == PodHostPathRead), p.What == PodHostPathRead && o.What == PodHostPathRead:
		return within(o.Value, p.Value)
	case p.What == PodCapability && o.What == PodCapability && p.Value == "ALL":
		return true
	}
	return p.What == o.What && p.Value == o.Value
}

// within reports whether a path of a node is another or below it.
func within(path, parent string) bool {
	if strings.Contains(path+"/", "/../") || strings.Contains(parent+"/", "/../") {
		return path == parent
	}
	path, parent = strings.TrimRight(path, "/")+"/", strings.TrimRight(parent, "/")+"/"
	return strings.HasPrefix(path, parent)
}

// Subjects gives the holders of grants, sorted.
func (p *Powers) Subjects() []Subject {
	found := map[Subject]bool{}
	for _, g := range p.Grants {
		found[g.Subject] = true
	}
	return slices.SortedFunc(maps.Keys(found), Subject.compare)
}
