// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestAnApprovedRevisionWaitsForTheInstancesThatItDependsOn(t *testing.T) {
	s := newStage(t)
	app := s.dependent("app", "database", "network")
	one := s.revise(app, 1, configMap("a"))
	s.until(app, "it waits for both", s.waitsFor(one, v1alpha1.ReasonDependencyNotReady,
		`BundleInstance "database" does not exist; BundleInstance "network" does not exist`))

	database, network := s.instance("database"), s.instance("network")
	s.until(app, "they are there and nothing is known of them", s.waitsFor(one, v1alpha1.ReasonDependencyNotReady, `"network" is being looked at`))
	s.say(network, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	s.say(database, metav1.ConditionTrue, v1alpha1.ReasonActiveHealthy)
	s.until(app, "it waits for one", s.waitsFor(one, v1alpha1.ReasonDependencyNotReady, `it depends on others: BundleInstance "network" is not ready: WaitingForApproval`))
	if s.exists("a") || !s.is(one, v1alpha1.ConditionApproved, "")() {
		t.Error("want it approved, and nothing of it applied")
	}
	s.say(network, metav1.ConditionTrue, v1alpha1.ReasonActiveHealthy)
	s.until(app, "it is active", s.is(one, v1alpha1.ConditionActive, ""))

	s.say(network, metav1.ConditionFalse, v1alpha1.ReasonUnhealthy)
	s.must(s.client.Delete(t.Context(), s.parse(configMap("a"))))
	s.until(app, "it is healed whatever becomes of the others", func() bool { return s.exists("a") })
	two := s.revise(app, 2, configMap("b"))
	s.until(app, "the next revision waits", s.waitsFor(two, v1alpha1.ReasonDependencyNotReady, `"network" is not ready: Unhealthy`))
	if !s.is(one, v1alpha1.ConditionActive, "")() {
		t.Error("the first is no longer active")
	}
}

func TestInstancesThatDependOnOneAnotherSaySo(t *testing.T) {
	s := newStage(t)
	a := s.dependent("a", "b")
	s.dependent("b", "c")
	s.dependent("c", "c-other", "a")
	one := s.revise(a, 1, configMap("a"))
	s.until(a, "the way is shown", s.waitsFor(one, v1alpha1.ReasonDependencyCycle, "goes in a circle: a, b, c, a; remove one of its steps"))
	outside := s.dependent("outside", "a")
	two := s.revise(outside, 1, configMap("x"))
	s.until(outside, "who only leads into a circle waits for what is in it", s.waitsFor(two, v1alpha1.ReasonDependencyNotReady, `BundleInstance "a" is being looked at`))
}

// The controller acts by itself here: a reconcile has to follow from the news of another instance.
func TestWhoDependsOnAnInstanceHearsOfIt(t *testing.T) {
	s := newStage(t)
	s.run()
	app := s.dependent("app", "database")
	one := s.revise(app, 1, configMap("a"))
	eventually(t, "it waits", s.waitsFor(one, v1alpha1.ReasonDependencyNotReady, "does not exist"))
	database := s.instance("database")
	s.say(database, metav1.ConditionTrue, v1alpha1.ReasonActiveHealthy)
	eventually(t, "it is active", s.is(one, v1alpha1.ConditionActive, ""))
}

func (s *stage) dependent(name string, on ...string) *v1alpha1.BundleInstance {
	s.Helper()
	instance := s.instance(name)
	for _, other := range on {
		instance.Spec.DependsOn = append(instance.Spec.DependsOn, v1alpha1.LocalReference{Name: other})
	}
	s.must(s.client.Update(s.Context(), instance))
	return instance
}

// say sets Ready, as the instance controller does.
func (s *stage) say(of *v1alpha1.BundleInstance, status metav1.ConditionStatus, reason string) {
	s.Helper()
	fresh := &v1alpha1.BundleInstance{}
	s.must(s.client.Get(s.Context(), client.ObjectKeyFromObject(of), fresh))
	meta.SetStatusCondition(&fresh.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: reason, ObservedGeneration: fresh.Generation,
	})
	s.must(s.client.Status().Update(s.Context(), fresh))
}

func (s *stage) waitsFor(revision *v1alpha1.InstanceRevision, reason, message string) func() bool {
	return func() bool {
		got := s.condition(revision, v1alpha1.ConditionActive)
		return got.Status == metav1.ConditionFalse && got.Reason == reason && strings.Contains(got.Message, message)
	}
}
