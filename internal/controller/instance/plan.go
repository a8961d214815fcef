// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/plan"
	"rukpak.io/rukpak/internal/plural"
)

// Planner says what a revision would do.
type Planner interface {
	// Plan computes the plan of revision against what is live and the objects
	// of the given older revisions, keeps it beside the revision, and gives
	// its summary. It writes nothing else.
	Plan(ctx context.Context, revision *v1alpha1.InstanceRevision, older []v1alpha1.InstanceRevision) (*v1alpha1.PlanSummary, error)
}

const (
	replanMin = 15 * time.Second
	replanMax = 10 * time.Minute
)

// ensurePlan plans the newest revision, and plans it again when another
// revision became active meanwhile. A plan with problems is looked at again
// with growing pauses, since rights and objects may have changed.
func (c *Controller) ensurePlan(ctx context.Context, w *work) error {
	revision := w.current
	if isTrue(revision, v1alpha1.ConditionActive) || isTrue(revision, v1alpha1.ConditionDenied) || revision.Status.ActivatedAt != nil {
		return nil
	}
	if wait, fresh := c.planFresh(w); fresh {
		w.again(wait)
		return nil
	}
	before := revision.DeepCopy()
	conditions := status.Conditions{List: &revision.Status.Conditions, Generation: revision.Generation}
	summary, err := c.Planner.Plan(ctx, revision, w.revisions)
	if err != nil {
		conditions.False(v1alpha1.ConditionPlanned, v1alpha1.ReasonPlanFailed, err.Error())
		if patchErr := status.Patch(ctx, c.Client, revision, before); patchErr != nil {
			return patchErr
		}
		return &Hold{
			Reason: v1alpha1.ReasonPlanFailed, Retry: true,
			Message: fmt.Sprintf("plan of revision %d: %v", revision.Spec.Number, err),
		}
	}
	c.looked.Store(w.instance.UID, &look{revision.UID, time.Now()})
	summary.Against = numberOf(activeOf(w.revisions))
	summary.Signatures, _ = signaturesOf(w)
	summary.ClassGeneration = classGeneration(w)
	if err := c.recordPlan(ctx, revision, summary); err != nil {
		return err
	}
	if !isTrue(before, v1alpha1.ConditionPlanned) {
		c.event(w.instance, revision, "Planned", "Plan", fmt.Sprintf("revision %d: %s", revision.Spec.Number, PlanMessage(summary)))
	}
	wait, _ := c.planFresh(w)
	w.again(wait)
	return nil
}

// recordPlan writes the plan into the status.
func (c *Controller) recordPlan(ctx context.Context, revision *v1alpha1.InstanceRevision, summary *v1alpha1.PlanSummary) error {
	return c.write(ctx, revision, func(r *v1alpha1.InstanceRevision) {
		conditions := status.Conditions{List: &r.Status.Conditions, Generation: r.Generation}
		r.Status.ObservedGeneration = r.Generation
		r.Status.Plan = summary
		conditions.True(v1alpha1.ConditionPlanned, v1alpha1.ReasonPlanned, PlanMessage(summary))
	})
}

// writeTries bounds how often a status is written anew after a conflict.
const writeTries = 5

// write changes the status of a revision. What goes into it was computed at some cost, or cannot be computed again, and
// meanwhile the revision controller may have written there, such as that it waits for this: so it goes beside what that wrote.
func (c *Controller) write(ctx context.Context, revision *v1alpha1.InstanceRevision, change func(*v1alpha1.InstanceRevision)) error {
	for try := 1; ; try++ {
		before := revision.DeepCopy()
		change(revision)
		err := status.Patch(ctx, c.Client, revision, before)
		if !apierrors.IsConflict(err) || try == writeTries {
			return err
		}
		fresh := &v1alpha1.InstanceRevision{}
		if readErr := c.Live.Get(ctx, client.ObjectKeyFromObject(revision), fresh); readErr != nil {
			return readErr
		}
		if fresh.UID != revision.UID {
			return err
		}
		*revision = *fresh
	}
}

// planFresh reports whether the plan still stands and, for one with problems,
// after which time it is looked at again.
func (c *Controller) planFresh(w *work) (time.Duration, bool) {
	planned := meta.FindStatusCondition(w.current.Status.Conditions, v1alpha1.ConditionPlanned)
	summary := w.current.Status.Plan
	if summary == nil || !isTrue(w.current, v1alpha1.ConditionPlanned) || summary.Against != numberOf(activeOf(w.revisions)) {
		return 0, false
	}
	if signatures, known := signaturesOf(w); known && !equality.Semantic.DeepEqual(signatures, summary.Signatures) {
		return 0, false // the class asks for others now
	}
	if generation := classGeneration(w); generation != 0 && generation != summary.ClassGeneration {
		return 0, false // its rules about upgrades may be others now
	}
	if summary.Permissions == nil {
		return 0, false // it was made by a manager that did not compute them
	}
	if len(summary.Problems) == 0 && len(summary.MissingPermissions) == 0 {
		return 0, true
	}
	// The pause grows with the age of the plan, so that a problem nobody
	// mends costs less and less.
	pause := min(max(time.Since(planned.LastTransitionTime.Time)/4, replanMin), replanMax)
	looked, ok := c.looked.Load(w.instance.UID)
	if !ok || looked.(*look).revision != w.current.UID {
		return 0, false
	}
	wait := pause - time.Since(looked.(*look).at)
	return wait, wait > 0
}

// look is when a revision was last planned.
type look struct {
	revision types.UID
	at       time.Time
}

// signaturesOf gives the verdicts on the bundle of the newest revision, for
// whoever has to approve it. Of a rollback to another bundle they are not known.
func signaturesOf(w *work) (verdicts []v1alpha1.SourceVerdict, known bool) {
	if w.bundle == nil || w.bundle.Name != w.current.Spec.BundleName {
		return nil, false
	}
	if w.bundle.Status.Verification == nil {
		return nil, true
	}
	return w.bundle.Status.Verification.Verdicts, true
}

// classGeneration is that of the class of the newest revision, 0 if another
// class is looked at now, as may be in a rollback.
func classGeneration(w *work) int64 {
	if w.class == nil || w.class.Name != w.current.Spec.ProvisionerClassName {
		return 0
	}
	return w.class.Generation
}

func numberOf(revision *v1alpha1.InstanceRevision) int64 {
	if revision == nil {
		return 0
	}
	return revision.Spec.Number
}

// PlanMessage is the one line that sums up a plan.
func PlanMessage(p *v1alpha1.PlanSummary) string {
	message := plan.CountsIn(p).String()
	if len(p.Problems) > 0 {
		message += "; the first problem: " + p.Problems[0]
	}
	if n := len(p.MissingPermissions); n > 0 {
		message += fmt.Sprintf("; the service account lacks %s, the first: %s", plural.Of(n, "permission"), p.MissingPermissions[0])
	}
	return message
}
