// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind says what is kept beside a revision.
type Kind string

// The kinds.
const (
	KindManifest Kind = "manifest" // the encoded Set, which never changes
	KindPlan     Kind = "plan"     // the encoded plan, which is replaced when it is computed again
	KindRemovals Kind = "removals" // what waits for an approval to be deleted, which is replaced when that changes
)

// What is on each Secret. The type is "rukpak.io/manifest", "rukpak.io/plan" or "rukpak.io/removals".
const (
	LabelRevision    = "rukpak.io/revision" // name of the revision
	AnnotationParts  = "rukpak.io/parts"    // number of Secrets that belong together
	AnnotationDigest = "rukpak.io/digest"   // sha256 of what the parts unpack to
	DataKey          = "data"               // the part
)

// TypeOf is the type of the Secrets of a kind.
func TypeOf(kind Kind) corev1.SecretType { return corev1.SecretType("rukpak.io/" + kind) }

// SecretName is the name of a part of a revision; parts are counted from 0.
func SecretName(revision string, kind Kind, part int) string {
	return revision + "-" + string(kind) + "-" + strconv.Itoa(part)
}

var revisionKind = schema.GroupVersionKind{Group: "rukpak.io", Version: "v1alpha1", Kind: "InstanceRevision"}

// ErrIncomplete is wrapped by Load when a part is missing: it was never written, as after a crash, or somebody deleted it.
var ErrIncomplete = errors.New("incomplete")

// Save keeps b beside the revision, in immutable Secrets that the revision owns. It may be repeated: what an interrupted
// Save left is completed, equal parts stay as they are and others are replaced. The first part is written last, so that
// whatever Load sees is whole. The revision, an InstanceRevision, must exist; c must not read Secrets from a cache.
func Save(ctx context.Context, c client.Client, revision metav1.Object, kind Kind, b []byte) error {
	parts, err := Pack(b)
	if err != nil {
		return fmt.Errorf("save %s of revision %q: %w", kind, revision.GetName(), err)
	}
	owner := metav1.NewControllerRef(revision, revisionKind)
	for i := len(parts) - 1; i >= 0; i-- {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: revision.GetNamespace(),
				Name:      SecretName(revision.GetName(), kind, i),
				Labels:    map[string]string{LabelRevision: revision.GetName()},
				Annotations: map[string]string{
					AnnotationParts:  strconv.Itoa(len(parts)),
					AnnotationDigest: DigestOf(b).String(),
				},
				OwnerReferences: []metav1.OwnerReference{*owner},
			},
			Immutable: new(true),
			Type:      TypeOf(kind),
			Data:      map[string][]byte{DataKey: parts[i]},
		}
		if err := put(ctx, c, secret); err != nil {
			return fmt.Errorf("save %s of revision %q: Secret %q: %w", kind, revision.GetName(), secret.Name, err)
		}
	}
	return nil
}

// put makes the Secret, in place of one that differs from it.
func put(ctx context.Context, c client.Client, secret *corev1.Secret) error {
	const tries = 5 // against somebody who makes what is deleted here again at once
	var err error
	for range tries {
		fresh := secret.DeepCopy()
		if err = c.Create(ctx, fresh); !apierrors.IsAlreadyExists(err) {
			return err
		}
		present := &corev1.Secret{}
		getErr := c.Get(ctx, client.ObjectKeyFromObject(secret), present)
		if apierrors.IsNotFound(getErr) {
			continue
		}
		if getErr != nil {
			return getErr
		}
		if samePart(present, secret) {
			return nil
		}
		deleteErr := c.Delete(ctx, present, client.Preconditions{UID: &present.UID, ResourceVersion: &present.ResourceVersion})
		if client.IgnoreNotFound(deleteErr) != nil && !apierrors.IsConflict(deleteErr) {
			return deleteErr
		}
	}
	return err
}

