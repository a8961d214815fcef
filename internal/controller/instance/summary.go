// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/plan"
)

// summarise tells in the instance's status how far it has come. held is why
// the steps stopped, or nil.
func summarise(w *work, held *Hold) {
	s := &w.instance.Status
	s.ObservedGeneration = w.instance.Generation
	if w.bundle != nil {
		s.BundleName = w.bundle.Name
	}
	active := activeOf(w.revisions)
	s.Active, s.Pending, s.Objects = reference(active), nil, nil
	if w.current != nil && w.current != active {
		s.Pending = reference(w.current)
	}
	if active != nil {
		s.Objects = active.Status.Objects
	}
	conditions := status.Conditions{List: &s.Conditions, Generation: w.instance.Generation}
	copyCondition(conditions, active, v1alpha1.ConditionHealthy)
	copyCondition(conditions, active, v1alpha1.ConditionDrifted)
	setApproved(conditions, w.current)
	back := held == nil && w.rolledBack && w.current == active
	if back && isTrue(active, v1alpha1.ConditionHealthy) {
		conditions.False(v1alpha1.ConditionProgressing, v1alpha1.ReasonRolledBack, rolledBackMessage(w.current))
		conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonRolledBack, rolledBackMessage(w.current))
	} else {
		setProgressing(conditions, w.current, active, held)
		setReady(conditions, w.current, active, held, w.stuck)
	}
	if back {
		conditions.True(v1alpha1.ConditionStalled, v1alpha1.ReasonRolledBack, rolledBackMessage(w.current))
	} else {
		conditions.Remove(v1alpha1.ConditionStalled)
	}
}

func reference(r *v1alpha1.InstanceRevision) *v1alpha1.RevisionReference {
	if r == nil {
		return nil
	}
	return &v1alpha1.RevisionReference{Name: r.Name, Number: r.Spec.Number, ManifestDigest: r.Spec.ManifestDigest}
}

func copyCondition(to status.Conditions, from *v1alpha1.InstanceRevision, conditionType string) {
	if from == nil {
		to.Remove(conditionType)
		return
	}
	if found := meta.FindStatusCondition(from.Status.Conditions, conditionType); found != nil {
		to.Set(conditionType, found.Status, found.Reason, found.Message)
	} else {
		to.Remove(conditionType)
	}
}

func setApproved(conditions status.Conditions, current *v1alpha1.InstanceRevision) {
	switch {
	case current == nil:
		conditions.Remove(v1alpha1.ConditionApproved)
	case isTrue(current, v1alpha1.ConditionDenied):
		denied := meta.FindStatusCondition(current.Status.Conditions, v1alpha1.ConditionDenied)
		conditions.False(v1alpha1.ConditionApproved, v1alpha1.ReasonDenied, denied.Message)
	default:
		copyCondition(conditions, current, v1alpha1.ConditionApproved)
	}
}

// setProgressing: an instance that waits for a person is at rest, as is one
// that cannot go on.
func setProgressing(conditions status.Conditions, current, active *v1alpha1.InstanceRevision, held *Hold) {
	switch {
	case held != nil && (held.Retry || held.Busy):
		conditions.True(v1alpha1.ConditionProgressing, held.Reason, held.Message)
	case held != nil:
		conditions.False(v1alpha1.ConditionProgressing, held.Reason, held.Message)
	case current == nil:
		conditions.False(v1alpha1.ConditionProgressing, v1alpha1.ReasonNoRevision, "there is no revision yet")
	case !isTrue(current, v1alpha1.ConditionPlanned):
		conditions.True(v1alpha1.ConditionProgressing, v1alpha1.ReasonPlanning, fmt.Sprintf("revision %d is being planned", current.Spec.Number))
	case isTrue(current, v1alpha1.ConditionDenied):
		conditions.False(v1alpha1.ConditionProgressing, v1alpha1.ReasonDenied, fmt.Sprintf("revision %d was denied", current.Spec.Number))
	case !isTrue(current, v1alpha1.ConditionApproved):
		conditions.False(v1alpha1.ConditionProgressing, v1alpha1.ReasonWaitingForApproval, fmt.Sprintf("revision %d waits for approval", current.Spec.Number))
	case current.Status.ActivatedAt == nil && plan.Blocked(current.Status.Plan) != "":
		conditions.False(v1alpha1.ConditionProgressing, v1alpha1.ReasonUnsafeCRDUpgrade, fmt.Sprintf("revision %d: %s", current.Spec.Number, plan.Blocked(current.Status.Plan)))
	case isTrue(current, v1alpha1.ConditionFailed):
		copied := meta.FindStatusCondition(current.Status.Conditions, v1alpha1.ConditionFailed)
		conditions.False(v1alpha1.ConditionProgressing, copied.Reason, copied.Message)
	case current != active:
		setActivating(conditions, current)
	case !isTrue(current, v1alpha1.ConditionHealthy):
		conditions.True(v1alpha1.ConditionProgressing, v1alpha1.ReasonInProgress, fmt.Sprintf("revision %d is active; its objects are on their way", current.Spec.Number))
	default:
		conditions.False(v1alpha1.ConditionProgressing, v1alpha1.ReasonActiveHealthy, fmt.Sprintf("revision %d is active and healthy", current.Spec.Number))
	}
}

