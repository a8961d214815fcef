// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// Scope tells of a kind whether its objects are namespaced. For a kind that is not served, known is false and err nil.
type Scope func(kind schema.GroupVersionKind) (namespaced, known bool, err error)

// UnknownKindError says that objects are of kinds which neither the cluster serves nor a CustomResourceDefinition among
// the objects defines. It may pass: somebody can install the definition.
type UnknownKindError struct {
	Kinds []UnknownKind // sorted
}

// UnknownKind is a kind with the first object that is of it.
type UnknownKind struct {
	Kind   schema.GroupVersionKind
	Object ownership.ID
}

// Error names every kind, an object of it, and what to do.
func (e *UnknownKindError) Error() string {
	var kinds []string
	for _, unknown := range e.Kinds {
		kinds = append(kinds, fmt.Sprintf("%s %s (of %s)", unknown.Kind.GroupVersion(), unknown.Kind.Kind, unknown.Object))
	}
	return "the cluster does not serve " + strings.Join(kinds, ", ") +
		", nor does a CustomResourceDefinition in the bundle define it: install the definition, add it to the bundle, or correct apiVersion and kind"
}

// Namespaced puts the objects of phases into namespaces, as kubectl apply would: a namespaced object without one gets
// namespace, and a cluster-scoped object with one loses it. CustomResourceDefinitions among the objects count before
// scope does. Objects are replaced in their phase, never changed. Kinds that nobody knows are an *UnknownKindError; two
// objects that are one after all are a *provisioner.InputError; what scope fails with is wrapped.
func Namespaced(phases []provisioner.Phase, scope Scope, namespace string) error {
	all := Set{Phases: phases}.Objects()
	scope = withCRDs(all, scope)
	unknown := map[schema.GroupVersionKind]ownership.ID{}
	for _, phase := range phases {
		for i, object := range phase.Objects {
			kind := object.GroupVersionKind()
			namespaced, known, err := scope(kind)
			if err != nil {
				return fmt.Errorf("scope of %s: %w", kind, err)
			}
			if !known {
				if _, seen := unknown[kind]; !seen {
					unknown[kind] = ownership.IDOf(object)
				}
				continue
			}
			phase.Objects[i] = inNamespace(object, namespaced, namespace)
		}
	}
	if len(unknown) > 0 {
		return unknownKinds(unknown)
	}
	if len(all) == 0 {
		return nil // whether that is meant Encode knows
	}
	return Set{Phases: phases}.check()
}

func unknownKinds(found map[schema.GroupVersionKind]ownership.ID) error {
	err := &UnknownKindError{}
	for kind, id := range found {
		err.Kinds = append(err.Kinds, UnknownKind{Kind: kind, Object: id})
	}
	slices.SortFunc(err.Kinds, func(a, b UnknownKind) int { return strings.Compare(a.Kind.String(), b.Kind.String()) })
	return err
}

func inNamespace(object *unstructured.Unstructured, namespaced bool, namespace string) *unstructured.Unstructured {
	switch present := object.GetNamespace(); {
	case namespaced && present == "":
		object = object.DeepCopy()
		object.SetNamespace(namespace)
	case !namespaced && present != "":
		object = object.DeepCopy()
		object.SetNamespace("")
	}
	return object
}

// withCRDs answers from the CustomResourceDefinitions among objects, then from scope, which it asks once for each kind.
func withCRDs(objects []*unstructured.Unstructured, scope Scope) Scope {
	type answer struct{ namespaced, known bool }
	answers := map[schema.GroupVersionKind]answer{}
	for kind, namespaced := range definedScopes(objects) {
		answers[kind] = answer{namespaced, true}
	}
	return func(kind schema.GroupVersionKind) (namespaced, known bool, err error) {
		if a, ok := answers[kind]; ok {
			return a.namespaced, a.known, nil
		}
		if namespaced, known, err = scope(kind); err == nil {
			answers[kind] = answer{namespaced, known}
		}
		return namespaced, known, err
	}
}

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// definedScopes tells of the kinds that CustomResourceDefinitions among the objects will serve whether they are namespaced.
func definedScopes(objects []*unstructured.Unstructured) map[schema.GroupVersionKind]bool {
	found := map[schema.GroupVersionKind]bool{}
	for _, object := range objects {
		if object.GroupVersionKind().GroupKind() != crdKind {
			continue
		}
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(object.Object, "spec", "scope")
		versions, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "versions")
		list, _ := versions.([]any)
		for _, version := range list {
			fields, _ := version.(map[string]any)
			name, _ := fields["name"].(string)
			if served, _ := fields["served"].(bool); served {
				found[schema.GroupVersionKind{Group: group, Version: name, Kind: kind}] = scope == "Namespaced"
			}
		}
	}
	return found
}
