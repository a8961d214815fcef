// SPDX-License-Identifier: Apache-2.0

package plan

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
)

const rbacGroup = "rbac.authorization.k8s.io"

func isRole(kind schema.GroupKind) bool {
	return kind.Group == rbacGroup && (kind.Kind == "Role" || kind.Kind == "ClusterRole")
}

// boundRole is the role that a binding names; ok is false for what is no binding.
func boundRole(object *unstructured.Unstructured) (role ownership.ID, ok bool) {
	kind := object.GroupVersionKind().GroupKind()
	if kind.Group != rbacGroup || kind.Kind != "RoleBinding" && kind.Kind != "ClusterRoleBinding" {
		return ownership.ID{}, false
	}
	role = ownership.ID{Group: rbacGroup, Kind: text(object, "roleRef", "kind"), Name: text(object, "roleRef", "name")}
	if role.Kind == "Role" {
		role.Namespace = object.GetNamespace()
	}
	return role, true
}

// lacksRole reports whether a binding failed because its role does not exist. Who may not bind any role must hold what
// the role allows, so the API server looks for it.
func (b bringing) lacksRole(object *unstructured.Unstructured, err *activate.Error) (role ownership.ID, lacks bool) {
	role, ok := boundRole(object)
	return role, ok && b.roles[role] && apierrors.IsNotFound(err.Err)
}
