// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"cmp"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// Groups that the API server puts users into.
const (
	AllAccounts     = serviceaccount.AllServiceAccountsGroup
	Authenticated   = "system:authenticated"
	Unauthenticated = "system:unauthenticated"
	Masters         = "system:masters" // may do everything, whatever RBAC says
)

// Subject is who may do something.
type Subject struct {
	Kind      string `json:"kind"` // ServiceAccount, User or Group
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// AccountSubject is a service account.
func AccountSubject(namespace, name string) Subject {
	return Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// GroupSubject is all members of a group.
func GroupSubject(name string) Subject { return Subject{Kind: rbacv1.GroupKind, Name: name} }

// subjectOf reads a subject of a binding. A user that is a service account is one, whatever the binding calls it.
func subjectOf(s rbacv1.Subject, namespace string) Subject {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		if s.Namespace == "" {
			s.Namespace = namespace
		}
		return AccountSubject(s.Namespace, s.Name)
	case rbacv1.UserKind:
		if in, name, err := serviceaccount.SplitUsername(s.Name); err == nil {
			return AccountSubject(in, name)
		}
	}
	return Subject{Kind: s.Kind, Name: s.Name}
}

// subjects are all that stand for a subject in bindings: itself, and for an account its groups.
func (s Subject) subjects() []Subject {
	if s.Kind != rbacv1.ServiceAccountKind {
		return []Subject{s}
	}
	all := []Subject{s, GroupSubject(Authenticated)}
	for _, group := range serviceaccount.MakeGroupNames(s.Namespace) {
		all = append(all, GroupSubject(group))
	}
	return all
}

// String is such as "ServiceAccount web/default" or "Group system:authenticated".
func (s Subject) String() string {
	if s.Namespace != "" {
		return s.Kind + " " + s.Namespace + "/" + s.Name
	}
	return s.Kind + " " + s.Name
}

func (s Subject) compare(o Subject) int {
	return cmp.Or(cmp.Compare(s.Kind, o.Kind), cmp.Compare(s.Namespace, o.Namespace), cmp.Compare(s.Name, o.Name))
}
