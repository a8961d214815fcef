// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/provisioner"
)

// verbs that activation, healing, pruning and teardown use on every object.
var verbs = []string{"get", "create", "patch", "delete"}

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// Needed gives what an account needs to activate, heal and remove the objects. To remove a definition is to look first
// whether there are custom resources of it, anywhere.
// Kinds that a definition in the set brings are known from it; other kinds that
// are not served are left out, since activation says so itself.
func Needed(phases []provisioner.Phase, mapper meta.RESTMapper) ([]Access, error) {
	brought := broughtResources(phases)
	var needed []Access
	for _, phase := range phases {
		for _, object := range phase.Objects {
			group, resource, err := resourceOf(object, brought, mapper)
			if meta.IsNoMatchError(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			for _, verb := range verbs {
				access := Access{Verb: verb, Group: group, Resource: resource, Namespace: object.GetNamespace(), Name: object.GetName()}
				if verb == "create" {
					access.Name = "" // creation cannot be granted by name
				}
				needed = append(needed, access)
			}
		}
	}
	for kind, plural := range brought {
		needed = append(needed, Access{Verb: "list", Group: kind.Group, Resource: plural})
	}
	return needed, nil
}

func resourceOf(object *unstructured.Unstructured, brought map[schema.GroupKind]string, mapper meta.RESTMapper) (group, resource string, err error) {
	kind := object.GroupVersionKind()
	if plural, ok := brought[kind.GroupKind()]; ok {
		return kind.Group, plural, nil
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return "", "", err
	}
	return mapping.Resource.Group, mapping.Resource.Resource, nil
}

// broughtResources reads the plural names of the kinds that definitions in the
// set bring.
func broughtResources(phases []provisioner.Phase) map[schema.GroupKind]string {
	brought := map[schema.GroupKind]string{}
	for _, phase := range phases {
		for _, object := range phase.Objects {
			if object.GroupVersionKind().GroupKind() != definitionKind {
				continue
			}
			group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
			plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
			brought[schema.GroupKind{Group: group, Kind: kind}] = plural
		}
	}
	return brought
}
