// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/pace"
	"rukpak.io/rukpak/internal/controller/status"
)

// Shared is a content store that several managers share; *depot.Depot is one.
type Shared interface {
	fmt.Stringer
	// Holds tells whether a tree is known to be there. It asks nobody.
	Holds(tree digest.Digest) bool
	// Keep brings a tree there that this manager has.
	Keep(ctx context.Context, tree digest.Digest) error
	// Restore brings a tree from there, and gives false if it is not there.
	Restore(ctx context.Context, tree digest.Digest) (bool, error)
}

// restore takes content that was pinned and judged before from the shared store,
// so that its source need not be asked again. When that store cannot be asked the
// source can.
func (f *fetch) restore(ctx context.Context) bool {
	shared, content := f.controller.Shared, f.bundle.Status.Content
	if shared == nil || content == nil || len(f.bundle.Status.Sources) == 0 || !judged(f.bundle, f.class) {
		return false
	}
	tree := digest.Digest(content.Digest)
	if f.controller.Contents.Has(tree) {
		return false
	}
	restored, err := shared.Restore(ctx, tree)
	f.sharedErr = err
	return restored
}

// explain adds to the fault of a source why the shared store did not help.
func (f *fetch) explain(err error) error {
	if err == nil || f.sharedErr == nil {
		return err
	}
	return fmt.Errorf("%w; nor does the shared store help: %w", err, f.sharedErr)
}

// share brings content that is ready to the shared store. The bundle is ready
// whether that works or not: the condition Shared says so.
func (c *Controller) share(ctx context.Context, bundle *v1alpha1.Bundle) (ctrl.Result, error) {
	had := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.ConditionShared)
	if c.Shared == nil && had == nil {
		return ctrl.Result{}, nil
	}
	before := bundle.DeepCopy()
	conditions := conditionsOf(bundle)
	var err error
	if c.Shared == nil {
		conditions.Remove(v1alpha1.ConditionShared)
	} else if err = c.Shared.Keep(ctx, digest.Digest(bundle.Status.Content.Digest)); err == nil {
		conditions.True(v1alpha1.ConditionShared, v1alpha1.ReasonShared, "the content is in "+c.Shared.String())
	} else if ctx.Err() != nil {
		return ctrl.Result{}, err
	} else if conditions.False(v1alpha1.ConditionShared, v1alpha1.ReasonStoreFailed, err.Error()) {
		c.Recorder.Eventf(bundle, nil, corev1.EventTypeWarning, v1alpha1.ReasonStoreFailed, "Share", "%s", status.Note(err.Error()))
	}
	if patchErr := status.Patch(ctx, c.Client, bundle, before); patchErr != nil {
		if apierrors.IsConflict(patchErr) {
			return ctrl.Result{RequeueAfter: pace.Conflict}, nil
		}
		return ctrl.Result{}, client.IgnoreNotFound(patchErr)
	}
	return ctrl.Result{}, err
}

// sharedAsSaid is true when nothing is to be done about the shared store.
func (c *Controller) sharedAsSaid(bundle *v1alpha1.Bundle) bool {
	said := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.ConditionShared)
	if c.Shared == nil {
		return said == nil
	}
	return said != nil && said.Status == metav1.ConditionTrue && c.Shared.Holds(digest.Digest(bundle.Status.Content.Digest))
}
