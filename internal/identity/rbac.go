// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// RBAC returns the least that grants a service account what it lacks, as YAML for `kubectl apply`: a Role and its
// binding for each namespace, and a ClusterRole and its binding for what has no namespace. The same accesses give the
// same text; none give "".
func RBAC(missing []Access, namespace, account string) (string, error) {
	rules := map[string][]rbacv1.PolicyRule{}
	var namespaces []string
	for _, joined := range byVerbs(missing) {
		if rules[joined.Namespace] == nil {
			namespaces = append(namespaces, joined.Namespace)
		}
		rules[joined.Namespace] = append(rules[joined.Namespace], joined.rule())
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}
	name := fmt.Sprintf("rukpak:%s:%s", namespace, account)
	var documents []string
	for _, in := range namespaces { // they came sorted
		for _, object := range grant(in, name, compact(rules[in]), subjects) {
			text, err := yaml.Marshal(object)
			if err != nil {
				return "", fmt.Errorf("write RBAC for ServiceAccount %s/%s: %w", namespace, account, err)
			}
			documents = append(documents, string(text))
		}
	}
	return strings.Join(documents, "---\n"), nil
}

func (s several) rule() rbacv1.PolicyRule {
	if s.Path != "" {
		return rbacv1.PolicyRule{Verbs: s.verbs, NonResourceURLs: []string{s.Path}}
	}
	resource := s.Resource
	if s.Subresource != "" {
		resource += "/" + s.Subresource
	}
	rule := rbacv1.PolicyRule{Verbs: s.verbs, APIGroups: []string{s.Group}, Resources: []string{resource}}
	if s.Name != "" {
		rule.ResourceNames = []string{s.Name}
	}
	return rule
}

// compact joins rules that differ in their resources only, and then those that differ in their names only.
func compact(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	join := func(rules []rbacv1.PolicyRule, rest func(rbacv1.PolicyRule) string, into func(*rbacv1.PolicyRule, rbacv1.PolicyRule)) []rbacv1.PolicyRule {
		at := map[string]int{}
		var joined []rbacv1.PolicyRule
		for _, rule := range rules {
			key := rest(rule)
			if i, known := at[key]; known {
				into(&joined[i], rule)
				continue
			}
			at[key] = len(joined)
			joined = append(joined, rule)
		}
		return joined
	}
	rules = join(rules, func(r rbacv1.PolicyRule) string {
		return fmt.Sprintf("%q %q %q %t", r.Verbs, r.APIGroups, r.ResourceNames, r.NonResourceURLs != nil)
	}, func(to *rbacv1.PolicyRule, from rbacv1.PolicyRule) {
		to.Resources = append(to.Resources, from.Resources...)
		to.NonResourceURLs = append(to.NonResourceURLs, from.NonResourceURLs...)
	})
	rules = join(rules, func(r rbacv1.PolicyRule) string {
		if len(r.ResourceNames) == 0 {
			return fmt.Sprintf("%q", r) // nothing is narrower than a rule without names
		}
		return fmt.Sprintf("%q %q %q", r.Verbs, r.APIGroups, r.Resources)
	}, func(to *rbacv1.PolicyRule, from rbacv1.PolicyRule) {
		to.ResourceNames = append(to.ResourceNames, from.ResourceNames...)
	})
	slices.SortStableFunc(rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Compare(fmt.Sprint(a.APIGroups, a.Resources), fmt.Sprint(b.APIGroups, b.Resources))
	})
	return rules
}

// grant returns a role and its binding; without a namespace, for the whole cluster.
func grant(namespace, name string, rules []rbacv1.PolicyRule, subjects []rbacv1.Subject) []runtime.Object {
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	object := metav1.ObjectMeta{Namespace: namespace, Name: name}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Name: name}
	if namespace == corev1.NamespaceAll {
		ref.Kind = "ClusterRole"
		return []runtime.Object{
			&rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: object, Rules: rules},
			&rbacv1.ClusterRoleBinding{TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: object, Subjects: subjects, RoleRef: ref},
		}
	}
	ref.Kind = "Role"
	return []runtime.Object{
		&rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: object, Rules: rules},
		&rbacv1.RoleBinding{TypeMeta: kind("RoleBinding"), ObjectMeta: object, Subjects: subjects, RoleRef: ref},
	}
}
