// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// LeastRBAC gives the objects that let a service account do what is needed and no more: the account, a ClusterRole and its
// binding for what has no namespace, and a Role and its binding for each namespace. Names are given wherever RBAC can do
// with names; creation cannot. Roles that the content brings are granted by holding their rules, since the verb "escalate"
// cannot be limited to them, and other roles by the verb "bind" for their names. A Role cannot stand in a namespace before that is
// there: what is needed in namespaces that the content brings is granted in the whole cluster, unless exists says that one is
// there. Exists may be nil.
func (n Needs) LeastRBAC(namespace, account string, exists func(namespace string) bool) []runtime.Object {
	place := func(in string) string {
		if slices.Contains(n.Namespaces, in) && (exists == nil || !exists(in)) {
			return ""
		}
		return in
	}
	held := map[string]*Rules{}
	allow := func(in string, rules *Rules) {
		in = place(in)
		held[in] = held[in].Union(rules)
	}
	byNamespace := map[string]*Rules{}
	single := func(access Access) {
		in := place(access.Namespace)
		if byNamespace[in] == nil {
			byNamespace[in] = &Rules{}
		}
		byNamespace[in].Add(access.rule())
	}
	for _, access := range n.Access {
		single(access)
	}
	own := ownRoles(n.Grants)
	for _, granting := range n.Grants {
		free, in := granting.Freely, granting.Freely.Namespace
		ofRole := in
		if free.Resource == "clusterroles" {
			ofRole = ""
		}
		switch {
		case free.Verb == "escalate" && NewRules(granting.Rules...).Covers(NewRules(everything()...)):
			single(free)
		case free.Verb == "escalate", !granting.Unknown && own[free.Resource+"/"+ofRole+"/"+free.Name]:
			allow(in, NewRules(granting.Rules...))
		default:
			single(free)
		}
	}
	all := scoped(held)
	for in, rules := range byNamespace {
		all[in] = all[in].Union(rules)
	}
	return grant(namespace, account, all.canonical())
}

// ownRoles are those that the content brings: who holds their rules can bind them.
func ownRoles(grants []Granting) map[string]bool {
	own := map[string]bool{}
	for _, granting := range grants {
		if granting.Freely.Verb == "escalate" {
			own[granting.Freely.Resource+"/"+granting.Object.Namespace+"/"+granting.Object.Name] = true
		}
	}
	return own
}

// grant makes objects of rules by namespace.
func grant(namespace, account string, rules scoped) []runtime.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}
	name := "rukpak:" + namespace + ":" + account
	objects := []runtime.Object{&corev1.ServiceAccount{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account},
	}}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	for _, in := range slices.Sorted(maps.Keys(rules)) {
		object := metav1.ObjectMeta{Namespace: in, Name: name}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
		if in == "" {
			ref.Kind = "ClusterRole"
			objects = append(objects,
				&rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: object, Rules: rules[in].PolicyRules()},
				&rbacv1.ClusterRoleBinding{TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: object, Subjects: subjects, RoleRef: ref})
			continue
		}
		objects = append(objects,
			&rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: object, Rules: rules[in].PolicyRules()},
			&rbacv1.RoleBinding{TypeMeta: kind("RoleBinding"), ObjectMeta: object, Subjects: subjects, RoleRef: ref})
	}
	return objects
}