func samePart(present, wanted *corev1.Secret) bool {
	return present.DeletionTimestamp == nil && present.Type == wanted.Type && present.Immutable != nil && *present.Immutable &&
		string(present.Data[DataKey]) == string(wanted.Data[DataKey]) &&
		sameMarks(present.Annotations, wanted.Annotations) && present.Labels[LabelRevision] == wanted.Labels[LabelRevision] &&
		len(present.OwnerReferences) == 1 && present.OwnerReferences[0].UID == wanted.OwnerReferences[0].UID
}

// StoredError says what is wrong with what is kept beside a revision. One that wraps ErrIncomplete is mended by another
// Save; all others mean that somebody changed what is kept, which is not used then.
type StoredError struct {
	Namespace, Revision string
	Kind                Kind
	Err                 error
}

// Error is one line.
func (e *StoredError) Error() string {
	return fmt.Sprintf("the %s of InstanceRevision %s/%s: %v", e.Kind, e.Namespace, e.Revision, e.Err)
}

// Unwrap gives the cause.
func (e *StoredError) Unwrap() error { return e.Err }

// Load reads what Save kept and checks that it is whole. That it is the right bytes is for the caller to check, against
// a digest from another place: see LoadVerified. Faults of what is kept are a *StoredError.
func Load(ctx context.Context, r client.Reader, namespace, revision string, kind Kind) ([]byte, error) {
	b, err := load(ctx, r, namespace, revision, kind)
	var failed *readError
	if err == nil || errors.As(err, &failed) {
		return b, err
	}
	return nil, &StoredError{Namespace: namespace, Revision: revision, Kind: kind, Err: err}
}

// readError is one of the cluster, which says nothing of what is kept.
type readError struct {
	what string
	err  error
}

func (e *readError) Error() string { return e.what + ": " + e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

func load(ctx context.Context, r client.Reader, namespace, revision string, kind Kind) ([]byte, error) {
	var parts [][]byte
	var marks map[string]string // of the first part
	for i, count := 0, 1; i < count; i++ {
		name := SecretName(revision, kind, i)
		secret := &corev1.Secret{}
		err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("%w: Secret %q does not exist", ErrIncomplete, name)
		case err != nil:
			return nil, &readError{what: fmt.Sprintf("read Secret %s/%s", namespace, name), err: err}
		case secret.Type != TypeOf(kind):
			return nil, fmt.Errorf("the type of Secret %q is %q, not %q", name, secret.Type, TypeOf(kind))
		case i == 0:
			marks = secret.Annotations
			count, err = strconv.Atoi(marks[AnnotationParts])
			if err != nil || count < 1 || count > MaxParts {
				return nil, fmt.Errorf("annotation %q of Secret %q is not a number of parts", AnnotationParts, name)
			}
		case !sameMarks(marks, secret.Annotations):
			return nil, fmt.Errorf("%w: Secret %q belongs to other bytes than Secret %q", ErrIncomplete, name, SecretName(revision, kind, 0))
		}
		parts = append(parts, secret.Data[DataKey])
	}
	b, err := Unpack(parts)
	if err != nil {
		return nil, err
	}
	if found, said := DigestOf(b), marks[AnnotationDigest]; found.String() != said {
		return nil, fmt.Errorf("the Secrets hold bytes with digest %s, they say %s; somebody changed them", found, said)
	}
	return b, nil
}

// sameMarks reports whether two Secrets are parts of the same bytes. What others annotate does not matter.
func sameMarks(a, b map[string]string) bool {
	return a[AnnotationParts] == b[AnnotationParts] && a[AnnotationDigest] == b[AnnotationDigest]
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

// LoadVerified loads the manifests of a revision and checks that they have the digest which the revision names, and so
// which was approved. Others are a *MismatchError.
func LoadVerified(ctx context.Context, r client.Reader, namespace, revision string, want digest.Digest) ([]byte, error) {
	b, err := Load(ctx, r, namespace, revision, KindManifest)
	if err != nil {
		return nil, err
	}
	if got := DigestOf(b); got != want {
		return nil, &MismatchError{Namespace: namespace, Revision: revision, Want: want, Got: got}
	}
	return b, nil
}
