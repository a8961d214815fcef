// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/spelling"
)

// told are the conditions of a revision whose turning True is worth an Event,
// with the type of it and the action that it comes from.
var told = []struct{ condition, kind, action string }{
	{v1alpha1.ConditionApproved, corev1.EventTypeNormal, "Decide"},
	{v1alpha1.ConditionDenied, corev1.EventTypeWarning, "Decide"},
	{v1alpha1.ConditionActive, corev1.EventTypeNormal, "Activate"},
	{v1alpha1.ConditionHealthy, corev1.EventTypeNormal, "Judge"},
	{v1alpha1.ConditionSuperseded, corev1.EventTypeNormal, "Supersede"},
	{v1alpha1.ConditionFailed, corev1.EventTypeWarning, "Activate"},
	{v1alpha1.ConditionPruneApproved, corev1.EventTypeNormal, "Prune"},
}

// tell makes Events of what changed on a revision, and counts it.
func (c *Controller) tell(before, after *v1alpha1.InstanceRevision) {
	for _, one := range told {
		if is(after, one.condition) && !is(before, one.condition) {
			found := meta.FindStatusCondition(after.Status.Conditions, one.condition)
			c.Recorder.Eventf(after, nil, one.kind, one.condition, one.action, "%s", status.Note(found.Message))
		}
	}
	c.tellBlocked(before, after)
	c.count(before, after)
}

// tellBlocked warns once of each new reason why an approved revision does not
// become active.
func (c *Controller) tellBlocked(before, after *v1alpha1.InstanceRevision) {
	old := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionActive)
	now := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionActive)
	if now == nil || is(after, v1alpha1.ConditionActive) || old != nil && old.Reason == now.Reason {
		return
	}
	switch now.Reason {
	case v1alpha1.ReasonPermissionsMissing, v1alpha1.ReasonCollision, v1alpha1.ReasonImmutableField, v1alpha1.ReasonRejected,
		v1alpha1.ReasonUnknownKind, v1alpha1.ReasonManifestCorrupt:
		c.Recorder.Eventf(after, nil, corev1.EventTypeWarning, now.Reason, "Activate", "%s", status.Note(now.Message))
	}
}

// tellDecision makes an Event of each decision by a person; what a class decides is told with the condition.
func (c *Controller) tellDecision(after *v1alpha1.InstanceRevision, made v1alpha1.Decision) {
	if approval.By(made) != "user" {
		return
	}
	kind, what := corev1.EventTypeNormal, "approved"
	if made.Decision == v1alpha1.DecisionDeny {
		kind, what = corev1.EventTypeWarning, "denied"
	}
	about := "manifest digest " + string(after.Spec.ManifestDigest)
	if made.Prune != "" {
		about = "the deletion of removals " + string(made.Prune)
	}
	text := fmt.Sprintf("%s %s %s by Approval %s", spelling.Name(made.Approver), what, about, made.Approval)
	if made.Message != "" {
		text += ": " + made.Message
	}
	c.Recorder.Eventf(after, nil, kind, "Decided", "Decide", "%s", status.Note(text))
}

// count keeps the metrics of decisions and of what waits for one.
func (c *Controller) count(before, after *v1alpha1.InstanceRevision) {
	known := map[string]bool{}
	for _, decision := range before.Status.Decisions {
		known[decision.Approval] = true
	}
	for _, decision := range after.Status.Decisions {
		if !known[decision.Approval] {
			c.tellDecision(after, decision)
			c.Metrics.Decided(decision.Decision == v1alpha1.DecisionApprove, approval.By(decision))
		}
	}
}

// pruneSuffix tells a revision of which removals wait from one that waits itself.
const pruneSuffix = " prune"

// countWaiting keeps the gauge of revisions that wait for approval.
func (c *Controller) countWaiting(w *work) {
	for _, revision := range w.revisions {
		name := revision.Namespace + "/" + revision.Name
		if revision == w.newest && !is(revision, v1alpha1.ConditionApproved) && !is(revision, v1alpha1.ConditionDenied) {
			c.Metrics.Waiting(name, revision.Spec.ProvisionerClassName)
		} else {
			c.Metrics.NotWaiting(name)
		}
		if waitsToPrune(revision) {
			c.Metrics.Waiting(name+pruneSuffix, revision.Spec.ProvisionerClassName)
		} else {
			c.Metrics.NotWaiting(name + pruneSuffix)
		}
	}
}
