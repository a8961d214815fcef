// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestHealthChecksCountInPlaceOfWhatIsKnownOfAKind(t *testing.T) {
	s := newStage(t)
	instance := s.instance("app")
	check := func(current, failed string) {
		s.Helper()
		s.must(s.client.Get(t.Context(), client.ObjectKeyFromObject(instance), instance))
		instance.Spec.HealthChecks = []v1alpha1.HealthCheck{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", Current: current, Failed: failed}}
		s.must(s.client.Update(t.Context(), instance))
	}
	set := func(key, value string) {
		s.Helper()
		live := &corev1.ConfigMap{}
		s.must(s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "a"}, live))
		live.Data[key] = value
		s.must(s.client.Update(t.Context(), live, client.FieldOwner("somebody")))
	}
	healthy := func(status metav1.ConditionStatus, reason, says string) func() bool {
		return func() bool {
			got := s.condition(s.fresh(&v1alpha1.InstanceRevision{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "app-1"}}), v1alpha1.ConditionHealthy)
			return got.Status == status && got.Reason == reason && strings.Contains(got.Message, says)
		}
	}
	check("self.data.?phase.orValue('') == 'up'", "self.data.?phase.orValue('') == 'down'")
	one := s.revise(instance, 1, configMap("a"), configMap("b"))
	s.until(instance, "it is in progress", healthy(metav1.ConditionFalse, v1alpha1.ReasonInProgress, "ConfigMap "+s.namespace+"/a: spec.healthChecks[0].current is not true"))
	if s.is(one, v1alpha1.ConditionActive, v1alpha1.ReasonCompleted)() {
		t.Error("it counts as completed")
	}
	set("phase", "down")
	s.until(instance, "it failed", healthy(metav1.ConditionFalse, v1alpha1.ReasonUnhealthy, "spec.healthChecks[0].failed is true"))
	set("phase", "up")
	s.until(instance, "it is healthy", healthy(metav1.ConditionTrue, v1alpha1.ReasonHealthy, ""))
	s.until(instance, "it is completed", s.is(one, v1alpha1.ConditionActive, v1alpha1.ReasonCompleted))

	// Another check counts for what is active, and needs no other revision; one that cannot be used is told.
	check("self.data.absent == 'x'", "")
	s.until(instance, "a field is missing", healthy(metav1.ConditionFalse, v1alpha1.ReasonInProgress, "spec.healthChecks[0].current: absent: no such key: absent"))
	check("this is wrong", "")
	s.until(instance, "the check is wrong", healthy(metav1.ConditionFalse, v1alpha1.ReasonUnhealthy, "spec.healthChecks[0].current: is no expression of CEL: line 1, column"))
	s.must(s.reconcile(instance))
	rest := s.fresh(one).ResourceVersion
	for range 3 {
		s.must(s.reconcile(instance))
	}
	if got := s.fresh(one).ResourceVersion; got != rest {
		t.Error("at rest the status was written")
	}
	s.must(s.client.Get(t.Context(), client.ObjectKeyFromObject(instance), instance))
	instance.Spec.HealthChecks = nil
	s.must(s.client.Update(t.Context(), instance))
	s.until(instance, "it is healthy by what is known of its kind", healthy(metav1.ConditionTrue, v1alpha1.ReasonHealthy, ""))
}
