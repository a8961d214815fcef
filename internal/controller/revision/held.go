// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/plural"
	"rukpak.io/rukpak/provisioner"
)

// held is what one older revision left and nobody may delete without an approval of its own. As long as there is any, the
// revision is not superseded, so that what it left is not forgotten.
type held struct {
	revision *v1alpha1.InstanceRevision
	actor    client.Client
	objects  []removal
}

// PrunesApart reports whether the class of one of the revisions asks for an approval of its own before what holds others
// is deleted: that of the active one, or of one which left something. A class that is gone allows nothing.
func PrunesApart(ctx context.Context, live client.Reader, revisions ...*v1alpha1.InstanceRevision) (bool, error) {
	for _, revision := range revisions {
		class := &v1alpha1.ProvisionerClass{}
		err := live.Get(ctx, types.NamespacedName{Name: revision.Spec.ProvisionerClassName}, class)
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if err != nil || class.Spec.Approval.Prune == v1alpha1.PruneSeparate {
			return true, nil
		}
	}
	return false, nil
}

// hold notes what of an older revision's objects waits, and says how much.
func (c *Controller) hold(ctx context.Context, w *work, old *v1alpha1.InstanceRevision, actor client.Client, holders []*unstructured.Unstructured) (int, error) {
	objects, err := c.standing(ctx, w, actor, holders)
	if err != nil || len(objects) == 0 {
		return 0, err
	}
	w.held = append(w.held, held{old, actor, objects})
	return len(objects), nil
}

// pruneHeld decides about what older revisions left, and does what was decided.
func (c *Controller) pruneHeld(ctx context.Context, w *work) error {
	if unsettled(w) {
		return nil
	}
	target := w.target
	var all []removal
	for _, one := range w.held {
		all = append(all, one.objects...)
	}
	now := removalsOf(all)
	if waits := target.Status.Removals; waits != nil {
		verdict, err := c.judgePrune(ctx, w, target)
		if err != nil {
			return err
		}
		if verdict.Outcome != approval.Waiting {
			list, err := c.decidedList(ctx, target, now)
			if err != nil {
				return err
			}
			if len(list.Objects) > 0 {
				if err := c.answer(ctx, w.approvals, verdict); err != nil {
					return err
				}
				return c.carryOut(ctx, w, list, verdict)
			}
		}
	}
	if err := c.renew(ctx, target, now); err != nil {
		return err
	}
	verdict, err := c.judgePrune(ctx, w, target)
	if err != nil {
		return err
	}
	if err := c.answer(ctx, w.approvals, verdict); err != nil || target.Status.Removals == nil {
		return err
	}
	w.lookAgain(verdict.Expires)
	if verdict.Outcome != approval.Waiting {
		w.lookAgain(time.Now()) // it is carried out next
		return nil
	}
	conditionsOf(target).False(v1alpha1.ConditionPruneApproved, verdict.Reason, fmt.Sprintf(
		"%s of older revisions, with all that is in them, stay: %s; %s; decide with rukpak approve %s --prune, or deny",
		now.count(), now.say(), verdict.Message, w.instance.Name))
	return nil
}

// decidedList is the list that was decided about. If it is lost and not what is there now either, nobody knows it.
func (c *Controller) decidedList(ctx context.Context, target *v1alpha1.InstanceRevision, now removals) (removals, error) {
	if now.digest() == target.Status.Removals.Digest {
		return now, nil
	}
	return c.keptRemovals(ctx, target)
}

// renew makes what is there now that which waits. Who approved something else has not approved this.
func (c *Controller) renew(ctx context.Context, target *v1alpha1.InstanceRevision, now removals) error {
	if before := target.Status.Removals; before != nil && before.Digest != now.digest() {
		forgetRemovals(target)
	}
	if target.Status.Removals != nil || len(now.Objects) == 0 {
		return nil
	}
	if err := c.keepRemovals(ctx, target, now); err != nil {
		return err
	}
	target.Status.Removals = now.held()
	return nil
}

// forgetRemovals drops what waited, and what was said about it before it was decided.
func forgetRemovals(of *v1alpha1.InstanceRevision) {
	digest := of.Status.Removals.Digest
	of.Status.Removals = nil
	of.Status.Decisions = slices.DeleteFunc(of.Status.Decisions, func(made v1alpha1.Decision) bool { return made.Prune == digest })
	conditionsOf(of).Remove(v1alpha1.ConditionPruneApproved)
}

