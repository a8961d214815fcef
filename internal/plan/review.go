// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/internal/identity"
	"rukpak.io/rukpak/internal/permission"
	"rukpak.io/rukpak/provisioner"
)

// Account is the Reviewer for a service account.
type Account struct {
	Reviewer        *identity.Reviewer
	Mapper          meta.RESTMapper
	Namespace, Name string
}

var (
	_ Reviewer = Account{}
	_ Weaker   = Account{}
)

// String is its name in its own namespace.
func (a Account) String() string { return a.Name }

// May asks by an access review. What the API server does not serve, nobody may read.
func (a Account) May(ctx context.Context, verb string, kind schema.GroupKind, namespace, name string) (bool, error) {
	mapping, err := a.Mapper.RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return a.Reviewer.May(ctx, a.Namespace, a.Name, permission.Access{
		Verb: verb, Group: kind.Group, Resource: mapping.Resource.Resource, Namespace: namespace, Name: name,
	})
}

// Lacks asks by access reviews, also for what the roles and bindings among the objects would grant to others.
func (a Account) Lacks(ctx context.Context, phases, removed []provisioner.Phase) ([]string, error) {
	needs, err := permission.Needed(phases, a.Mapper, nil)
	if err != nil {
		return nil, err
	}
	toRemove, err := permission.NeededToRemove(removed, a.Mapper)
	if err != nil {
		return nil, err
	}
	missing, err := a.Reviewer.Missing(ctx, a.Namespace, a.Name, needs.And(toRemove))
	if err != nil {
		return nil, err
	}
	return permission.Lines(missing), nil
}
