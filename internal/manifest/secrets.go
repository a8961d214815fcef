// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind says what a Secret holds. It is part of its name and, after
// "rukpak.io/", its type.
type Kind string

const (
	// KindManifest is the rendered objects: they never change.
	KindManifest Kind = "manifest"
	// KindPlan is the plan: it is replaced when it is computed again.
	KindPlan Kind = "plan"
)

const (
	labelRevision   = "rukpak.io/revision"
	annotationParts = "rukpak.io/parts"
	key             = "data"
)

var revisionKind = schema.GroupVersionKind{Group: "rukpak.io", Version: "v1alpha1", Kind: "InstanceRevision"}

// ErrIncomplete is wrapped by Load when a part is missing: it was never
// written, as after a crash, or somebody deleted it.
var ErrIncomplete = errors.New("incomplete")

// Save keeps data in immutable Secrets that the revision owns. It may be
// repeated: parts that are there are left alone, and ones with other bytes are
// replaced.
func Save(ctx context.Context, c client.Client, revision metav1.Object, kind Kind, data []byte) error {
	parts, err := Pack(data)
	if err != nil {
		return err
	}
	for i, part := range parts {
		if err := savePart(ctx, c, secret(revision, kind, i, len(parts), part)); err != nil {
			return err
		}
	}
	return dropParts(ctx, c, revision, kind, len(parts))
}

func savePart(ctx context.Context, c client.Client, wanted *corev1.Secret) error {
	err := c.Create(ctx, wanted.DeepCopy())
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(wanted), found); err != nil {
		return err
	}
	if bytes.Equal(found.Data[key], wanted.Data[key]) && found.Annotations[annotationParts] == wanted.Annotations[annotationParts] {
		return nil
	}
	// Immutable, so it cannot be updated.
	if err := c.Delete(ctx, found, client.Preconditions{UID: &found.UID}); client.IgnoreNotFound(err) != nil {
		return err
	}
	return c.Create(ctx, wanted)
}

// dropParts deletes the parts that a larger version left.
func dropParts(ctx context.Context, c client.Client, revision metav1.Object, kind Kind, from int) error {
	for i := from; ; i++ {
		left := secret(revision, kind, i, 0, nil)
		err := c.Delete(ctx, left)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func secret(revision metav1.Object, kind Kind, index, parts int, data []byte) *corev1.Secret {
	immutable := true
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       revision.GetNamespace(),
			Name:            partName(revision.GetName(), kind, index),
			Labels:          map[string]string{labelRevision: revision.GetName()},
			Annotations:     map[string]string{annotationParts: strconv.Itoa(parts)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(revision, revisionKind)},
		},
		Type:      corev1.SecretType("rukpak.io/" + string(kind)),
		Immutable: &immutable,
		Data:      map[string][]byte{key: data},
	}
}

func partName(revision string, kind Kind, index int) string {
	return fmt.Sprintf("%s-%s-%d", revision, kind, index)
}

// Load reads what Save kept.
func Load(ctx context.Context, r client.Reader, namespace, revision string, kind Kind) ([]byte, error) {
	var parts [][]byte
	for count := 1; len(parts) < count; {
		name := partName(revision, kind, len(parts))
		found := &corev1.Secret{}
		err := r.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, found)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("the %s of InstanceRevision %s/%s is %w: Secret %q does not exist", kind, namespace, revision, ErrIncomplete, name)
		}
		if err != nil {
			return nil, fmt.Errorf("read the %s of InstanceRevision %s/%s: %w", kind, namespace, revision, err)
		}
		if len(parts) == 0 {
			if count, err = strconv.Atoi(found.Annotations[annotationParts]); err != nil || count < 1 {
				return nil, fmt.Errorf("the %s of InstanceRevision %s/%s is %w: Secret %q does not say how many parts there are", kind, namespace, revision, ErrIncomplete, name)
			}
		}
		parts = append(parts, found.Data[key])
	}
	data, err := Unpack(parts)
	if err != nil {
		return nil, fmt.Errorf("the %s of InstanceRevision %s/%s: %w", kind, namespace, revision, err)
	}
	return data, nil
}

// MismatchError says that stored manifests are not what the revision names.
type MismatchError struct {
	Namespace, Revision string
	Want, Got           digest.Digest
}

// Error names the revision and both digests.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("the stored manifests of InstanceRevision %s/%s have digest %s, not %s; they were changed and are not used",
		e.Namespace, e.Revision, e.Got, e.Want)
}

// LoadVerified reads manifests and checks that they have the digest that was approved.
func LoadVerified(ctx context.Context, r client.Reader, namespace, revision string, want digest.Digest) ([]byte, error) {
	data, err := Load(ctx, r, namespace, revision, KindManifest)
	if err != nil {
		return nil, err
	}
	if got := DigestOf(data); got != want {
		return nil, &MismatchError{Namespace: namespace, Revision: revision, Want: want, Got: got}
	}
	return data, nil
}
