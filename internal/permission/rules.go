// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Rules is a set of what is allowed in one place: a namespace, or the whole cluster. The zero value allows nothing. What
// it allows is all that counts: however rules are split, ordered or repeated, equal powers are equal sets.
type Rules struct {
	set map[target]verbs
	// Which wildcards there are at all, so that most look-ups are spared.
	anyGroup, anyResource, anySub, anyPath bool
}

// target is a Rule without its verb.
type target struct {
	group, resource, name, path string
	named                       bool
}

func (t target) rule(verb string) Rule {
	return Rule{Verb: verb, Group: t.group, Resource: t.resource, Name: t.name, Named: t.named, Path: t.path}
}

func (r Rule) target() target {
	if r.Path != "" {
		return target{path: r.Path}
	}
	t := target{group: r.Group, resource: r.Resource, named: r.Named}
	if r.Named {
		t.name = r.Name
	}
	return t
}

// NewRules takes rules as a role has them. Rules that are too large to be broken down are taken as everything.
func NewRules(rules ...rbacv1.PolicyRule) *Rules {
	r := &Rules{}
	for _, rule := range rules {
		r.take(rule, false)
	}
	return r
}

// take adds a rule of a role. One that is too large counts as everything or, if lean, as nothing.
func (r *Rules) take(rule rbacv1.PolicyRule, lean bool) {
	if tooLarge(rule) {
		if lean {
			return
		}
		rule = widened(rule)
	}
	var all verbs
	for _, verb := range rule.Verbs {
		all = all.union(verbsOf(verb))
	}
	if !all.empty() {
		targets(rule, func(t target) { r.add(t, all) })
	}
}

// Add allows one thing more.
func (r *Rules) Add(rule Rule) { r.add(rule.target(), verbsOf(rule.Verb)) }

func (r *Rules) add(t target, v verbs) {
	if r.set == nil {
		r.set = map[target]verbs{}
	}
	r.set[t] = r.set[t].union(v)
	if t.path != "" {
		r.anyPath = r.anyPath || strings.HasSuffix(t.path, "*")
		return
	}
	r.anyGroup = r.anyGroup || t.group == "*"
	r.anyResource = r.anyResource || t.resource == "*"
	r.anySub = r.anySub || strings.HasPrefix(t.resource, "*/")
}

// Union allows what any of them allows.
func (r *Rules) Union(others ...*Rules) *Rules {
	all := &Rules{}
	for _, one := range append([]*Rules{r}, others...) {
		if one == nil {
			continue
		}
		for t, v := range one.set {
			all.add(t, v)
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
	for t, v := range o.set {
		if !v.minus(r.on(t, true)).empty() {
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
	for t, v := range r.set {
		for _, o := range others {
			v = v.minus(o.on(t, true))
		}
		if !v.empty() {
			rest.add(t, v)
		}
	}
	return rest
}

// Allows reports whether RBAC allows a request. Its resource has the subresource behind a slash; its name is "" where it
// has none.
func (r *Rules) Allows(request Rule) bool {
	request.Named = request.Path == ""
	return verbsOf(request.Verb).minus(r.on(request.target(), true)).empty()
}

// grow makes room for more targets.
func (r *Rules) grow(by int) {
	if r.set == nil {
		r.set = make(map[target]verbs, by)
	}
}

// Canonical gives the smallest set of rules that allows the same, sorted.
func (r *Rules) Canonical() []Rule {
	if r == nil {
		return nil
	}
	out := make([]Rule, 0, 2*len(r.set))
	for t, v := range r.set {
		v.canonical().minus(r.on(t, false)).each(func(verb string) { out = append(out, t.rule(verb)) })
	}
	slices.SortFunc(out, Rule.compare)
	return out
}

// on gives the verbs that are allowed on a target. A union of rules never covers a target without one of them doing so
// alone: what a wildcard stands for has no end, and any other target is a single thing. Without self, what the set says of
// that very target does not count.
func (r *Rules) on(t target, self bool) verbs {
	var all verbs
	if r.Empty() {
		return all
	}
	if self {
		all = r.set[t]
	}
	if t.path != "" {
		return all.union(r.onPath(t))
	}
	all = all.union(r.onGroup(t, t, t.group))
	if r.anyGroup && t.group != "*" {
		all = all.union(r.onGroup(t, t, "*"))
	}
	return all
}

// onGroup gives the verbs on targets of a group that cover t, but for t itself.
func (r *Rules) onGroup(t, wider target, group string) (all verbs) {
	wider.group = group
	all = r.wider(t, wider)
	if r.anyResource && t.resource != "*" {
		wider.resource = "*"
		all = all.union(r.wider(t, wider))
	}
	if !r.anySub {
		return all
	}
	if below := subresource(t.resource); below != "" && t.resource != "*/"+below {
		wider.resource = "*/" + below
		all = all.union(r.wider(t, wider))
	}
	return all
}

// wider gives the verbs on a target for its name and for all names, but for t itself.
func (r *Rules) wider(t, wider target) (all verbs) {
	if wider != t {
		all = r.set[wider]
	}
	if wider.named {
		wider.name, wider.named = "", false
		all = all.union(r.set[wider])
	}
	return all
}

func (r *Rules) onPath(t target) (all verbs) {
	if !r.anyPath {
		return all
	}
	for i := range len(t.path) + 1 {
		if prefix := t.path[:i] + "*"; prefix != t.path {
			all = all.union(r.set[target{path: prefix}])
		}
	}
	return all
}
