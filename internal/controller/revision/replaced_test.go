// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestUndecidedRevisionSaysThatANewerOneReplacedIt(t *testing.T) {
	made := func(number int64, conditions ...metav1.Condition) *v1alpha1.InstanceRevision {
		revision := &v1alpha1.InstanceRevision{}
		revision.Spec.Number, revision.Status.Conditions = number, conditions
		return revision
	}
	waiting := metav1.Condition{Type: v1alpha1.ConditionApproved, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaitingForApproval}
	activated := made(1)
	now := metav1.Now()
	activated.Status.ActivatedAt = &now
	for name, test := range map[string]struct {
		revision, newest *v1alpha1.InstanceRevision
		want             string // reason of Active
	}{
		"waits":     {made(1, waiting), made(2), v1alpha1.ReasonReplaced},
		"approved":  {made(1, metav1.Condition{Type: v1alpha1.ConditionApproved, Status: metav1.ConditionTrue}), made(2), v1alpha1.ReasonReplaced},
		"activated": {activated, made(2), ""},
		"denied":    {made(1, metav1.Condition{Type: v1alpha1.ConditionDenied, Status: metav1.ConditionTrue}), made(2), ""},
		"newer":     {made(3, waiting), made(2), ""},
		"alone":     {made(1, waiting), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			approved := is(test.revision, v1alpha1.ConditionApproved)
			replaced(test.revision, test.newest)
			got := ""
			if found := meta.FindStatusCondition(test.revision.Status.Conditions, v1alpha1.ConditionActive); found != nil {
				got = found.Reason
			}
			if got != test.want {
				t.Errorf("Active has the reason %q, want %q", got, test.want)
			}
			found := meta.FindStatusCondition(test.revision.Status.Conditions, v1alpha1.ConditionApproved)
			if test.want != "" && (found.Reason == v1alpha1.ReasonReplaced) == approved {
				t.Errorf("Approved is %+v; what was approved stays so, all else says that it is replaced", found)
			}
		})
	}
}
