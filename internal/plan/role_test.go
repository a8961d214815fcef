// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"rukpak.io/rukpak/internal/plan"
)

// An account that holds what a role allows may bind it, though not any role. In a dry run the role is not there yet.
func TestBindingOfARoleInTheSameSetComesAfterIt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	verbs := []string{"get", "create", "patch", "delete"}
	s.account = s.env.ClusterServiceAccount(t, s.namespace,
		rbacv1.PolicyRule{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}, Verbs: verbs},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
	)
	const api, rules = "apiVersion: rbac.authorization.k8s.io/v1, ", `rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]`
	binding := func(kind, roleKind, name string) string {
		return "{" + api + "kind: " + kind + ", metadata: {name: " + s.namespace + "-" + name + "}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: " +
			roleKind + ", name: " + s.namespace + "-" + name + "}, subjects: [{kind: ServiceAccount, name: a, namespace: " + s.namespace + "}]}"
	}
	p := s.plan(nil, objects{
		parse(t, "{"+api+"kind: Role, metadata: {name: "+s.namespace+"-here}, "+rules+"}"),
		parse(t, binding("RoleBinding", "Role", "here")),
		parse(t, "{"+api+"kind: ClusterRole, metadata: {name: "+s.namespace+"-all}, "+rules+"}"),
		parse(t, binding("ClusterRoleBinding", "ClusterRole", "all")),
		parse(t, binding("ClusterRoleBinding", "ClusterRole", "not")),
	})
	for _, test := range []struct{ kind, name, after string }{
		{"RoleBinding", "here", "Role.rbac.authorization.k8s.io " + s.namespace + "/" + s.namespace + "-here"},
		{"ClusterRoleBinding", "all", "ClusterRole.rbac.authorization.k8s.io " + s.namespace + "-all"},
	} {
		if c := s.change(p, test.kind, s.namespace+"-"+test.name); c.Action != plan.Add || c.Problem != nil || c.After != test.after {
			t.Errorf("%s %s: %+v", test.kind, test.name, c)
		}
	}
	if c := s.change(p, "ClusterRoleBinding", s.namespace+"-not"); c.Problem == nil {
		t.Errorf("a role that nobody brings is no problem: %+v", c)
	}
}
