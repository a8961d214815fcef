// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// content is rendered objects in the world that they make.
type content struct {
	objects []*unstructured.Unstructured
	before  *world // the cluster without the content
	world   *world // and with it
	pods    []pod
	// accounts are those that the content brings, runs as or has tokens of.
	accounts map[accountID]*Account
	// oversized are rules that cannot be broken down, in words.
	oversized []Gain
}

func read(objects []*unstructured.Unstructured, live *Snapshot) (*content, error) {
	c := &content{objects: objects, before: newWorld(live.world), world: newWorld(live.world), accounts: map[accountID]*Account{}}
	c.before.lean = true
	c.before.bounded, c.world.bounded = true, true
	for _, object := range objects {
		if err := c.add(object); err != nil {
			return nil, err
		}
	}
	c.pods = podsOf(objects)
	c.addTokens()
	return c, nil
}

func (c *content) add(object *unstructured.Unstructured) error {
	id := ownership.IDOf(object)
	switch id.GroupKind() {
	case schema.GroupKind{Group: rbacv1.GroupName, Kind: "Role"}, schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}:
		return c.addRole(id, object)
	case schema.GroupKind{Group: rbacv1.GroupName, Kind: "RoleBinding"}, schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRoleBinding"}:
		var b rbacv1.ClusterRoleBinding // a RoleBinding has the same fields
		if err := convert(object, &b); err != nil {
			return err
		}
		c.world.addBinding(newBinding(id, b.RoleRef, b.Subjects))
	case schema.GroupKind{Kind: "ServiceAccount"}:
		var account corev1.ServiceAccount
		if err := convert(object, &account); err != nil {
			return err
		}
		c.world.accounts[accountID{id.Namespace, id.Name}] = account.AutomountServiceAccountToken
		c.account(accountID{id.Namespace, id.Name}).Owned = true
	}
	return nil
}

func (c *content) addRole(id ownership.ID, object *unstructured.Unstructured) error {
	var r rbacv1.ClusterRole // a Role has the same rules
	if err := convert(object, &r); err != nil {
		return err
	}
	labels := r.Labels
	if live := c.before.role(roleID{id.Namespace, id.Name}); live != nil && len(live.labels) > 0 {
		// What others put on a role that is there stays on it.
		labels = maps.Clone(live.labels)
		maps.Copy(labels, r.Labels)
	}
	if id.Kind == "Role" {
		r.AggregationRule = nil
	}
	c.world.addRole(&role{id: roleID{id.Namespace, id.Name}, rules: r.Rules, labels: labels, aggregation: r.AggregationRule})
	for _, rule := range r.Rules {
		if tooLarge(rule) {
			c.oversized = append(c.oversized, Gain{
				Way: WayUnknown, Value: "a rule of " + id.String() + " with more than 20000 combinations, sha256 " + digestOf(rule),
			})
		}
	}
	return nil
}

func convert(object *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return &provisioner.InputError{Object: provisioner.Describe(object.Object), Reason: err.Error()}
	}
	return nil
}

func (c *content) account(id accountID) *Account {
	if c.accounts[id] == nil {
		c.accounts[id] = &Account{Namespace: id.namespace, Name: id.name}
	}
	return c.accounts[id]
}

func (c *content) accountList() []Account {
	var all []Account
	for _, account := range c.accounts {
		one := *account
		slices.Sort(one.Tokens)
		one.Tokens = slices.Compact(one.Tokens)
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Account) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Owned is a namespace or a definition that content brings, or, without a name, a kind without a namespace. What roles,
// bindings and admission do is told elsewhere, so they are not among them.
type Owned struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	Name  string `json:"name,omitempty"`
}

func (c *content) owns() []Owned {
	var all []Owned
	for _, object := range c.objects {
		id := ownership.IDOf(object)
		switch {
		case id.Namespace != "", id.Group == rbacv1.GroupName, id.Group == admissionGroup:
		case id.Group == "" && id.Kind == "Namespace", id.GroupKind() == crdKind:
			all = append(all, Owned{Group: id.Group, Kind: id.Kind, Name: id.Name})
		default:
			all = append(all, Owned{Group: id.Group, Kind: id.Kind})
		}
	}
	slices.SortFunc(all, func(a, b Owned) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(all)
}

func (c *content) namespaces() []string {
	found := map[string]bool{}
	for _, object := range c.objects {
		if namespace := object.GetNamespace(); namespace != "" {
			found[namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
