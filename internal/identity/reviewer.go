// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/permission"
)

// reviewsAtOnce bounds the access reviews of one call that are under way.
const reviewsAtOnce = 16

// Reviewer asks the API server what service accounts may do: all its
// authorizers, not only RBAC.
type Reviewer struct {
	client client.Client
}

// NewReviewer asks in the name of c, which needs to create SubjectAccessReviews.
func NewReviewer(c client.Client) *Reviewer { return &Reviewer{client: c} }

// Missing gives what the account lacks of needs, sorted. It asks for all names first, and name by name only for what is
// denied then; and for the rules of roles only where the account may not grant them freely.
func (r *Reviewer) Missing(ctx context.Context, namespace, account string, needs permission.Needs) ([]permission.Access, error) {
	needed, err := r.single(ctx, namespace, account, needs)
	if err != nil {
		return nil, err
	}
	broad := sets.New[permission.Access]()
	for _, access := range needed {
		broad.Insert(forAll(access))
	}
	denied, err := r.denied(ctx, namespace, account, broad)
	if err != nil {
		return nil, err
	}
	narrow, missing := sets.New[permission.Access](), sets.New[permission.Access]()
	for _, access := range needed {
		all := forAll(access)
		switch {
		case !denied.Has(all):
		case access.Name == "":
			missing.Insert(all)
		default:
			narrow.Insert(access)
		}
	}
	named, err := r.denied(ctx, namespace, account, narrow)
	if err != nil {
		return nil, err
	}
	for access := range named {
		if !access.Exact {
			access = forAll(access) // whoever grants it grants it for all names
		}
		missing.Insert(access)
	}
	result := missing.UnsortedList()
	slices.SortFunc(result, permission.Access.Compare)
	return result, nil
}

// forAll is the same for all names.
func forAll(a permission.Access) permission.Access {
	a.Name, a.Exact = "", false
	return a
}

// single gives the needs as single accesses, with the rules of roles that the account cannot grant without holding them.
func (r *Reviewer) single(ctx context.Context, namespace, account string, needs permission.Needs) ([]permission.Access, error) {
	freely := sets.New[permission.Access]()
	for _, granting := range needs.Grants {
		freely.Insert(granting.Freely)
	}
	denied, err := r.denied(ctx, namespace, account, freely)
	if err != nil {
		return nil, err
	}
	needed := slices.Clone(needs.Access)
	for _, granting := range needs.Grants {
		if denied.Has(granting.Freely) {
			needed = append(needed, granting.Accesses()...)
		}
	}
	return needed, nil
}

// May tells whether the account may do one thing.
func (r *Reviewer) May(ctx context.Context, namespace, account string, access permission.Access) (bool, error) {
	denied, err := r.denied(ctx, namespace, account, sets.New(access))
	return len(denied) == 0, err
}

func (r *Reviewer) denied(ctx context.Context, namespace, account string, asked sets.Set[permission.Access]) (sets.Set[permission.Access], error) {
	denied := sets.New[permission.Access]()
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for access := range asked {
		group.Go(func() error {
			allowed, err := r.review(ctx, namespace, account, access)
			if err != nil {
				return fmt.Errorf("ask whether ServiceAccount %s/%s may %s: %w", namespace, account, access, err)
			}
			if !allowed {
				mu.Lock()
				denied.Insert(access)
				mu.Unlock()
			}
			return nil
		})
	}
	return denied, group.Wait()
}

func (r *Reviewer) review(ctx context.Context, namespace, account string, access permission.Access) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   User(namespace, account),
		Groups: append(serviceaccount.MakeGroupNames(namespace), "system:authenticated"),
	}}
	if access.Path != "" {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: access.Verb, Path: access.Path}
	} else {
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Verb: access.Verb, Group: access.Group, Resource: access.Resource, Subresource: access.Subresource,
			Namespace: access.Namespace, Name: access.Name,
		}
	}
	if err := r.client.Create(ctx, review); err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
