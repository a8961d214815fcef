// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/identity"
	"rukpak.io/rukpak/provisioner"
)

// Account is the Reviewer for a service account.
type Account struct {
	Reviewer        *identity.Reviewer
	Mapper          meta.RESTMapper
	Namespace, Name string
}

var _ Reviewer = Account{}

// Lacks asks by access reviews, also for what the roles and bindings among the objects would grant to others.
func (a Account) Lacks(ctx context.Context, phases, removed []provisioner.Phase) ([]string, error) {
	needed, err := identity.Needed(phases, a.Mapper)
	if err != nil {
		return nil, err
	}
	toRemove, err := identity.Needed(removed, a.Mapper)
	if err != nil {
		return nil, err
	}
	for _, access := range toRemove {
		if access.Verb == "get" || access.Verb == "delete" {
			needed = append(needed, access)
		}
	}
	granting, err := a.Reviewer.Escalation(ctx, a.Namespace, a.Name, phases)
	var status apierrors.APIStatus
	if err != nil && (ctx.Err() != nil || activate.Unreachable(err) || errors.As(err, &status)) {
		return nil, err // any other is of a role that cannot be read, which its dry run tells
	}
	missing, err := a.Reviewer.Missing(ctx, a.Namespace, a.Name, append(needed, granting...))
	if err != nil {
		return nil, err
	}
	return identity.Lines(missing), nil
}
