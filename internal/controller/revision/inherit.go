// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/approval"
	"rukpak.io/rukpak/internal/controller/status"
)

// comesBack reports whether a revision that fails leads back to another one: whoever approved it has approved that.
func comesBack(revision *v1alpha1.InstanceRevision) bool {
	return revision.Spec.OnFailure == v1alpha1.OnFailureRollback && revision.Spec.RollbackOf == nil
}

// returnsTo is where a revision leads back to that takes the place of active: to that, if it was ever healthy, else to
// where that would have led. It is kept when activation begins, so that nobody can choose another one later, such as by
// deleting revisions.
func returnsTo(active *v1alpha1.InstanceRevision) *v1alpha1.ReturnReference {
	switch {
	case active == nil:
		return nil
	case active.Status.HealthyAt == nil:
		return active.Status.ReturnsTo.DeepCopy()
	default:
		return &v1alpha1.ReturnReference{Name: active.Name, UID: active.UID, Number: active.Spec.Number}
	}
}

// final are the reasons for which an object is refused whatever is tried.
var final = map[activate.Reason]bool{activate.CollisionReason: true, activate.ImmutableField: true, activate.Rejected: true}

// recordFailure says that a revision which leads back to another one failed, as soon as an object is refused for good.
// Others go on trying until their deadline, and after it.
func recordFailure(target *v1alpha1.InstanceRevision, result activate.Result) {
	if !comesBack(target) || target.Status.ReturnsTo == nil || is(target, v1alpha1.ConditionFailed) || !final[result.Reason()] {
		return
	}
	conditionsOf(target).True(v1alpha1.ConditionFailed, string(result.Reason()), result.String())
}

// inherited gives the decision on a revision that takes the place of one that failed: it needs no other approval if it is
// in all that matters the revision that was approved, and healthy, when activation of the failed one began, and that
// was approved to lead back there. why says what is missing.
func inherited(revision *v1alpha1.InstanceRevision, all []*v1alpha1.InstanceRevision) (made *v1alpha1.Decision, why string) {
	if revision.Spec.InsteadOf == nil || revision.Spec.RollbackOf == nil {
		return nil, ""
	}
	failed, before := numbered(all, revision.Spec.InsteadOf.Number), numbered(all, *revision.Spec.RollbackOf)
	switch {
	case failed == nil:
		return nil, fmt.Sprintf("revision %d, which failed, is not kept", revision.Spec.InsteadOf.Number)
	case before == nil:
		return nil, fmt.Sprintf("revision %d is not kept", *revision.Spec.RollbackOf)
	case !comesBack(failed) || failed.Status.ActivatedAt == nil || !approvedBefore(failed):
		return nil, fmt.Sprintf("revision %d was not approved with onFailure Rollback", failed.Spec.Number)
	case !is(failed, v1alpha1.ConditionFailed):
		return nil, fmt.Sprintf("revision %d has not failed", failed.Spec.Number)
	case failed.Status.ReturnsTo == nil || failed.Status.ReturnsTo.UID != before.UID:
		return nil, fmt.Sprintf("revision %d was not the healthy one when activation of revision %d began", before.Spec.Number, failed.Spec.Number)
	case before.Status.HealthyAt == nil || !approvedBefore(before):
		return nil, fmt.Sprintf("revision %d was not approved and healthy", before.Spec.Number)
	case !sameEffect(revision.Spec, before.Spec):
		return nil, fmt.Sprintf("it is not what revision %d was", before.Spec.Number)
	}
	return &v1alpha1.Decision{
		Approval: approval.RollbackDecision, Approver: "revision/" + failed.Name, Decision: v1alpha1.DecisionApprove, Time: metav1.Now(),
		Message: status.Note(fmt.Sprintf("revision %d failed, and was approved by %s with onFailure Rollback; revision %d, which had the same manifests, was approved by %s",
			failed.Spec.Number, approval.Approvers(failed.Status.Decisions), before.Spec.Number, approval.Approvers(before.Status.Decisions))),
	}, ""
}

func numbered(all []*v1alpha1.InstanceRevision, number int64) *v1alpha1.InstanceRevision {
	at := slices.IndexFunc(all, func(revision *v1alpha1.InstanceRevision) bool { return revision.Spec.Number == number })
	if at < 0 {
		return nil
	}
	return all[at]
}

func approvedBefore(revision *v1alpha1.InstanceRevision) bool {
	return approval.Allow(revision.Status.Decisions) && !is(revision, v1alpha1.ConditionDenied)
}

// sameEffect compares what an approver of a revision decides about: all of its spec but which revision it is. A way back
// of its own is none of that, since a rollback has none.
func sameEffect(back, before v1alpha1.InstanceRevisionSpec) bool {
	if back.OnFailure != "" {
		return false
	}
	for _, spec := range []*v1alpha1.InstanceRevisionSpec{&back, &before} {
		spec.Number, spec.RollbackOf, spec.InsteadOf, spec.OnFailure = 0, nil, nil, ""
		spec.InstanceGeneration, spec.ChangedBy = 0, nil
	}
	return equality.Semantic.DeepEqual(back, before)
}

// withoutReturn says what is to be added to why a revision failed that cannot lead back.
func withoutReturn(target *v1alpha1.InstanceRevision) string {
	if !comesBack(target) || target.Status.ReturnsTo != nil {
		return ""
	}
	return "; there is nothing to go back to, since no revision was healthy before"
}

// completed says that a revision has been active and healthy.
func completed(target *v1alpha1.InstanceRevision) {
	conditions := conditionsOf(target)
	active := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.ConditionActive)
	conditions.True(v1alpha1.ConditionActive, v1alpha1.ReasonCompleted, active.Message)
	conditions.Remove(v1alpha1.ConditionFailed)
	if target.Status.HealthyAt == nil {
		target.Status.HealthyAt = new(metav1.Now())
	}
}