func setActivating(conditions status.Conditions, current *v1alpha1.InstanceRevision) {
	if why := waitsForOthers(current); why != nil {
		conditions.Set(v1alpha1.ConditionProgressing, progressOf(why.Reason), why.Reason, fmt.Sprintf("revision %d: %s", current.Spec.Number, why.Message))
		return
	}
	conditions.True(v1alpha1.ConditionProgressing, v1alpha1.ReasonActivating, fmt.Sprintf("revision %d is being activated", current.Spec.Number))
}

// waitsForOthers is the condition of a revision that is approved and waits for other instances, or nil.
func waitsForOthers(current *v1alpha1.InstanceRevision) *metav1.Condition {
	found := meta.FindStatusCondition(current.Status.Conditions, v1alpha1.ConditionActive)
	if found != nil && (found.Reason == v1alpha1.ReasonDependencyNotReady || found.Reason == v1alpha1.ReasonDependencyCycle) {
		return found
	}
	return nil
}

// progressOf: others become ready by themselves, a circle never ends.
func progressOf(reason string) metav1.ConditionStatus {
	if reason == v1alpha1.ReasonDependencyCycle {
		return metav1.ConditionFalse
	}
	return metav1.ConditionTrue
}

// setReady says whether the newest revision is active and healthy. stuck is what there is to add of one that failed.
func setReady(conditions status.Conditions, current, active *v1alpha1.InstanceRevision, held *Hold, stuck string) {
	switch {
	case held != nil:
		conditions.False(v1alpha1.ConditionReady, held.Reason, held.Message)
	case current == nil:
		conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonNoRevision, "there is no revision yet")
	case isTrue(current, v1alpha1.ConditionDenied):
		denied := meta.FindStatusCondition(current.Status.Conditions, v1alpha1.ConditionDenied)
		conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonDenied, denied.Message)
	case current != active:
		reason, message := notActive(current)
		conditions.False(v1alpha1.ConditionReady, reason, message+stuck)
	case isTrue(current, v1alpha1.ConditionHealthy):
		conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonActiveHealthy, fmt.Sprintf("revision %d is active and healthy", current.Spec.Number))
	case isTrue(current, v1alpha1.ConditionFailed):
		failed := meta.FindStatusCondition(current.Status.Conditions, v1alpha1.ConditionFailed)
		conditions.False(v1alpha1.ConditionReady, failed.Reason, fmt.Sprintf("revision %d: %s", current.Spec.Number, failed.Message)+stuck)
	default:
		conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonInProgress, fmt.Sprintf("revision %d is active", current.Spec.Number))
		if healthy := meta.FindStatusCondition(current.Status.Conditions, v1alpha1.ConditionHealthy); healthy != nil {
			conditions.Set(v1alpha1.ConditionReady, metav1.ConditionFalse, healthy.Reason, healthy.Message)
		}
	}
}

func notActive(current *v1alpha1.InstanceRevision) (reason, message string) {
	prefix := fmt.Sprintf("revision %d: ", current.Spec.Number)
	for _, conditionType := range []string{v1alpha1.ConditionFailed, v1alpha1.ConditionActive, v1alpha1.ConditionApproved, v1alpha1.ConditionPlanned} {
		found := meta.FindStatusCondition(current.Status.Conditions, conditionType)
		if found == nil || conditionType == v1alpha1.ConditionFailed && found.Status != metav1.ConditionTrue ||
			conditionType != v1alpha1.ConditionFailed && found.Status == metav1.ConditionTrue {
			continue
		}
		if found.Reason == v1alpha1.ReasonPlanning && isTrue(current, v1alpha1.ConditionPlanned) {
			continue // it was so a moment ago
		}
		return found.Reason, prefix + found.Message
	}
	if isTrue(current, v1alpha1.ConditionPlanned) {
		return v1alpha1.ReasonWaitingForApproval, prefix + "is planned and not decided about"
	}
	return v1alpha1.ReasonPlanning, prefix + "is being planned"
}
