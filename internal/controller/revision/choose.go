// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"fmt"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/plan"
)

// choose finds the revision to activate or heal: the newest if it is approved
// and planned and nothing in the plan blocks it, else the newest that was
// activated before. A revision that
// waits, or was denied, never takes the place of what is active.
func (c *Controller) choose(_ context.Context, w *work) error {
	if w.newest != nil && allowed(w.newest) && w.waits == nil {
		w.target = w.newest
		return nil
	}
	for _, revision := range w.revisions {
		if revision.Status.ActivatedAt != nil && !is(revision, v1alpha1.ConditionSuperseded) {
			w.target = revision
		}
	}
	return nil
}

func allowed(revision *v1alpha1.InstanceRevision) bool {
	return is(revision, v1alpha1.ConditionApproved) && is(revision, v1alpha1.ConditionPlanned) && !is(revision, v1alpha1.ConditionDenied) &&
		blocked(revision) == ""
}

// blocked says what in the plan keeps a revision from being activated. Once it
// wrote something that comes too late.
func blocked(revision *v1alpha1.InstanceRevision) string {
	if revision.Status.ActivatedAt != nil {
		return ""
	}
	return plan.Blocked(revision.Status.Plan)
}

// supersede marks the revisions before the target that never wrote anything:
// their turn is over. Those that did are marked when what they left is pruned.
func supersede(w *work) {
	for _, revision := range w.revisions {
		if revision.Spec.Number >= w.target.Spec.Number || is(revision, v1alpha1.ConditionSuperseded) || revision.Status.ActivatedAt != nil {
			continue
		}
		message := fmt.Sprintf("revision %d was activated instead", w.target.Spec.Number)
		conditions := conditionsOf(revision)
		conditions.True(v1alpha1.ConditionSuperseded, v1alpha1.ReasonSuperseded, message)
		conditions.False(v1alpha1.ConditionActive, v1alpha1.ReasonSuperseded, message)
	}
}
