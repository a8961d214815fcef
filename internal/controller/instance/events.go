// SPDX-License-Identifier: Apache-2.0

package instance

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/status"
)

func (c *Controller) event(about *v1alpha1.BundleInstance, related client.Object, reason, action, note string) {
	var other runtime.Object
	if related != nil {
		other = related
	}
	c.Recorder.Eventf(about, other, corev1.EventTypeNormal, reason, action, "%s", status.Note(note))
}

// tell makes an Event of each change of the Ready condition's status or reason.
func (c *Controller) tell(before, after *v1alpha1.BundleInstance) {
	old := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady)
	ready := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || old != nil && old.Status == ready.Status && old.Reason == ready.Reason {
		return
	}
	kind := corev1.EventTypeNormal
	if warns(ready) {
		kind = corev1.EventTypeWarning
	}
	c.Recorder.Eventf(after, nil, kind, ready.Reason, "Reconcile", "%s", status.Note(ready.Message))
}

// warns tells what a person should look at from what only takes its course.
func warns(ready *metav1.Condition) bool {
	if ready.Status == metav1.ConditionTrue {
		return false
	}
	switch ready.Reason {
	case v1alpha1.ReasonWaitingForApproval, v1alpha1.ReasonPlanning, v1alpha1.ReasonActivating, v1alpha1.ReasonInProgress,
		v1alpha1.ReasonBundleNotReady, v1alpha1.ReasonSuspended, v1alpha1.ReasonNoRevision,
		v1alpha1.ReasonApproved, v1alpha1.ReasonWaitingForObjects:
		return false
	}
	return true
}
