// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestApprovalIsTheUsersOwnAndNeedsTheVerbOnItsClass(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user, acting := writer(t, env, namespace)
	grant(t, env, user, approve("reviewed"))

	for _, test := range []struct{ name, approver, class, want string }{
		{"own name and class with the verb", user, "reviewed", ""},
		{"name of another user", "somebody", "reviewed", `spec.approver is "somebody" but you are "` + user + `"`},
		{"name that looks like one's own", "\u0430" + user[1:], "reviewed", `spec.approver is "` + "\u0430" + user[1:] + `" but you are "` + user + `"`},
		{"one's own name with what has no width", user + "\u200b", "reviewed", `" but you are "` + user + `"`},
		{"class that looks like the one with the verb", user, "r\u0435viewed", `may not approve for the class`},
		{"class without the verb", user, "other", `user "` + user + `" may not approve for the class "other": grant the verb "approve"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect(t, test.want, dryCreate(acting, approvalYAML(namespace, test.approver, test.class)))
		})
	}
}

func TestVerbInOneNamespaceDoesNotLetAnybodyApprove(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user, acting := writer(t, env, namespace) // holds every verb on everything of rukpak.io there
	expect(t, "may not approve for the class", dryCreate(acting, approvalYAML(namespace, user, "reviewed")))
}

func TestServiceAccountCanApproveAsItself(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user := "system:serviceaccount:" + namespace + ":policy"
	grant(t, env, user, approve("reviewed"), right{"create", "rukpak.io", "approvals", namespace, ""})
	expect(t, "", dryCreate(as(t, env, user), approvalYAML(namespace, user, "reviewed")))
}

func TestApprovalCannotBeChanged(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	made := mustCreate(t, env, approvalYAML(namespace, "admin", "reviewed"))
	admin := adminClient(t, env)
	expect(t, "an Approval cannot be changed; create another one", dryPatch(admin, made, "", `{"spec":{"decision":"Deny"}}`))
	expect(t, "", dryPatch(admin, made, "", `{"metadata":{"labels":{"ticket":"42"}}}`))
}

func TestAnApprovalIsTakenBackByItsUserOnly(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	ann, bob, chief := "ann-of-"+namespace, "bob-of-"+namespace, "chief-of-"+namespace
	remove := right{"delete", "rukpak.io", "approvals", namespace, ""}
	grant(t, env, ann, remove, right{"create", "rukpak.io", "approvals", namespace, ""}, approve("reviewed"))
	grant(t, env, bob, right{"delete", "rukpak.io", "approvals", "", ""}, approve("reviewed")) // in all namespaces, as an approver of the cluster
	grant(t, env, chief, remove, right{"deletecollection", "rukpak.io", "approvals", namespace, ""})
	made := object(approvalYAML(namespace, ann, "reviewed"))
	if err := as(t, env, ann).Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	taking := func(user string) func(context.Context) error {
		acting := as(t, env, user)
		return func(ctx context.Context) error { return acting.Delete(ctx, made.DeepCopy(), client.DryRunAll) }
	}
	expect(t, `the Approval is of "`+ann+`" and you are "`+bob+`"`, taking(bob))
	expect(t, "", taking(chief))
	expect(t, "", taking(ann))
}

func TestTheGarbageCollectorRemovesApprovals(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	collected(t, env, namespace, object(approvalYAML(namespace, "admin", "reviewed")))
}
