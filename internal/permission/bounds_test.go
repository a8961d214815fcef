// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"errors"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// wide is a rule of so many combinations, each of which only it has.
func wide(which, combinations int) rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{Verbs: []string{"get"}}
	for i := range 100 {
		rule.APIGroups = append(rule.APIGroups, fmt.Sprintf("g%d-%d.example.com", which, i))
	}
	for i := range combinations / 100 {
		rule.Resources = append(rule.Resources, fmt.Sprintf("r%d", i))
	}
	return rule
}

// granted is a role with rules, bound to so many accounts.
func granted(t *testing.T, accounts int, rules ...rbacv1.PolicyRule) []*unstructured.Unstructured {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: "n", Name: "r"}
	binding := &rbacv1.RoleBinding{TypeMeta: rbacType("RoleBinding"), ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"}}
	for i := range accounts {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "n", Name: fmt.Sprintf("a%d", i)})
	}
	return []*unstructured.Unstructured{
		loose(t, &rbacv1.Role{TypeMeta: rbacType("Role"), ObjectMeta: meta, Rules: rules}), loose(t, binding),
	}
}

// Rules that are each within bounds, and together are not: 40 KB of them would take gigabytes.
func TestContentWithMoreRulesThanCanBeLookedThroughIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		accounts, rules, combinations int
		tooLarge                      bool
	}{
		"as much as is":   {1, 3, 10_000, false},
		"many wide rules": {1, 50, 10_000, true},
		"many accounts":   {200, 1, 1_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			var rules []rbacv1.PolicyRule
			for i := range test.rules {
				rules = append(rules, wide(i, test.combinations))
			}
			content := granted(t, test.accounts, rules...)
			_, _, err := Between(nil, content, NewSnapshot(Live{}))
			var found *TooLargeError
			if errors.As(err, &found) != test.tooLarge {
				t.Errorf("got %v", err)
			}
			// The next version is a small one: that is compared with something that is not known.
			if _, _, err := Between(content, granted(t, 1, wide(0, 100)), NewSnapshot(Live{})); errors.As(err, &found) != test.tooLarge {
				t.Errorf("against it: %v", err)
			}
		})
	}
}
