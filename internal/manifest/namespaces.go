// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/provisioner"
)

// Scope tells of a kind whether its objects have a namespace; known is false
// for a kind that is not served.
type Scope func(kind schema.GroupVersionKind) (namespaced, known bool, err error)

// UnknownKindError is a kind that neither the API server serves nor a CRD in
// the set defines. It may be served later.
type UnknownKindError struct {
	Kind   schema.GroupVersionKind
	Object string
}

// Error names the kind, the object and what to do.
func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("%s: the API server does not serve %s, and no CustomResourceDefinition in the bundle defines it; install the CRD first",
		e.Object, e.Kind.GroupVersion().WithKind(e.Kind.Kind).String())
}

// Namespaced puts namespaced objects that name no namespace into the given
// one, as kubectl does, and takes the namespace off cluster-scoped objects.
// The objects are changed in place.
func Namespaced(phases []provisioner.Phase, scope Scope, namespace string) error {
	defined := definedScopes(phases)
	for _, phase := range phases {
		for _, object := range phase.Objects {
			kind := object.GroupVersionKind()
			namespaced, known := defined[kind.GroupKind()]
			if !known {
				var err error
				if namespaced, known, err = scope(kind); err != nil {
					return fmt.Errorf("scope of %s: %w", kind, err)
				}
			}
			switch {
			case !known:
				return &UnknownKindError{Kind: kind, Object: fmt.Sprintf("%s %q", kind.Kind, object.GetName())}
			case namespaced && object.GetNamespace() == "":
				object.SetNamespace(namespace)
			case !namespaced:
				unstructured.RemoveNestedField(object.Object, "metadata", "namespace")
			}
		}
	}
	return nil
}

// definedScopes reads the scopes of the kinds that CRDs in the set define.
func definedScopes(phases []provisioner.Phase) map[schema.GroupKind]bool {
	scopes := map[schema.GroupKind]bool{}
	for _, phase := range phases {
		for _, object := range phase.Objects {
			if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
				continue
			}
			group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
			scope, _, _ := unstructured.NestedString(object.Object, "spec", "scope")
			scopes[schema.GroupKind{Group: group, Kind: kind}] = scope == "Namespaced"
		}
	}
	return scopes
}
