// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval/policy"
	"rukpak.io/rukpak/internal/permission"
)

const permissionRounds = 10 // for each round of other figures

// permissions computes what content may do at runtime and what a new version gains, and has rules judge a large plan.
func permissions(_ context.Context, b *bench) ([]Row, error) {
	expansion, err := expanding(b)
	if err != nil {
		return nil, err
	}
	verdict, err := judging(b)
	return []Row{expansion, verdict}, err
}

// expanding is from the roles and bindings of a cluster, and the objects of two revisions, to what is gained.
func expanding(b *bench) (Row, error) {
	roles, rules := b.scaled(2000), b.scaled(1000)
	row := Row{
		What: fmt.Sprintf("effective permissions and expansion: %d rules, against %d roles and %d bindings", rules, roles, roles),
		Unit: "ms", Target: below(100),
	}
	live := liveRoles(roles)
	old, err := contentRoles(rules, 0)
	if err != nil {
		return row, err
	}
	new, err := contentRoles(rules, 3)
	if err != nil {
		return row, err
	}
	var times []float64
	for range b.rounds * permissionRounds {
		begun := time.Now()
		powers, expansion, err := permission.Between(old, new, permission.NewSnapshot(live))
		if err != nil {
			return row, err
		}
		times = append(times, milliseconds(time.Since(begun)))
		row.Details = map[string]any{"grants": len(powers.Grants), "gained": len(expansion.Gained.Grants)}
		if !expansion.Grows() {
			return row, errors.New("nothing is gained, though the new version has rules that the old one has not")
		}
	}
	row.Measured = median(times)
	return row, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func ruleAbout(i int) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{fmt.Sprintf("group-%d.example.com", i%200)}, Verbs: []string{"get", "list", "watch", "create", "patch"},
		Resources: []string{fmt.Sprintf("things%d", i), fmt.Sprintf("things%d/status", i)},
	}
}

// liveRoles is a cluster: half of its roles and bindings are of namespaces, and one cluster role in fifty is aggregated.
func liveRoles(count int) permission.Live {
	var live permission.Live
	for i := range count / 2 {
		about := metav1.ObjectMeta{Name: fmt.Sprintf("live-%d", i), Namespace: fmt.Sprintf("ns-%d", i%100)}
		subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: about.Namespace, Name: fmt.Sprintf("app-%d", i%30)}}
		live.Roles = append(live.Roles, &rbacv1.Role{ObjectMeta: about, Rules: []rbacv1.PolicyRule{ruleAbout(i), ruleAbout(i + 1)}})
		live.RoleBindings = append(live.RoleBindings, &rbacv1.RoleBinding{ObjectMeta: about, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: about.Name}})
		about.Namespace, about.Labels = "", map[string]string{"to": fmt.Sprint(i % 10)}
		role := &rbacv1.ClusterRole{ObjectMeta: about, Rules: []rbacv1.PolicyRule{ruleAbout(i), ruleAbout(i + 7)}}
		if i%50 == 0 {
			role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"to": fmt.Sprint(i / 50 % 10)}}}}
		}
		live.ClusterRoles = append(live.ClusterRoles, role)
		live.ClusterRoleBindings = append(live.ClusterRoleBindings, &rbacv1.ClusterRoleBinding{ObjectMeta: about, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: about.Name}})
	}
	return live
}

// rulesOfRole is how many rules a role of the content has.
const rulesOfRole = 50

// contentRoles are cluster roles with so many rules in all, from a number on, each bound to one of five accounts, and
// each part of what is aggregated in the cluster.
func contentRoles(count, from int) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for i := 0; i*rulesOfRole < count; i++ {
		about := metav1.ObjectMeta{Name: fmt.Sprintf("content-%d", i), Labels: map[string]string{"to": "3"}}
		role := &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}, ObjectMeta: about}
		for j := range min(rulesOfRole, count-i*rulesOfRole) {
			role.Rules = append(role.Rules, ruleAbout(i*rulesOfRole+j+from))
		}
		binding := &rbacv1.ClusterRoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"}, ObjectMeta: about,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: about.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ns-1", Name: fmt.Sprintf("app-%d", i%5)}},
		}
		for _, object := range []any{role, binding} {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				return nil, err
			}
			all = append(all, &unstructured.Unstructured{Object: fields})
		}
	}
	return all, nil
}

// judging is one verdict of five rules, of which the last one matches: each item of the plan is looked at.
func judging(b *bench) (Row, error) {
	facts := largePlan(b.scaled(10_000), b.scaled(1000), b.scaled(200))
	row := Row{
		What: fmt.Sprintf("verdict of 5 rules on %d objects, %d gained permissions and %d images", len(facts.Plan.Objects), len(facts.Plan.Permissions.Gained), len(facts.Plan.Images)),
		Unit: "ms", Target: below(5),
	}
	compiled, err := policy.Compile([]v1alpha1.ApprovalRule{
		{Name: "no-secrets", Then: v1alpha1.RuleDenies, When: "plan.permissions.gained.exists(p, 'secrets' in p.resources || '*' in p.resources)"},
		{Name: "nothing-is-removed", Then: v1alpha1.RuleRequires, When: "plan.objects.exists(o, o.action == 'Remove' && o.kind in ['Namespace', 'PersistentVolumeClaim'])"},
		{Name: "registries", Then: v1alpha1.RuleDenies, When: "!plan.images.all(i, i.registry == 'registry.example.com' && i.digest != '')"},
		{Name: "no-growth", Then: v1alpha1.RuleApproves, When: "plan.permissions.gained.size() == 0 && plan.permissions.mayGain.size() == 0"},
		{Name: "working-hours", Then: v1alpha1.RuleApproves, When: "now.getHours('Europe/Berlin') >= 0 && bundle.verified"},
	})
	if err != nil {
		return row, err
	}
	var times []float64
	for range b.rounds * permissionRounds {
		begun := time.Now()
		verdict := compiled.Judge(facts)
		times = append(times, milliseconds(time.Since(begun)))
		if verdict.Rule != "working-hours" {
			return row, fmt.Errorf("the rule that decided is %q: %s", verdict.Rule, verdict.Message)
		}
	}
	row.Measured = median(times)
	return row, nil
}

func largePlan(objects, gained, images int) *policy.Facts {
	f := &policy.Facts{Now: time.Now(), Bundle: policy.Bundle{Verified: true}, Plan: policy.Plan{Changed: int64(objects), Permissions: &policy.Permissions{}}}
	for i := range objects {
		f.Plan.Objects = append(f.Plan.Objects, policy.Object{Action: "Change", Group: "apps", Kind: "Deployment", Namespace: "web", Name: fmt.Sprintf("web-%d", i)})
	}
	for i := range gained {
		f.Plan.Permissions.Gained = append(f.Plan.Permissions.Gained, policy.Permission{
			Power: "Grant", Subject: policy.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "web", Name: fmt.Sprintf("web-%d", i)},
			Verbs: []string{"get", "list"}, Groups: []string{"apps"}, Resources: []string{"deployments", "statefulsets"},
		})
	}
	for i := range images {
		f.Plan.Images = append(f.Plan.Images, policy.Image{Registry: "registry.example.com", Repository: fmt.Sprintf("web-%d", i), Digest: "sha256:aa"})
	}
	return f
}
