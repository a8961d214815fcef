// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/internal/ownership"
)

// Live is what is in the cluster, as far as it decides what content may do. Nothing in it is changed.
type Live struct {
	Roles               []*rbacv1.Role
	ClusterRoles        []*rbacv1.ClusterRole
	RoleBindings        []*rbacv1.RoleBinding
	ClusterRoleBindings []*rbacv1.ClusterRoleBinding
	// Accounts tell whether tokens are mounted without being asked for. Those that are missing count as if they did.
	Accounts []*corev1.ServiceAccount
}

// Snapshot is Live, made ready to be looked things up in. It never changes, so that goroutines and many calls can share
// it.
type Snapshot struct {
	*world
}

// NewSnapshot takes what is live.
func NewSnapshot(live Live) *Snapshot {
	w := newWorld(nil)
	for _, o := range live.Roles {
		r := &role{id: roleID{o.Namespace, o.Name}, rules: o.Rules}
		w.addRole(r)
		w.own(r.id.object(), o)
	}
	for _, o := range live.ClusterRoles {
		r := &role{id: roleID{"", o.Name}, rules: o.Rules, labels: o.Labels, aggregation: o.AggregationRule}
		w.addRole(r)
		w.own(r.id.object(), o)
	}
	for _, o := range live.RoleBindings {
		id := ownership.ID{Group: rbacv1.GroupName, Kind: "RoleBinding", Namespace: o.Namespace, Name: o.Name}
		w.addBinding(newBinding(id, o.RoleRef, o.Subjects))
		w.own(id, o)
	}
	for _, o := range live.ClusterRoleBindings {
		id := ownership.ID{Group: rbacv1.GroupName, Kind: "ClusterRoleBinding", Name: o.Name}
		w.addBinding(newBinding(id, o.RoleRef, o.Subjects))
		w.own(id, o)
	}
	for _, o := range live.Accounts {
		w.accounts[accountID{o.Namespace, o.Name}] = o.AutomountServiceAccountToken
		w.own(accountID{o.Namespace, o.Name}.object(), o)
	}
	return &Snapshot{world: w}
}

// Without is the snapshot as if some objects were not there, such as those that an instance has in the cluster already.
func (s *Snapshot) Without(objects []*unstructured.Unstructured) *Snapshot {
	w := newWorld(s.world)
	for _, object := range objects {
		w.hide(ownership.IDOf(object))
	}
	return &Snapshot{world: w}
}

// WithoutThoseOf is the snapshot as if those of some objects were not there that carry the mark of an instance. That content
// once had an object of a name makes nothing its own that others have under that name: what such a binding grants is granted.
func (s *Snapshot) WithoutThoseOf(owner types.UID, objects []*unstructured.Unstructured) *Snapshot {
	w := newWorld(s.world)
	for _, object := range objects {
		if id := ownership.IDOf(object); s.owners[id] == owner {
			w.hide(id)
		}
	}
	return &Snapshot{world: w}
}

// May gives what a subject may do in a namespace, "" for the whole cluster: what every namespace has in common, all that is
// cluster-scoped, and paths. It counts the groups of a service account; any other user has those that are given.
func (s *Snapshot) May(subject Subject, namespace string, groups ...string) *Rules {
	subjects := subject.subjects()
	for _, group := range groups {
		subjects = append(subjects, GroupSubject(group))
	}
	if slices.Contains(groups, Masters) {
		return NewRules(everything()...)
	}
	held := s.held(subjects)
	if namespace == "" {
		return held[""].Union()
	}
	return held[""].Union(held[namespace])
}

// Held is all that a subject may do, by namespace; "" is the whole cluster. See May.
func (s *Snapshot) Held(subject Subject) map[string]*Rules { return s.held(subject.subjects()) }
