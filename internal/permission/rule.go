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

// atoms breaks a rule down. It is false if that would be too many.
func atoms(rule rbacv1.PolicyRule, add func(Rule)) bool {
	names := max(len(rule.ResourceNames), 1)
	// Each factor is bounded first, so that the product cannot overflow.
	for _, n := range []int{len(rule.Verbs), len(rule.APIGroups), len(rule.Resources), names, len(rule.NonResourceURLs)} {
		if n > maxAtoms {
			return false
		}
	}
	if len(rule.APIGroups)*len(rule.Resources) > maxAtoms || len(rule.Verbs)*names > maxAtoms ||
		len(rule.APIGroups)*len(rule.Resources)*len(rule.Verbs)*names > maxAtoms || len(rule.NonResourceURLs)*len(rule.Verbs) > maxAtoms {
		return false
	}
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			add(Rule{Verb: verb, Path: canonicalPath(path)})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if len(rule.ResourceNames) == 0 {
					add(Rule{Verb: verb, Group: group, Resource: resource})
				}
				for _, name := range rule.ResourceNames {
					add(Rule{Verb: verb, Group: group, Resource: resource, Name: name, Named: true})
				}
			}
		}
	}
	return true
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
	return cmp.Or(
		cmp.Compare(r.Path, o.Path), cmp.Compare(r.Group, o.Group), cmp.Compare(r.Resource, o.Resource), cmpBool(r.Named, o.Named),
		cmp.Compare(r.Name, o.Name), cmp.Compare(r.Verb, o.Verb),
	)
}

func cmpBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// subresource is what stands behind the slash, "" if nothing does.
func subresource(resource string) string {
	_, below, _ := strings.Cut(resource, "/")
	return below
}
