// SPDX-License-Identifier: Apache-2.0

package permission

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// Needs are what a service account must be allowed to install content, heal it and remove it.
type Needs struct {
	// Access is needed, all of it.
	Access []Access
	// Grants are roles and bindings among the objects. The API server lets nobody grant what they do not hold.
	Grants []Granting
	// Namespaces are those that the content brings.
	Namespaces []string
}

// Granting is what it takes to write one role or binding, beyond writing objects of its kind.
type Granting struct {
	Object ownership.ID
	// Freely is enough: the verb "escalate" or "bind".
	Freely Access
	// Rules are enough, too, if they are held in the namespace of Freely. Unknown is true if it is not known which they
	// are, since the role is not among the objects and not known to be live.
	Rules   []rbacv1.PolicyRule
	Unknown bool
}

// verbs that activation, healing, pruning and teardown use on every object; on those of tasks, which are made anew and never
// changed, and on those that are only removed.
var (
	verbsOfState   = []string{"get", "create", "patch", "delete"}
	verbsOfTask    = []string{"get", "create", "delete"}
	verbsOfRemoval = []string{"get", "delete"}
)

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// Needed gives what an account needs for what package activate asks of the API server to bring the objects into the
// cluster, and to take them out again. Live may be nil: then roles that are not among the objects are not known. To remove a
// definition is to look first whether there are custom resources of it, anywhere. Kinds that a definition in the set brings
// are known from it; other kinds that are not served are left out, since activation says so itself.
func Needed(phases []provisioner.Phase, mapper meta.RESTMapper, live *Snapshot) (Needs, error) {
	n := needing{mapper: mapper, live: live, brought: broughtResources(phases), roles: map[roleID]*rbacv1.ClusterRole{}}
	for _, phase := range phases {
		for _, object := range phase.Objects {
			n.role(object)
		}
	}
	for _, phase := range phases {
		verbs := verbsOfState
		if len(phase.On) > 0 {
			verbs = verbsOfTask
		}
		for _, object := range phase.Objects {
			if err := n.object(object, verbs); err != nil {
				return Needs{}, err
			}
			n.special(object)
		}
	}
	n.lists()
	return n.needs, nil
}

// NeededToRemove gives what an account needs to take objects out of the cluster.
func NeededToRemove(phases []provisioner.Phase, mapper meta.RESTMapper) (Needs, error) {
	n := needing{mapper: mapper, brought: broughtResources(phases)}
	for _, phase := range phases {
		for _, object := range phase.Objects {
			if err := n.object(object, verbsOfRemoval); err != nil {
				return Needs{}, err
			}
		}
	}
	n.lists()
	return n.needs, nil
}

// And joins needs.
func (n Needs) And(o Needs) Needs {
	return Needs{
		Access: append(n.Access[:len(n.Access):len(n.Access)], o.Access...), Grants: append(n.Grants[:len(n.Grants):len(n.Grants)], o.Grants...),
		Namespaces: append(n.Namespaces[:len(n.Namespaces):len(n.Namespaces)], o.Namespaces...),
	}
}

// needing gathers needs.
type needing struct {
	mapper  meta.RESTMapper
	live    *Snapshot
	brought map[schema.GroupKind]string
	roles   map[roleID]*rbacv1.ClusterRole // those among the objects
	needs   Needs
}

func (n *needing) add(access Access) { n.needs.Access = append(n.needs.Access, access) }

func (n *needing) object(object *unstructured.Unstructured, verbs []string) error {
	resource, err := n.resourceOf(object.GroupVersionKind())
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, verb := range verbs {
		access := Access{Verb: verb, Group: resource.Group, Resource: resource.Resource, Namespace: object.GetNamespace(), Name: object.GetName()}
		if verb == "create" {
			access.Name = "" // creation cannot be granted by name
		}
		n.add(access)
	}
	if object.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		n.needs.Namespaces = append(n.needs.Namespaces, object.GetName())
	}
	return nil
}

// lists adds what it takes to look for custom resources.
func (n *needing) lists() {
	for kind, plural := range n.brought {
		n.add(Access{Verb: "list", Group: kind.Group, Resource: plural})
	}
}

func (n *needing) resourceOf(kind schema.GroupVersionKind) (schema.GroupResource, error) {
	if plural, ok := n.brought[kind.GroupKind()]; ok {
		return schema.GroupResource{Group: kind.Group, Resource: plural}, nil
	}
	mapping, err := n.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return schema.GroupResource{}, err
	}
	return mapping.Resource.GroupResource(), nil
}

// broughtResources reads the plural names of the kinds that definitions in the set bring.
func broughtResources(phases []provisioner.Phase) map[schema.GroupKind]string {
	brought := map[schema.GroupKind]string{}
	for _, phase := range phases {
		for _, object := range phase.Objects {
			if object.GroupVersionKind().GroupKind() == crdKind {
				kind := schema.GroupKind{Group: textAt(object.Object, "spec", "group"), Kind: textAt(object.Object, "spec", "names", "kind")}
				brought[kind] = textAt(object.Object, "spec", "names", "plural")
			}
		}
	}
	return brought
}
