// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"cmp"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Rule is the smallest thing that RBAC can allow: one verb on one resource, or on one path.
type Rule struct {
	Verb     string // "*" is every verb
	Group    string // "" is the core group, "*" every group
	Resource string // "pods", "pods/log", "*/scale" is that of every resource, "*" all resources and what is below them
	Name     string // counts only if Named
	Named    bool   // the rule is for one name; of requests without a name, such as create, only the name "" is one
	Path     string // of what is no resource, such as "/metrics"; "/logs/*" is what begins so. Then only Verb counts besides.
}

// maxAtoms bounds what one rule is broken down to. No rule that means something comes near.
const maxAtoms = 20_000

// tooLarge reports whether there are more combinations than are broken down.
func tooLarge(rule rbacv1.PolicyRule) bool {
	product := len(rule.Verbs)
	// Each factor is bounded, so that the product cannot overflow.
	for _, n := range []int{len(rule.APIGroups), len(rule.Resources), max(len(rule.ResourceNames), 1)} {
		if n > maxAtoms || product > maxAtoms {
			return true
		}
		product *= n
	}
	return product > maxAtoms || len(rule.NonResourceURLs) > maxAtoms || len(rule.Verbs)*len(rule.NonResourceURLs) > maxAtoms
}

// count is how many targets a rule has.
func count(rule rbacv1.PolicyRule) int {
	if tooLarge(rule) {
		return 1
	}
	return len(rule.NonResourceURLs) + len(rule.APIGroups)*len(rule.Resources)*max(len(rule.ResourceNames), 1)
}

// targets calls add with all that a rule is about.
func targets(rule rbacv1.PolicyRule, add func(target)) {
	for _, path := range rule.NonResourceURLs {
		add(target{path: canonicalPath(path)})
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if len(rule.ResourceNames) == 0 {
				add(target{group: group, resource: resource})
			}
			for _, name := range rule.ResourceNames {
				add(target{group: group, resource: resource, name: name, named: true})
			}
		}
	}
}

// canonicalPath writes "/a**" as "/a*", which means the same.
func canonicalPath(path string) string {
	if trimmed := strings.TrimRight(path, "*"); trimmed != path {
		return trimmed + "*"
	}
	return path
}

// widened is a rule of few atoms that allows all that the rule does.
func widened(rule rbacv1.PolicyRule) rbacv1.PolicyRule {
	wide := rbacv1.PolicyRule{Verbs: []string{rbacv1.VerbAll}}
	if len(rule.NonResourceURLs) > 0 {
		wide.NonResourceURLs = []string{rbacv1.NonResourceAll}
		return wide
	}
	wide.APIGroups, wide.Resources = []string{rbacv1.APIGroupAll}, []string{rbacv1.ResourceAll}
	return wide
}

func (r Rule) compare(o Rule) int {
	return cmp.Or(r.target().compare(o.target()), cmp.Compare(r.Verb, o.Verb))
}

func (t target) compare(o target) int {
	switch { // one after the other, since most differ early
	case t.path != o.path:
		return cmp.Compare(t.path, o.path)
	case t.group != o.group:
		return cmp.Compare(t.group, o.group)
	case t.resource != o.resource:
		return cmp.Compare(t.resource, o.resource)
	case t.named != o.named:
		if o.named {
			return -1
		}
		return 1
	}
	return cmp.Compare(t.name, o.name)
}

// subresource is what stands behind the slash, "" if nothing does.
func subresource(resource string) string {
	_, below, _ := strings.Cut(resource, "/")
	return below
}
