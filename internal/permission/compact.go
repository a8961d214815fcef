// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// PolicyRules writes the set as few rules of RBAC, in an order that depends on nothing but what is allowed.
func (r *Rules) PolicyRules() []rbacv1.PolicyRule { return compact(r.Canonical()) }

// compact joins what differs in the verb only, then in the resource, the name or the group only.
func compact(sorted []Rule) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, rule := range sorted {
		one := rbacv1.PolicyRule{Verbs: []string{rule.Verb}}
		switch {
		case rule.Path != "":
			one.NonResourceURLs = []string{rule.Path}
		default:
			one.APIGroups, one.Resources = []string{rule.Group}, []string{rule.Resource}
			if rule.Named {
				one.ResourceNames = []string{rule.Name}
			}
		}
		rules = append(rules, one)
	}
	for _, field := range []func(*rbacv1.PolicyRule) *[]string{
		func(r *rbacv1.PolicyRule) *[]string { return &r.Verbs },
		func(r *rbacv1.PolicyRule) *[]string { return &r.Resources },
		func(r *rbacv1.PolicyRule) *[]string { return &r.ResourceNames },
		func(r *rbacv1.PolicyRule) *[]string { return &r.NonResourceURLs },
		func(r *rbacv1.PolicyRule) *[]string { return &r.APIGroups },
	} {
		rules = join(rules, field)
	}
	slices.SortFunc(rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(cmp.Compare(len(a.NonResourceURLs), len(b.NonResourceURLs)), cmp.Compare(key(a), key(b)))
	})
	return rules
}

// join makes one rule of those that differ in one field only. A field that is empty means something else than any
// value, so rules without one are left alone.
func join(rules []rbacv1.PolicyRule, field func(*rbacv1.PolicyRule) *[]string) []rbacv1.PolicyRule {
	at := map[string]int{}
	var joined []rbacv1.PolicyRule
	for _, rule := range rules {
		values := *field(&rule)
		if len(values) == 0 {
			joined = append(joined, rule)
			continue
		}
		rest := rule
		*field(&rest) = nil
		if i, known := at[key(rest)]; known {
			into := field(&joined[i])
			*into = append(*into, values...)
			continue
		}
		at[key(rest)] = len(joined)
		joined = append(joined, rule)
	}
	for i := range joined {
		values := field(&joined[i])
		slices.Sort(*values)
		*values = slices.Compact(*values)
	}
	return joined
}

// key is a text that tells rules apart.
func key(r rbacv1.PolicyRule) string {
	var b strings.Builder
	for _, list := range [][]string{r.APIGroups, r.Resources, r.ResourceNames, r.Verbs, r.NonResourceURLs} {
		for _, one := range list {
			b.WriteString(one)
			b.WriteByte(0)
		}
		b.WriteByte(1)
	}
	return b.String()
}

// Line writes a rule for people, such as `get,list pods.apps/log "web"`.
func Line(r rbacv1.PolicyRule) string {
	verbs := strings.Join(r.Verbs, ",")
	if len(r.NonResourceURLs) > 0 {
		return verbs + " " + strings.Join(r.NonResourceURLs, ",")
	}
	groups := strings.Join(r.APIGroups, ",")
	if groups != "" {
		groups = " of " + groups
	}
	names := ""
	if len(r.ResourceNames) > 0 {
		names = fmt.Sprintf(" %q", r.ResourceNames)
	}
	return verbs + " " + strings.Join(r.Resources, ",") + groups + names
}
