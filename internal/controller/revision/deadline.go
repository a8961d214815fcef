// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"rukpak.io/rukpak/api/v1alpha1"
)

const defaultDeadline = 10 * time.Minute

// checkDeadline says when the target did not become active and healthy in
// time. It is still tried: a deadline that passed is a message, not an end.
// Once a revision has been active and healthy, the deadline is met for good.
func (c *Controller) checkDeadline(_ context.Context, w *work) error {
	target := w.target
	if target == nil || target.Status.ActivatedAt == nil || target.Status.ProgressAt == nil {
		return nil
	}
	conditions := conditionsOf(target)
	if is(target, v1alpha1.ConditionActive) && is(target, v1alpha1.ConditionHealthy) {
		completed(target)
		return nil
	}
	if conditions.Reason(v1alpha1.ConditionActive) == v1alpha1.ReasonCompleted ||
		is(target, v1alpha1.ConditionFailed) && conditions.Reason(v1alpha1.ConditionFailed) != v1alpha1.ReasonDeadlineExceeded {
		return nil
	}
	if end := target.Status.ProgressAt.Add(deadline(w.instance)); time.Now().Before(end) {
		w.lookAgain(end)
		return nil
	}
	conditions.True(v1alpha1.ConditionFailed, v1alpha1.ReasonDeadlineExceeded,
		fmt.Sprintf("not active and healthy within %s; last: %s%s", deadline(w.instance), lastWord(target), withoutReturn(target)))
	return nil
}

func deadline(instance *v1alpha1.BundleInstance) time.Duration {
	if set := instance.Spec.Strategy.ProgressDeadline; set != nil {
		return set.Duration
	}
	return defaultDeadline
}

// lastWord is what the revision waits for.
func lastWord(target *v1alpha1.InstanceRevision) string {
	for _, conditionType := range []string{v1alpha1.ConditionActive, v1alpha1.ConditionHealthy} {
		found := meta.FindStatusCondition(target.Status.Conditions, conditionType)
		if found != nil && !is(target, conditionType) {
			return found.Message
		}
	}
	return "nothing was said"
}
