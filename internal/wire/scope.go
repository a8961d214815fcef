// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/provisioner"
)

// scopes knows from the API server which kinds have namespaces.
type scopes struct{ mapper meta.RESTMapper }

func (s scopes) Namespaced(_ context.Context, phases []provisioner.Phase, namespace string) error {
	return manifest.Namespaced(phases, s.scope, namespace)
}

func (s scopes) scope(kind schema.GroupVersionKind) (namespaced, known bool, err error) {
	mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true, nil
}
