// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/certificate"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// keeper looks after one Secret and what trusts it.
type keeper struct {
	controller *Controller
	actor      client.Client // as the service account
	owner      ownership.Owner
	revision   *v1alpha1.InstanceRevision
	request    certificate.Request
}

// keep makes, renews and fills in what is missing, and says when to look again.
func (k *keeper) keep(ctx context.Context) (time.Duration, error) {
	data, renewal, err := k.secret(ctx)
	if err != nil {
		return 0, err
	}
	now := k.controller.now()
	bundle := base64.StdEncoding.EncodeToString(certificate.Bundle(data, now))
	var failed []error
	for _, place := range k.request.Places {
		if err := k.fill(ctx, place, bundle); err != nil {
			failed = append(failed, err)
		}
	}
	return max(renewal.Sub(now), time.Second), errors.Join(failed...)
}

// secret gives what the Secret holds, once that is of use. The certificate is written before anybody trusts it: servers take
// longer to read it than it takes to fill in the authority, and until they have, the one before is trusted too.
func (k *keeper) secret(ctx context.Context) (map[string][]byte, time.Time, error) {
	now, lifetime := k.controller.now(), cmp.Or(k.controller.Lifetime, certificate.Lifetime)
	live := &corev1.Secret{}
	err := k.actor.Get(ctx, k.request.Secret, live)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, time.Time{}, err
	}
	if !missing {
		if err := k.mine(live); err != nil {
			return nil, time.Time{}, err
		}
		if renewal, why := certificate.Renewal(live.Data, k.request.Names, now); why == "" {
			return live.Data, renewal, nil
		}
	}
	data, err := certificate.Issue(k.request.Names, live.Data[certificate.AuthorityKey], now, lifetime)
	if err != nil {
		return nil, time.Time{}, err
	}
	if missing {
		err = k.actor.Create(ctx, k.made(data), client.FieldOwner(FieldManager))
	} else {
		before := live.DeepCopy()
		live.Data = data
		err = k.actor.Patch(ctx, live, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldManager))
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	renewal, why := certificate.Renewal(data, k.request.Names, now)
	if why != "" {
		return nil, time.Time{}, fmt.Errorf("what was issued is of no use: %s", why)
	}
	return data, renewal, nil
}

func (k *keeper) made(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.request.Secret.Namespace, Name: k.request.Secret.Name, Labels: k.owner.Labels(),
			Annotations: map[string]string{provisioner.AnnotationServingCertificate: "made for revision " + k.revision.Name},
		},
		Type: corev1.SecretTypeTLS,
		Data: data,
	}
}

// mine refuses a Secret that was not made here: somebody else's data would be lost.
func (k *keeper) mine(live *corev1.Secret) error {
	owner, marked := ownership.OwnerOf(live)
	switch {
	case !live.DeletionTimestamp.IsZero():
		return apierrors.NewConflict(corev1.Resource("secrets"), live.Name, errors.New("it is being deleted"))
	case !marked || owner.UID != k.owner.UID:
		return errors.New("it exists and is not of this instance: delete or rename it")
	}
	return nil
}

// fill lets an object trust the authority. Objects that are not there yet are awaited: an event says when they are.
func (k *keeper) fill(ctx context.Context, place certificate.Place, bundle string) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(place.Object.GroupVersionKind())
	err := k.actor.Get(ctx, client.ObjectKeyFromObject(place.Object), live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if owner, marked := ownership.OwnerOf(live); !marked || owner.UID != k.owner.UID {
		return nil // not activated yet, or somebody else's
	}
	filled := place.Fill(live, bundle)
	if filled == nil {
		return nil
	}
	lock := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	if err := k.actor.Patch(ctx, filled, lock, client.FieldOwner(FieldManager)); err != nil {
		return err
	}
	return k.disown(ctx, filled)
}

// disown gives up what was just filled in. As long as we managed it, an object whose content drops the webhook could not be
// applied any more: server-side apply would leave the webhook with nothing but our field, which the API server refuses. What
// nobody manages stays, and goes with what it is part of.
func (k *keeper) disown(ctx context.Context, filled *unstructured.Unstructured) error {
	rest := slices.DeleteFunc(filled.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == FieldManager })
	if len(rest) == len(filled.GetManagedFields()) || len(rest) == 0 {
		return nil
	}
	disowned := filled.DeepCopy()
	disowned.SetManagedFields(rest)
	return k.actor.Patch(ctx, disowned, client.MergeFromWithOptions(filled, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldManager))
}
