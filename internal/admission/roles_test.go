// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"testing"
)

func TestUserRolesGiveWhatTheySayAndNoMore(t *testing.T) {
	env := cluster.Env(t)
	namespace, elsewhere := env.NewNamespace(t), env.NewNamespace(t)
	namespaced := []string{"bundles", "bundleinstances", "instancerevisions", "approvals"}
	in := func(namespace, verb string, resources ...string) (rights []right) {
		for _, resource := range resources {
			rights = append(rights, right{verb, "rukpak.io", resource, namespace, ""})
		}
		return rights
	}
	join := func(lists ...[]right) (all []right) {
		for _, list := range lists {
			all = append(all, list...)
		}
		return all
	}
	class := func(verb string) []right { return in("", verb, "provisionerclasses") }
	statuses := in(namespace, "update", "bundles/status", "bundleinstances/status", "instancerevisions/status", "approvals/status")
	secrets := []right{{"get", "", "secrets", namespace, ""}}
	writing := join(in(namespace, "create", "bundles", "bundleinstances"), in(namespace, "patch", "bundleinstances"), in(namespace, "delete", "bundles", "bundleinstances"))
	read := func(resources ...string) (rights []right) {
		for _, resource := range resources {
			rights = append(rights, right{"get", "content.rukpak.io", resource, namespace, "any"})
		}
		return rights
	}
	shown, files := read("instancerevisions/manifests", "instancerevisions/diff"), read("bundles/files", "bundles/archive")
	events := []right{{"list", "", "events", namespace, ""}, {"list", "events.k8s.io", "events", namespace, ""}}
	full, upload := read("instancerevisions/secretmanifests"), []right{{"create", "content.rukpak.io", "uploads", namespace, ""}}
	never := join(statuses, in(namespace, "create", "instancerevisions"), in(namespace, "update", "instancerevisions", "approvals"), in("", "manage", "instancerevisions"))

	for _, test := range []struct {
		role      string
		namespace string // "" binds it in the cluster
		can, not  []right
	}{
		{"view", namespace, join(in(namespace, "list", namespaced...), shown), join(never, files, full, upload, writing, secrets, in(elsewhere, "list", namespaced...), in(namespace, "create", "approvals"))},
		{"edit", namespace, join(in(namespace, "watch", namespaced...), writing, shown, files, upload), join(never, full, in(namespace, "create", "approvals"), class("use"), class("approve"), in(elsewhere, "create", "bundles"))},
		{"admin", namespace, join(in(namespace, "get", namespaced...), writing, shown, files, upload), join(never, full, in(namespace, "create", "approvals"), class("use"), class("approve"))},
		{"rukpak-viewer", "", join(in(elsewhere, "list", namespaced...), class("list"), events), join(never, writing, secrets, class("use"), class("approve"))},
		{"rukpak-editor", namespace, writing, join(never, secrets, class("use"), in(namespace, "create", "approvals"))},
		{"rukpak-approver", namespace, join(events, in(namespace, "create", "approvals"), in(namespace, "delete", "approvals"), in(namespace, "get", namespaced...), shown, files), join(never, full, upload, writing, secrets, class("approve"), in(namespace, "deletecollection", "approvals"))},
		{"rukpak-approver", "", join(in(namespace, "create", "approvals"), class("approve")), join(never, writing, secrets, class("use"))},
		{"rukpak-class-user", "", join(class("use"), class("get")), join(never, writing, class("approve"), class("update"))},
		{"rukpak-plan-reader", namespace, join(secrets, shown, full), join(never, upload, writing, []right{{"delete", "", "secrets", namespace, ""}, {"get", "", "secrets", elsewhere, ""}})},
		{"rukpak-admin", "", join(writing, shown, files, upload, class("use"), class("approve"), class("create"), in(namespace, "create", "approvals")), join(never[:len(never)-3], in("", "manage", "instancerevisions"), secrets, full)},
	} {
		where := map[bool]string{true: "the cluster", false: "a namespace"}[test.namespace == ""]
		t.Run(test.role+" in "+where, func(t *testing.T) {
			user := fmt.Sprintf("%s-%s-%s", test.role, where[:3], namespace)
			bindRole(t, env, user, test.namespace, test.role)
			checkRights(t, user, test.can, test.not)
		})
	}
}

func TestManagerHasWhatItNeedsAndNotWhatItMustNotHave(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	checkRights(t, manager, []right{
		{"list", "", "secrets", namespace, ""}, {"create", "", "secrets", namespace, ""}, {"delete", "", "secrets", namespace, ""},
		{"watch", "apps", "deployments", namespace, ""}, {"watch", "rbac.authorization.k8s.io", "clusterroles", "", ""},
		{"impersonate", "", "serviceaccounts", namespace, "installer"},
		{"create", "authorization.k8s.io", "subjectaccessreviews", "", ""},
		{"create", "", "events", namespace, ""}, {"patch", "events.k8s.io", "events", namespace, ""},
		{"update", "rukpak.io", "instancerevisions/status", namespace, ""}, {"update", "rukpak.io", "bundleinstances/finalizers", namespace, ""},
		{"use", "rukpak.io", "provisionerclasses", "", "any"}, {"manage", "rukpak.io", "instancerevisions", "", ""},
		{"update", "coordination.k8s.io", "leases", "rukpak-system", ""},
		{"get", "", "configmaps", namespace, "any"}, {"get", "", "configmaps", "kube-system", "extension-apiserver-authentication"},
		{"create", "authentication.k8s.io", "tokenreviews", "", ""}, {"patch", "apiregistration.k8s.io", "apiservices", "", "v1alpha1.content.rukpak.io"},
		{"create", "discovery.k8s.io", "endpointslices", "rukpak-system", ""}, {"update", "discovery.k8s.io", "endpointslices", "rukpak-system", "rukpak-content-leader"},
	}, []right{
		{"list", "kinds.example.com", "notyetknown", namespace, ""}, {"get", "apps", "deployments", namespace, "any"},
		{"patch", "apiregistration.k8s.io", "apiservices", "", "v1.apps"}, {"create", "discovery.k8s.io", "endpointslices", namespace, ""},
		{"create", "", "configmaps", namespace, ""}, {"update", "", "secrets", namespace, ""}, {"patch", "apps", "deployments", namespace, ""},
		{"delete", "", "namespaces", "", namespace}, {"create", "rukpak.io", "approvals", namespace, ""}, {"approve", "rukpak.io", "provisionerclasses", "", "any"},
		{"create", "rukpak.io", "bundleinstances", namespace, ""}, {"impersonate", "", "users", "", "admin"}, {"impersonate", "", "groups", "", "system:masters"},
		{"create", "", "serviceaccounts/token", namespace, "installer"}, {"update", "coordination.k8s.io", "leases", namespace, ""},
	})
}

// checkRights waits for what the user can do, and then looks at what it must not.
func checkRights(t *testing.T, user string, can, not []right) {
	t.Helper()
	env := cluster.Env(t)
	for _, r := range can {
		expect(t, "", func(ctx context.Context) error {
			if may(ctx, t, env, user, r) {
				return nil
			}
			return fmt.Errorf("%s may not %s", user, r)
		})
	}
	for _, r := range not {
		if may(t.Context(), t, env, user, r) {
			t.Errorf("%s may %s", user, r)
		}
	}
}
