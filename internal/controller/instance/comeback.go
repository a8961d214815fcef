// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/status"
)

// comeBack makes a revision with the manifests of the one that was healthy before, if the wanted one failed and was
// approved with onFailure Rollback. As long as that is wanted, it is not tried again. Whether what is made here may
// become active is for package revision to say; this only names it.
func (c *Controller) comeBack(ctx context.Context, w *work, wanted func(*v1alpha1.InstanceRevision) bool) (done bool, err error) {
	if w.current == nil {
		return false, nil
	}
	if instead := w.current.Spec.InsteadOf; instead != nil {
		failed := v1alpha1.InstanceRevision{Spec: v1alpha1.InstanceRevisionSpec{ContentDigest: instead.ContentDigest, ConfigDigest: instead.ConfigDigest}}
		if !wanted(&failed) || wanted(w.current) || w.current.Status.ActivatedAt == nil && recovered(w, instead.Number) {
			return false, nil
		}
		w.rolledBack = true
		return true, c.keepAgain(ctx, w, *w.current.Spec.RollbackOf)
	}
	if !wanted(w.current) || !mustComeBack(w.current) {
		return false, nil
	}
	from := w.current.Status.ReturnsTo
	before, err := rollbackSource(w, from.Number)
	if err != nil || before.UID != from.UID {
		w.stuck = fmt.Sprintf("; revision %d, which was healthy before, is not kept, so there is nothing to go back to", from.Number)
		return false, nil
	}
	rendered, err := c.manifestsOf(ctx, before)
	var held *Hold
	if errors.As(err, &held) {
		w.stuck = fmt.Sprintf("; it is not possible to go back to revision %d: %s", from.Number, held.Message)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	w.rolledBack = true
	return true, c.createRevision(ctx, w, specOfReturn(w, before), rendered)
}

// mustComeBack reports whether a revision failed and there is another one to go back to.
func mustComeBack(current *v1alpha1.InstanceRevision) bool {
	return isTrue(current, v1alpha1.ConditionFailed) && current.Spec.OnFailure == v1alpha1.OnFailureRollback && current.Spec.RollbackOf == nil &&
		current.Status.ActivatedAt != nil && current.Status.ReturnsTo != nil
}

// recovered reports whether a revision that failed became active and healthy after all.
func recovered(w *work, number int64) bool {
	failed, err := rollbackSource(w, number)
	return err == nil && isTrue(failed, v1alpha1.ConditionActive) && !isTrue(failed, v1alpha1.ConditionFailed)
}

// specOfReturn is that of the revision before, in all that matters.
func specOfReturn(w *work, before *v1alpha1.InstanceRevision) v1alpha1.InstanceRevisionSpec {
	failed := w.current
	spec := before.Spec
	spec.Number = w.instance.Status.LastRevision + 1
	spec.RollbackOf = &before.Spec.Number
	spec.OnFailure = "" // a rollback that fails holds
	why := meta.FindStatusCondition(failed.Status.Conditions, v1alpha1.ConditionFailed)
	spec.InsteadOf = &v1alpha1.FailedRevision{
		Number: failed.Spec.Number, ContentDigest: failed.Spec.ContentDigest, ConfigDigest: failed.Spec.ConfigDigest,
		Message: status.Cut(why.Reason+": "+why.Message, status.MaxNote),
	}
	return spec
}

// keepAgain keeps the manifests of the newest revision after a crash between its making and that.
func (c *Controller) keepAgain(ctx context.Context, w *work, number int64) error {
	if isTrue(w.current, v1alpha1.ConditionPlanned) {
		return nil
	}
	from, err := rollbackSource(w, number)
	if err != nil {
		return err
	}
	rendered, err := c.manifestsOf(ctx, from)
	if err != nil {
		return err
	}
	return c.store(ctx, w.current, rendered)
}

// mayLeadBack reports whether the newest revision, should it fail, leads back to this one.
func mayLeadBack(current, revision *v1alpha1.InstanceRevision) bool {
	if current == nil || current.Spec.OnFailure != v1alpha1.OnFailureRollback || current.Status.HealthyAt != nil {
		return false
	}
	return current.Status.ReturnsTo != nil && current.Status.ReturnsTo.UID == revision.UID
}

// rolledBackMessage says what is active instead of what.
func rolledBackMessage(current *v1alpha1.InstanceRevision) string {
	return fmt.Sprintf("rolled back to revision %d (as revision %d) because revision %d failed: %s; change the bundle or its configuration to go on",
		*current.Spec.RollbackOf, current.Spec.Number, current.Spec.InsteadOf.Number, current.Spec.InsteadOf.Message)
}
