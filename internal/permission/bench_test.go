// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func benchRule(i int) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{fmt.Sprintf("group-%d.example.com", i%200)}, Resources: []string{fmt.Sprintf("things%d", i), fmt.Sprintf("things%d/status", i)},
		Verbs: []string{"get", "list", "watch", "create", "patch"},
	}
}

// benchLive is 2,000 roles, of which some are aggregated, and 2,000 bindings.
func benchLive() Live {
	var live Live
	for i := range 1000 {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("live-%d", i), Namespace: fmt.Sprintf("ns-%d", i%100)}
		live.Roles = append(live.Roles, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{benchRule(i), benchRule(i + 1)}})
		subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: meta.Namespace, Name: fmt.Sprintf("app-%d", i%30)}}
		live.RoleBindings = append(live.RoleBindings, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: meta.Name}})
		meta.Namespace, meta.Labels = "", map[string]string{"to": fmt.Sprint(i % 10)}
		cluster := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{benchRule(i), benchRule(i + 7)}}
		if i%50 == 0 {
			cluster.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"to": fmt.Sprint(i / 50 % 10)}}}}
		}
		live.ClusterRoles = append(live.ClusterRoles, cluster)
		live.ClusterRoleBindings = append(live.ClusterRoleBindings, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: meta.Name}})
	}
	return live
}

// benchContent is 20 roles of 50 rules, bound to accounts, and one that is aggregated by live ones.
func benchContent(b *testing.B, more int) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for i := range 20 {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("content-%d", i), Labels: map[string]string{"to": "3"}}
		var rules []rbacv1.PolicyRule
		for j := range 50 {
			rules = append(rules, benchRule(i*50+j+more))
		}
		all = append(all,
			loose(b, &rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: meta, Rules: rules}),
			loose(b, &rbacv1.ClusterRoleBinding{
				TypeMeta: rbacType("ClusterRoleBinding"), ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: meta.Name},
				Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns-1", Name: fmt.Sprintf("app-%d", i%5)}},
			}))
	}
	return all
}

// The target of issue 5 is 100 ms for all of it.
func BenchmarkPowersAndExpansion(b *testing.B) {
	live, old, new := benchLive(), benchContent(b, 0), benchContent(b, 3)
	b.ReportAllocs()
	for b.Loop() {
		_, expansion, err := Between(old, new, NewSnapshot(live))
		if err != nil || !expansion.Grows() {
			b.Fatal(err)
		}
	}
}