// carryOut deletes what was approved, or releases what was denied, as far as it is still there.
func (c *Controller) carryOut(ctx context.Context, w *work, list removals, verdict approval.Verdict) error {
	target := w.target
	conditions := conditionsOf(target)
	deletes := verdict.Outcome == approval.Approved
	if deletes {
		conditions.True(v1alpha1.ConditionPruneApproved, verdict.Reason, verdict.Message+": "+list.count()+" may be deleted: "+list.say())
	} else {
		conditions.False(v1alpha1.ConditionPruneApproved, verdict.Reason, verdict.Message+"; left for good, and not the instance's any more: "+
			list.count()+": "+list.say())
	}
	if err := c.patch(ctx, w); err != nil { // what is done was decided, whatever comes
		return err
	}
	complete := true
	for _, one := range w.held {
		mine := slices.DeleteFunc(slices.Clone(one.objects), func(object removal) bool { return !list.has(object) })
		done, err := c.carryOutOne(ctx, w, one, mine, deletes)
		if err != nil {
			conditionsOf(one.revision).False(v1alpha1.ConditionSuperseded, v1alpha1.ReasonPruning, err.Error())
			w.retry = err
		}
		if complete = complete && done; done && len(mine) == len(one.objects) {
			conditionsOf(one.revision).True(v1alpha1.ConditionSuperseded, v1alpha1.ReasonSuperseded, instead(target))
		}
	}
	if complete {
		target.Status.Removals = nil
		w.lookAgain(time.Now()) // something else may wait by now
	}
	return nil
}

func (c *Controller) carryOutOne(ctx context.Context, w *work, of held, mine []removal, deletes bool) (bool, error) {
	if len(mine) == 0 {
		return true, nil
	}
	if !deletes {
		var failed []error
		for _, object := range mine {
			failed = append(failed, letGo(ctx, of.actor, object))
		}
		err := errors.Join(failed...)
		return err == nil, err
	}
	options := c.options(ctx, w.target, nil)
	options.UIDs = map[ownership.ID]types.UID{}
	phase := provisioner.Phase{Name: "removals"}
	for _, object := range mine {
		options.UIDs[object.id()] = object.UID
		made := &unstructured.Unstructured{}
		made.SetGroupVersionKind(object.id().GroupKind().WithVersion("v1"))
		made.SetNamespace(object.Namespace)
		made.SetName(object.Name)
		phase.Objects = append(phase.Objects, made)
	}
	result := c.Engine.Prune(ctx, of.actor, owner(w.instance), []provisioner.Phase{phase}, options)
	c.measure(result)
	if result.Complete {
		return true, nil
	}
	_, why, retry := outcome(result)
	conditionsOf(of.revision).False(v1alpha1.ConditionSuperseded, v1alpha1.ReasonPruning, why)
	if w.retry = retry; retry == nil {
		w.requeue = waitPause
	}
	return false, nil
}

// judgePrune counts the approvals of what waits for a revision.
func (c *Controller) judgePrune(ctx context.Context, w *work, of *v1alpha1.InstanceRevision) (approval.Verdict, error) {
	class, err := c.class(ctx, of.Spec.ProvisionerClassName)
	if err != nil {
		return approval.Verdict{}, err
	}
	verdict := approval.JudgePrune(approval.Input{
		Revision:   subject(of),
		People:     people(class.Spec.Approval, of),
		Approvals:  w.approvals,
		Previous:   of.Status.Decisions,
		Superseded: of != w.target,
		Now:        metav1.Now(),
	}, of.Status.Removals)
	of.Status.Decisions = slices.Concat(approval.Activating(of.Status.Decisions), verdict.Decisions)
	return verdict, nil
}

// dismissPrunes answers approvals of what does not wait, or no more: of revisions that are not the active one.
func (c *Controller) dismissPrunes(ctx context.Context, w *work) error {
	active := w.target != nil && is(w.target, v1alpha1.ConditionActive)
	for _, revision := range w.revisions {
		if active && revision == w.target {
			continue
		}
		if active && revision.Status.Removals != nil {
			forgetRemovals(revision)
		}
		named := slices.ContainsFunc(w.approvals, func(one v1alpha1.Approval) bool {
			return one.Spec.Prune != "" && one.Spec.Revision == revision.Name
		})
		if !named {
			continue
		}
		verdict, err := c.judgePrune(ctx, w, revision)
		if err != nil {
			return err
		}
		if err := c.answer(ctx, w.approvals, verdict); err != nil {
			return err
		}
	}
	return nil
}

// waitsToPrune reports whether people are asked about what older revisions left.
func waitsToPrune(of *v1alpha1.InstanceRevision) bool {
	return of.Status.Removals != nil && conditionsOf(of).Reason(v1alpha1.ConditionPruneApproved) == v1alpha1.ReasonWaitingForApproval
}

// heldFor reports whether all that an older revision left has been pruned for the active one but for what waits.
func heldFor(old, target *v1alpha1.InstanceRevision) bool {
	found := meta.FindStatusCondition(old.Status.Conditions, v1alpha1.ConditionSuperseded)
	return found != nil && found.Reason == v1alpha1.ReasonWaitingForApproval && strings.HasPrefix(found.Message, instead(target)+";")
}

// unsettled reports whether it is not known of an older revision what of it waits: this time something went wrong. What
// was decided about stays until that is known.
func unsettled(w *work) bool {
	return slices.ContainsFunc(w.revisions, func(old *v1alpha1.InstanceRevision) bool {
		return older(w, old) && !slices.ContainsFunc(w.held, func(one held) bool { return one.revision == old })
	})
}

// heldMessage says of an older revision why it is still remembered.
func heldMessage(target *v1alpha1.InstanceRevision, left int) string {
	return fmt.Sprintf("%s; %s of it wait for an approval of their own before they are deleted", instead(target), plural.Of(left, "object"))
}
