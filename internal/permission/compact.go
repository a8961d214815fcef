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
func (r *Rules) PolicyRules() []rbacv1.PolicyRule {
	if r.Empty() {
		return nil
	}
	sorted := make([]target, 0, len(r.set))
	for t := range r.set {
		sorted = append(sorted, t)
	}
	slices.SortFunc(sorted, target.compare)
	rules := make([]rbacv1.PolicyRule, 0, len(sorted))
	for _, t := range sorted {
		left := r.set[t].canonical().minus(r.on(t, false))
		if left.empty() {
			continue
		}
		rule := rbacv1.PolicyRule{Verbs: left.sorted()}
		switch {
		case t.path != "":
			rule.NonResourceURLs = []string{t.path}
		default:
			rule.APIGroups, rule.Resources = []string{t.group}, []string{t.resource}
			if t.named {
				rule.ResourceNames = []string{t.name}
			}
		}
		rules = append(rules, rule)
	}
	return compact(rules)
}

// compact joins rules that differ in the resource, the name, the path or the group only. They are sorted, and there are
// no two for the same things.
func compact(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for _, field := range []func(*rbacv1.PolicyRule) *[]string{
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
	at := make(map[string]int, len(rules))
	joined := rules[:0]
	for _, rule := range rules {
		values := *field(&rule)
		if len(values) == 0 {
			joined = append(joined, rule)
			continue
		}
		rest := rule
		*field(&rest) = nil
		same := key(rest)
		if i, known := at[same]; known {
			into := field(&joined[i])
			*into = append(*into, values...)
			continue
		}
		at[same] = len(joined)
		joined = append(joined, rule)
	}
	for i := range joined {
		slices.Sort(*field(&joined[i]))
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
