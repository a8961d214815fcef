// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestAnApprovedRevisionWhosePlanBlocksItLeavesTheOldOneInPlace(t *testing.T) {
	s := newStage(t)
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"))
	s.until(instance, "the first is active", s.is(one, v1alpha1.ConditionActive, ""))

	two := s.revise(instance, 2, configMap("b"))
	finding := v1alpha1.CRDFinding{Action: v1alpha1.CRDBlock, CRD: "widgets.example.com", Rule: "type", Version: "v1", Path: "spec.a", Message: "type changes"}
	s.find(two, finding)
	s.until(instance, "the second says why it waits", func() bool {
		return s.condition(two, v1alpha1.ConditionActive).Reason == v1alpha1.ReasonUnsafeCRDUpgrade
	})
	if got := s.condition(two, v1alpha1.ConditionActive); got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "widgets.example.com v1 spec.a: type changes") {
		t.Errorf("got %+v", got)
	}
	if !s.is(two, v1alpha1.ConditionApproved, "")() || !s.is(one, v1alpha1.ConditionActive, "")() || s.exists("b") {
		t.Error("want it approved and not activated, and the first active")
	}
	s.must(s.client.Delete(t.Context(), s.parse(configMap("a"))))
	s.until(instance, "the first is healed still", func() bool { return s.exists("a") })

	finding.Action = v1alpha1.CRDWarn
	s.find(two, finding)
	s.until(instance, "the second is active once its plan only warns", s.is(two, v1alpha1.ConditionActive, ""))
	if !s.exists("b") {
		t.Error("its object is not there")
	}
}

// find puts a finding into the plan of a revision, as the instance controller does.
func (s *stage) find(of *v1alpha1.InstanceRevision, finding v1alpha1.CRDFinding) {
	s.Helper()
	fresh := &v1alpha1.InstanceRevision{}
	s.must(s.client.Get(s.Context(), client.ObjectKeyFromObject(of), fresh))
	fresh.Status.Plan = &v1alpha1.PlanSummary{CRDs: []v1alpha1.CRDFinding{finding}}
	s.must(s.client.Status().Update(s.Context(), fresh))
}
