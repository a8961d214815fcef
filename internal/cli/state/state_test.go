// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func TestRevisionIsOneWord(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	planned := condition("Planned", yes, "Planned", "")
	approved := condition("Approved", yes, "Approved", "by ann")
	active := condition("Active", yes, "Activated", "3 objects")
	tests := map[string]struct {
		conditions []metav1.Condition
		want       State
	}{
		"nobody looked at it":             {nil, unseen()},
		"planning":                        {[]metav1.Condition{condition("Planned", no, "Planning", "")}, State{"Planning", "", Busy}},
		"the plan failed":                 {[]metav1.Condition{condition("Planned", no, "PlanFailed", "boom")}, State{"PlanFailed", "boom", Bad}},
		"it waits":                        {[]metav1.Condition{planned, condition("Approved", no, "WaitingForApproval", "wait")}, State{Waiting, "wait", Busy}},
		"replaced before anybody decided": {[]metav1.Condition{planned, condition("Approved", no, "Replaced", "by 3")}, State{"Replaced", "by 3", Quiet}},
		"replaced though approved":        {[]metav1.Condition{planned, approved, condition("Active", no, "Replaced", "by 3")}, State{"Replaced", "by 3", Quiet}},
		"approved, nothing done":          {[]metav1.Condition{planned, approved}, State{"Approved", "by ann", Busy}},
		"being activated":                 {[]metav1.Condition{planned, approved, condition("Active", no, "Activating", "2 of 3")}, State{"Activating", "2 of 3", Busy}},
		"blocked":                         {[]metav1.Condition{planned, approved, condition("Active", no, "Collision", "taken")}, State{"Collision", "taken", Bad}},
		"active and healthy":              {[]metav1.Condition{planned, approved, active, condition("Healthy", yes, "Healthy", "")}, State{"Active", "", Good}},
		"active, not judged":              {[]metav1.Condition{planned, approved, active}, State{"Active", "3 objects", Good}},
		"active, on its way":              {[]metav1.Condition{active, condition("Healthy", no, "InProgress", "1 of 3")}, State{"ActiveInProgress", "1 of 3", Busy}},
		"active and unhealthy":            {[]metav1.Condition{active, condition("Healthy", no, "Unhealthy", "web: crash")}, State{"ActiveUnhealthy", "web: crash", Bad}},
		"denied beats all":                {[]metav1.Condition{planned, active, condition("Denied", yes, "Denied", "by bob")}, State{Denied, "by bob", Bad}},
		"superseded":                      {[]metav1.Condition{active, condition("Superseded", yes, "Superseded", "by 2")}, State{"Superseded", "by 2", Quiet}},
		"failed though approved":          {[]metav1.Condition{approved, condition("Failed", yes, "DeadlineExceeded", "10m")}, State{Failed, "10m", Bad}},
		"not denied is not denied":        {[]metav1.Condition{planned, condition("Denied", no, "X", "")}, State{Waiting, "", Busy}},
		"not failed is not failed":        {[]metav1.Condition{approved, condition("Failed", no, "X", "")}, State{"Approved", "by ann", Busy}},
		"waiting for other objects":       {[]metav1.Condition{approved, condition("Active", no, "WaitingForObjects", "crd")}, State{"WaitingForObjects", "crd", Busy}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			revision := &v1alpha1.InstanceRevision{}
			revision.Status.Conditions = test.conditions
			if diff := cmp.Diff(test.want, OfRevision(revision)); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInstanceSaysFirstWhatPeopleMustDo(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	pending := &v1alpha1.RevisionReference{Name: "web-2", Number: 2}
	notActive := condition("Ready", no, "RevisionNotActive", "revision 2")
	now := metav1.Now()
	tests := map[string]struct {
		change func(*v1alpha1.BundleInstance)
		want   State
	}{
		"nobody looked at it": {func(*v1alpha1.BundleInstance) {}, unseen()},
		"ready": {func(i *v1alpha1.BundleInstance) {
			i.Status.Conditions = []metav1.Condition{condition("Ready", yes, "ActiveAndHealthy", "all well")}
		}, State{Ready, "all well", Good}},
		"a revision waits": {func(i *v1alpha1.BundleInstance) {
			i.Status.Pending = pending
			i.Status.Conditions = []metav1.Condition{notActive, condition("Approved", no, Waiting, "somebody must")}
		}, State{Waiting, "somebody must", Busy}},
		"a revision was denied": {func(i *v1alpha1.BundleInstance) {
			i.Status.Pending = pending
			i.Status.Conditions = []metav1.Condition{notActive, condition("Approved", no, Denied, "by bob")}
		}, State{Denied, "by bob", Bad}},
		"approved, not active yet": {func(i *v1alpha1.BundleInstance) {
			i.Status.Pending = pending
			i.Status.Conditions = []metav1.Condition{notActive, condition("Approved", yes, "Approved", "")}
		}, State{"RevisionNotActive", "revision 2", Busy}},
		"suspended": {func(i *v1alpha1.BundleInstance) {
			i.Spec.Suspend = true
			i.Status.Conditions = []metav1.Condition{condition("Ready", yes, "ActiveAndHealthy", "")}
		}, State{"Suspended", "spec.suspend is true", Quiet}},
		"being deleted": {func(i *v1alpha1.BundleInstance) {
			i.DeletionTimestamp = &now
			i.Spec.Suspend = true
			i.Status.Conditions = []metav1.Condition{condition("Ready", no, "Deleting", "2 objects left")}
		}, State{Deleting, "2 objects left", Busy}},
		"being deleted, not looked at since": {func(i *v1alpha1.BundleInstance) {
			i.DeletionTimestamp = &now
			i.Status.Conditions = []metav1.Condition{condition("Ready", yes, "ActiveAndHealthy", "all well")}
		}, State{Deleting, "", Busy}},
		"its removal is blocked": {func(i *v1alpha1.BundleInstance) {
			i.DeletionTimestamp = &now
			i.Status.Conditions = []metav1.Condition{condition("Ready", no, "TeardownBlocked", "may not delete")}
		}, State{"TeardownBlocked", "may not delete", Bad}},
		"a bundle that is not there": {func(i *v1alpha1.BundleInstance) {
			i.Status.Conditions = []metav1.Condition{condition("Ready", no, "BundleNotFound", "b")}
		}, State{"BundleNotFound", "b", Bad}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			instance := &v1alpha1.BundleInstance{}
			test.change(instance)
			if diff := cmp.Diff(test.want, OfInstance(instance)); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApprovalCountsOrSaysWhyNot(t *testing.T) {
	approval := &v1alpha1.Approval{}
	if got := OfApproval(approval); got.Word != Unseen {
		t.Errorf("without a condition: %v", got)
	}
	approval.Status.Conditions = []metav1.Condition{condition("Counted", metav1.ConditionFalse, "DigestMismatch", "other bytes")}
	if diff := cmp.Diff(State{"DigestMismatch", "other bytes", Bad}, OfApproval(approval)); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}
