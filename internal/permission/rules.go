// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Rules is a set of what is allowed in one place: a namespace, or the whole cluster. The zero value allows nothing. What
// it allows is all that counts: however rules are split, ordered or repeated, equal powers are equal sets.
type Rules struct {
	set map[Rule]struct{}
	// Which wildcards there are at all, so that most look-ups are spared.
	anyVerb, anyGroup, anyResource, anySub, anyPath bool
}

// NewRules takes rules as a role has them. Rules that are too large to be broken down are taken as everything.
func NewRules(rules ...rbacv1.PolicyRule) *Rules {
	r := &Rules{}
	for _, rule := range rules {
		if !atoms(rule, r.Add) {
			atoms(widened(rule), r.Add)
		}
	}
	return r
}

// Add allows one thing more.
func (r *Rules) Add(rule Rule) {
	if r.set == nil {
		r.set = map[Rule]struct{}{}
	}
	r.set[rule] = struct{}{}
	r.anyVerb = r.anyVerb || rule.Verb == "*"
	if rule.Path != "" {
		r.anyPath = r.anyPath || rule.Path[len(rule.Path)-1] == '*'
		return
	}
	r.anyGroup = r.anyGroup || rule.Group == "*"
	r.anyResource = r.anyResource || rule.Resource == "*"
	r.anySub = r.anySub || len(rule.Resource) > 2 && rule.Resource[:2] == "*/"
}

// Union allows what either allows.
func (r *Rules) Union(others ...*Rules) *Rules {
	all := &Rules{}
	for _, one := range append([]*Rules{r}, others...) {
		if one == nil {
			continue
		}
		for rule := range one.set {
			all.Add(rule)
		}
	}
	return all
}

// Empty reports whether nothing is allowed.
func (r *Rules) Empty() bool { return r == nil || len(r.set) == 0 }

// Covers reports whether all that o allows is allowed.
func (r *Rules) Covers(o *Rules) bool {
	if o == nil {
		return true
	}
	for rule := range o.set {
		if !r.covers(rule, false) {
			return false
		}
	}
	return true
}

// Minus is what r allows and none of the others does. It is exact but for one thing: of a wildcard that is covered in part
// the whole is given, since RBAC has no words for the rest.
func (r *Rules) Minus(others ...*Rules) *Rules {
	rest := &Rules{}
	if r == nil {
		return rest
	}
	for rule := range r.set {
		covered := slices.ContainsFunc(others, func(o *Rules) bool { return o.covers(rule, false) })
		if !covered {
			rest.Add(rule)
		}
	}
	return rest
}

// Allows reports whether RBAC allows a request. Its resource has the subresource behind a slash; its name is "" where it
// has none.
func (r *Rules) Allows(request Rule) bool {
	request.Named = true
	return r.covers(request, false)
}

// Canonical gives the smallest set of rules that allows the same, sorted.
func (r *Rules) Canonical() []Rule {
	if r == nil {
		return nil
	}
	var out []Rule
	for rule := range r.set {
		if !r.covers(rule, true) {
			out = append(out, rule)
		}
	}
	slices.SortFunc(out, Rule.compare)
	return out
}

// all gives the rules as they are, in no order.
func (r *Rules) all() func(func(Rule) bool) {
	if r == nil {
		return func(func(Rule) bool) {}
	}
	return maps.Keys(r.set)
}

func (r *Rules) has(rule Rule) bool {
	_, ok := r.set[rule]
	return ok
}

// covers reports whether one rule of the set allows all of rule. A union of others never does without one of them doing
// so alone: what a wildcard stands for has no end, and any other rule is a single thing. With others, the rule itself and
// what is the same does not count.
func (r *Rules) covers(rule Rule, others bool) bool {
	if r.Empty() {
		return false
	}
	for _, verb := range either(rule.Verb, r.anyVerb) {
		if rule.Path != "" {
			if r.coversPath(verb, rule, others) {
				return true
			}
			continue
		}
		for _, group := range either(rule.Group, r.anyGroup) {
			if r.coversResource(verb, group, rule, others) {
				return true
			}
		}
	}
	return false
}

func either(exact string, any bool) []string {
	if any && exact != "*" {
		return []string{exact, "*"}
	}
	return []string{exact}
}

func (r *Rules) coversResource(verb, group string, rule Rule, others bool) bool {
	matches := func(resource string) bool {
		all := Rule{Verb: verb, Group: group, Resource: resource}
		if r.has(all) && !(others && all == rule) {
			return true
		}
		named := Rule{Verb: verb, Group: group, Resource: resource, Name: rule.Name, Named: true}
		return rule.Named && r.has(named) && !(others && named == rule)
	}
	if matches(rule.Resource) || r.anyResource && rule.Resource != "*" && matches("*") {
		return true
	}
	below := subresource(rule.Resource)
	return r.anySub && below != "" && rule.Resource != "*/"+below && matches("*/"+below)
}

func (r *Rules) coversPath(verb string, rule Rule, others bool) bool {
	matches := func(path string) bool {
		candidate := Rule{Verb: verb, Path: path}
		return r.has(candidate) && !(others && candidate == rule)
	}
	if matches(rule.Path) {
		return true
	}
	if !r.anyPath {
		return false
	}
	for i := range len(rule.Path) + 1 {
		if prefix := rule.Path[:i] + "*"; prefix != rule.Path && matches(prefix) {
			return true
		}
	}
	return false
}
