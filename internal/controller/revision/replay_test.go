// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

// An instance that is deleted and made again counts its revisions from one, so they have the names of before.
func TestApprovalOfADeletedInstanceDoesNotCountForAnotherOfItsName(t *testing.T) {
	s := newStage(t)
	class := &v1alpha1.ProvisionerClass{}
	s.must(s.client.Get(t.Context(), client.ObjectKey{Name: s.namespace}, class))
	class.Spec.Approval.Mode = v1alpha1.ApprovalManual
	s.must(s.client.Update(t.Context(), class))

	first := s.instance("app")
	one := s.revise(first, 1, configMap("a"))
	approve := func(name string) *v1alpha1.Approval {
		made := &v1alpha1.Approval{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
			Spec: v1alpha1.ApprovalSpec{
				Revision: one.Name, ManifestDigest: one.Spec.ManifestDigest, ProvisionerClassName: s.namespace,
				Decision: v1alpha1.DecisionApprove, Approver: "alice",
			},
		}
		s.create(made)
		return made
	}
	old := approve("old")
	s.until(first, "active", s.is(one, v1alpha1.ConditionActive, ""))
	s.must(s.client.Delete(t.Context(), one))
	s.must(s.client.Delete(t.Context(), first))
	s.until(first, "the first instance is gone", func() bool {
		return s.client.Get(t.Context(), client.ObjectKeyFromObject(first), &v1alpha1.BundleInstance{}) != nil
	})
	time.Sleep(time.Until(old.CreationTimestamp.Add(1100 * time.Millisecond))) // times of the API server have seconds

	second := s.instance("app")
	two := s.revise(second, 1, configMap("a"))
	if two.Spec.ManifestDigest != one.Spec.ManifestDigest || two.Name != one.Name {
		t.Fatal("the two revisions differ, so this test says nothing")
	}
	s.must(s.reconcile(second))
	if s.is(two, v1alpha1.ConditionApproved, "")() || s.exists("a") {
		t.Error("the approval of the deleted instance's revision counted")
	}
	s.must(s.client.Get(t.Context(), client.ObjectKeyFromObject(old), old))
	if got := meta.FindStatusCondition(old.Status.Conditions, v1alpha1.ConditionCounted); got == nil || got.Reason != v1alpha1.ReasonRevisionMissing {
		t.Errorf("Counted of the old approval is %+v", got)
	}
	approve("new")
	s.until(second, "active", s.is(two, v1alpha1.ConditionActive, ""))
}
