// SPDX-License-Identifier: Apache-2.0

package instance_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/manifest"
)

func TestRevisionIsNotMadeTwiceWhileTheCacheIsBehind(t *testing.T) {
	s := newStage(t)
	s.reconcile()
	if got := s.revisions(); len(got) != 1 {
		t.Fatalf("there are %d revisions, want one", len(got))
	}
	s.lagging.Store(true)
	for range 3 {
		s.reconcile()
	}
	s.lagging.Store(false)
	s.reconcile()
	if got := s.revisions(); len(got) != 1 {
		t.Errorf("there are %d revisions of one state, want one", len(got))
	}
}

func TestRevisionThatSomebodyDeletedIsMadeAnew(t *testing.T) {
	s := newStage(t)
	s.reconcile()
	first := s.revisions()[0]
	s.must(s.client.Delete(t.Context(), &first))
	s.reconcile()
	if got := s.revisions(); len(got) != 1 || got[0].Spec.Number != 2 {
		t.Errorf("the revisions are %+v, want one with the next number", got)
	}
}

func TestLostManifestsAreKeptAgainFromTheSameContent(t *testing.T) {
	s := newStage(t)
	s.reconcile()
	made := s.revisions()[0]
	lost := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: manifest.SecretName(made.Name, manifest.KindManifest, 0)}}
	for _, condition := range []metav1.Condition{
		{Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonManifestCorrupt},
		{Type: v1alpha1.ConditionDrifted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonManifestCorrupt},
	} {
		t.Run(condition.Type, func(t *testing.T) {
			s.must(s.client.Delete(t.Context(), lost.DeepCopy()))
			s.must(s.client.Get(t.Context(), client.ObjectKeyFromObject(&made), &made))
			meta.SetStatusCondition(&made.Status.Conditions, condition)
			s.must(s.client.Status().Update(t.Context(), &made))
			s.reconcile()
			if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(lost), &corev1.Secret{}); err != nil {
				t.Errorf("they are not kept again: %v", err)
			}
			if got := s.revisions(); len(got) != 1 {
				t.Errorf("there are %d revisions, want no other", len(got))
			}
			meta.RemoveStatusCondition(&made.Status.Conditions, condition.Type)
			s.must(s.client.Get(t.Context(), client.ObjectKeyFromObject(&made), &made))
			meta.RemoveStatusCondition(&made.Status.Conditions, condition.Type)
			s.must(s.client.Status().Update(t.Context(), &made))
		})
	}
}
