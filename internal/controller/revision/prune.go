// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"fmt"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/provisioner"
)

// prune deletes what older revisions wrote and the active one does not have,
// after all of the active one's objects stand. Only then do the older
// revisions count as superseded.
func (c *Controller) prune(ctx context.Context, w *work) error {
	if err := c.dismissPrunes(ctx, w); err != nil {
		return err
	}
	if w.target == nil || !is(w.target, v1alpha1.ConditionActive) {
		return nil
	}
	current, err := c.Manifests.Load(ctx, w.target)
	if err != nil {
		return err
	}
	for _, revision := range w.revisions {
		if !older(w, revision) {
			continue
		}
		if err := c.pruneOne(ctx, w, revision, current); err != nil {
			return err
		}
	}
	return c.pruneHeld(ctx, w)
}

// older reports whether a revision before the target may have left something.
func older(w *work, revision *v1alpha1.InstanceRevision) bool {
	return revision.Spec.Number < w.target.Spec.Number && revision.Status.ActivatedAt != nil && !is(revision, v1alpha1.ConditionSuperseded)
}

// instead says of an older revision what took its place.
func instead(target *v1alpha1.InstanceRevision) string {
	return fmt.Sprintf("revision %d is active instead", target.Spec.Number)
}

func (c *Controller) pruneOne(ctx context.Context, w *work, old *v1alpha1.InstanceRevision, current *Loaded) error {
	message := instead(w.target)
	conditions := conditionsOf(old)
	conditions.False(v1alpha1.ConditionActive, v1alpha1.ReasonSuperseded, message)
	conditions.Remove(v1alpha1.ConditionHealthy)
	conditions.Remove(v1alpha1.ConditionDrifted)
	conditions.Remove(v1alpha1.ConditionFailed)
	old.Status.Objects = nil
	if !w.target.Spec.Prune {
		conditions.True(v1alpha1.ConditionSuperseded, v1alpha1.ReasonSuperseded, message)
		return nil
	}
	known, left, err := Left(ctx, c.Manifests, c.Finder, old, current)
	if err != nil {
		return fmt.Errorf("revision %d cannot be pruned: %w", old.Spec.Number, err)
	}
	return c.pruneLeft(ctx, w, old, known, left)
}

// pruneLeft deletes what an older revision left, but for what waits for an approval of its own.
func (c *Controller) pruneLeft(ctx context.Context, w *work, old *v1alpha1.InstanceRevision, known *Loaded, left []provisioner.Phase) error {
	conditions := conditionsOf(old)
	others, holders := apart(left)
	if len(holders) > 0 {
		separate, err := PrunesApart(ctx, c.Live, w.target, old)
		if err != nil {
			return err
		}
		if !separate {
			others, holders = left, nil
		}
	}
	// The account of the revision that is active now: the old one may be gone.
	actor, err := c.pruning(ctx, w.target, known)
	var why *withheld
	if errors.As(err, &why) {
		conditions.False(v1alpha1.ConditionSuperseded, why.reason, why.message)
		w.requeue = permissionsPause
		return nil
	}
	if err != nil {
		return err
	}
	if heldFor(old, w.target) {
		others = nil // they are gone since it waits
	}
	result := c.Engine.Prune(ctx, actor, owner(w.instance), others, c.options(ctx, w.target, nil))
	c.measure(result)
	if !result.Complete {
		_, why, retry := outcome(result)
		conditions.False(v1alpha1.ConditionSuperseded, v1alpha1.ReasonPruning, why)
		if w.retry = retry; retry == nil {
			w.requeue = waitPause
		}
		return nil
	}
	waiting, err := c.hold(ctx, w, old, actor, holders)
	if err != nil {
		conditions.False(v1alpha1.ConditionSuperseded, v1alpha1.ReasonPruning, err.Error())
		w.retry = err
		return nil
	}
	if waiting == 0 {
		conditions.True(v1alpha1.ConditionSuperseded, v1alpha1.ReasonSuperseded, instead(w.target))
		return nil
	}
	conditions.False(v1alpha1.ConditionSuperseded, v1alpha1.ReasonWaitingForApproval, heldMessage(w.target, waiting))
	return nil
}

// Left gives what an old revision may have left behind: what it had and the current one has not; what
// its tasks left stays. If its manifests are
// lost, that is all that carries the instance's mark and is not of the current one; then known is nil.
func Left(ctx context.Context, manifests *Manifests, finder *Finder, old *v1alpha1.InstanceRevision, current *Loaded) (known *Loaded, left []provisioner.Phase, err error) {
	known, err = manifests.Load(ctx, old)
	if err == nil {
		return known, activate.State(without(known.removable(), current.find)), nil
	}
	if !lost(err) {
		return nil, nil, err
	}
	found, err := finder.Find(ctx, old.Spec.Instance.UID, old.Status.Kinds)
	if err != nil {
		return nil, nil, err
	}
	return nil, activate.State(without(found.Phases, found.same(current))), nil
}
