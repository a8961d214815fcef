// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

// noGrowth is what examples/policies/no-growth.yaml says, but for the first revision.
func noGrowth(p *v1alpha1.ApprovalPolicy) {
	p.Mode = v1alpha1.ApprovalByPolicy
	p.Rules = []v1alpha1.ApprovalRule{
		{Name: "adopts", When: "plan.conflicts > 0 || plan.objects.exists(o, o.adopted)", Then: v1alpha1.RuleRequires},
		{Name: "first", When: "plan.against == 0", Then: v1alpha1.RuleRequires},
		{Name: "no-growth", Then: v1alpha1.RuleApproves, When: "plan.permissions.gained.size() == 0 && plan.permissions.mayGain.size() == 0 && " +
			"(plan.podSecurity.after in ['', 'restricted'] || plan.podSecurity.after == plan.podSecurity.before)"},
		{Name: "growth", When: "true", Then: v1alpha1.RuleRequires, Message: "it may do more than before"},
	}
}

// rightsOf is a bundle of an account, a role with rules, and the binding of both.
func rightsOf(rules string) string {
	return `apiVersion: v1
kind: ServiceAccount
metadata: {name: worker}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: worker}
rules: ` + rules + `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: worker}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: worker}
subjects: [{kind: ServiceAccount, name: worker}]
`
}

func TestOnlyWhatGrowsWaitsForAPerson(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.changeClass(noGrowth)
	const read = `[{apiGroups: [""], resources: [configmaps, services], verbs: [get, list]}]`
	a.instance("app", a.push("v1", map[string]string{"a.yaml": rightsOf(read)}))
	a.planned("app-1")
	says := func(revision string, lines ...string) {
		t.Helper()
		found := a.revision(revision).Status.Plan.Permissions
		if found == nil || found.Unknown != "" {
			t.Fatalf("%s: permissions are not known: %+v", revision, found)
		}
		got := slices.Concat(found.Gained, found.MayGain)
		for _, line := range lines {
			if !slices.ContainsFunc(got, func(one string) bool { return strings.Contains(one, line) }) {
				t.Errorf("%s: %q is not in\n%s", revision, line, strings.Join(got, "\n"))
			}
		}
		if len(lines) == 0 && len(got) > 0 {
			t.Errorf("%s: nothing grows, but it says\n%s", revision, strings.Join(got, "\n"))
		}
	}
	says("app-1", "ServiceAccount "+a.namespace+"/worker may get, list configmaps, services in namespace "+a.namespace)
	if got := a.votes("admin", "app-1"); got != v1alpha1.ReasonCounted {
		t.Fatalf("the first approval: %s", got)
	}
	a.ready("app")

	next := 1
	push := func(files map[string]string) string {
		t.Helper()
		next++
		ref := a.push(fmt.Sprintf("v%d", next), files)
		a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(ref) })
		return fmt.Sprintf("app-%d", next)
	}
	active := func(revision string) {
		t.Helper()
		a.planned(revision)
		a.eventually(revision+" is active", func(context.Context) error {
			if found := a.revision(revision); !meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.ConditionActive) {
				return fmt.Errorf("%+v", found.Status.Conditions)
			}
			return nil
		})
	}

	same := push(map[string]string{"a.yaml": rightsOf(`[{apiGroups: [""], resources: [services], verbs: [list, get]}, {apiGroups: [""], resources: [configmaps], verbs: [get]}, {apiGroups: [""], resources: [configmaps], verbs: [list, get]}]`), "b.yaml": configMap("one", "1")})
	active(same)
	says(same)
	if got := a.revision(same).Status.Decisions; len(got) != 1 || got[0].Approver != "class/"+a.class || !strings.Contains(got[0].Message, "no-growth") {
		t.Errorf("%s is decided by %+v", same, got)
	}
	less := push(map[string]string{"a.yaml": rightsOf(`[{apiGroups: [""], resources: [services], verbs: [get, list]}]`)})
	active(less)
	says(less)

	for name, test := range map[string]struct {
		files map[string]string
		says  string
	}{
		"a verb": {map[string]string{"a.yaml": rightsOf(`[{apiGroups: [""], resources: [services], verbs: [get, list, delete]}]`)}, "worker may delete services"},
		"a role that exists": {map[string]string{"a.yaml": rightsOf(`[{apiGroups: [""], resources: [services], verbs: [get, list]}]`),
			"b.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: more}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}\nsubjects: [{kind: ServiceAccount, name: worker}]\n"}, "secrets"},
		"everybody": {map[string]string{"a.yaml": rightsOf(`[{apiGroups: [""], resources: [services], verbs: [get, list]}]`),
			"b.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: all}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: worker}\nsubjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: \"system:unauthenticated\"}]\n"}, "Group system:unauthenticated may get, list services"},
		"a Pod of the node": {map[string]string{"a.yaml": rightsOf(`[{apiGroups: [""], resources: [services], verbs: [get, list]}]`),
			"b.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  replicas: 0\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {hostNetwork: true, automountServiceAccountToken: false, containers: [{name: c, image: \"example.com/c:1\"}]}\n"}, "share the node's namespace Network"},
	} {
		revision := push(test.files)
		a.planned(revision)
		says(revision, test.says)
		a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
		a.eventually("the rule says why it waits: "+name, func(context.Context) error {
			if got := a.message("app", v1alpha1.ConditionApproved); !strings.Contains(got, "it may do more than before") {
				return fmt.Errorf("%s", got)
			}
			return nil
		})
		if got := a.revision(revision); got.Status.ActivatedAt != nil {
			t.Errorf("%s: %s was activated", name, revision)
		}
	}
}
