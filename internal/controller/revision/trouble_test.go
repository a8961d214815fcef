// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/provisioner"
)

func TestActiveStaysActiveWhenItsManifestsCannotBeReadForAMoment(t *testing.T) {
	s := newStage(t)
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"))
	s.until(instance, "active and healthy", s.is(one, v1alpha1.ConditionActive, v1alpha1.ReasonCompleted))
	before := s.condition(one, v1alpha1.ConditionActive)

	s.restart()
	s.deaf.Store(true)
	if err := s.reconcile(instance); err == nil || !strings.Contains(err.Error(), "etcd has no leader") {
		t.Errorf("the controller says %v, want what the API server said, so that it tries again", err)
	}
	if diff := cmp.Diff(before, s.condition(one, v1alpha1.ConditionActive)); diff != "" {
		t.Errorf("Active (-before +after):\n%s", diff)
	}
	s.deaf.Store(false)
	s.must(s.reconcile(instance))
	if diff := cmp.Diff(before, s.condition(one, v1alpha1.ConditionActive)); diff != "" {
		t.Errorf("Active (-before +after):\n%s", diff)
	}
}

func TestActiveStaysActiveAndSaysSoWhenItsManifestsAreLost(t *testing.T) {
	s := newStage(t)
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"))
	s.until(instance, "active and healthy", s.is(one, v1alpha1.ConditionActive, v1alpha1.ReasonCompleted))
	s.lose(one)
	s.restart()
	if err := s.reconcile(instance); err == nil {
		t.Error("no error: it is not tried again")
	}
	if got := s.condition(one, v1alpha1.ConditionActive); got.Status != metav1.ConditionTrue || got.Reason != v1alpha1.ReasonCompleted {
		t.Errorf("Active is %s, %s: its objects stand", got.Status, got.Reason)
	}
	if got := s.condition(one, v1alpha1.ConditionDrifted); got.Status != metav1.ConditionTrue || got.Reason != v1alpha1.ReasonManifestCorrupt ||
		!strings.Contains(got.Message, "app-1-manifest-0") {
		t.Errorf("Drifted is %+v, want it to say what is lost", got)
	}
}

func TestLostManifestsOfAnOldRevisionDoNotHoldUpTheNext(t *testing.T) {
	s := newStage(t)
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"), configMap("b"))
	s.until(instance, "active", s.is(one, v1alpha1.ConditionActive, ""))
	s.lose(one)
	s.restart()
	two := s.revise(instance, 2, configMap("b"), configMap("c"))
	s.until(instance, "the first is superseded", s.is(one, v1alpha1.ConditionSuperseded, ""))
	if !s.is(two, v1alpha1.ConditionActive, "")() {
		t.Error("the second is not active")
	}
	if s.exists("a") || !s.exists("b") || !s.exists("c") {
		t.Errorf("a %v, b %v, c %v; want what is new to stand and only what is old to be pruned", s.exists("a"), s.exists("b"), s.exists("c"))
	}
}

func TestTeardownWithLostManifestsTakesNothingForGoneWhileAnAPIServiceIsDown(t *testing.T) {
	s := newStage(t)
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"))
	s.until(instance, "active", s.is(one, v1alpha1.ConditionActive, ""))
	s.lose(one)
	s.restart()

	dead := s.apiService()
	eventually(t, "discovery misses a group", func() bool {
		_, err := s.control.Finder.Discovery.ServerPreferredResources()
		return err != nil
	})
	s.must(s.client.Delete(t.Context(), instance))
	for range 3 {
		if err := s.reconcile(instance); err == nil {
			t.Fatal("the teardown went on without the kinds of the API service")
		}
	}
	fresh := &v1alpha1.BundleInstance{}
	s.must(s.client.Get(t.Context(), client.ObjectKeyFromObject(instance), fresh))
	if got := meta.FindStatusCondition(fresh.Status.Conditions, v1alpha1.ConditionReady); got == nil || !strings.Contains(got.Message, dead.GetName()[3:]) {
		t.Errorf("Ready is %+v, want it to name the group that is down", got)
	}

	s.must(s.client.Delete(t.Context(), dead))
	s.until(instance, "the instance is gone", func() bool {
		return s.client.Get(t.Context(), client.ObjectKeyFromObject(instance), &v1alpha1.BundleInstance{}) != nil
	})
	if s.exists("a") {
		t.Error("an object is left behind")
	}
}

func TestCustomResourcesThatAreFoundByTheirMarkComeAfterWorkloads(t *testing.T) {
	s := newStage(t)
	group := s.namespace + ".example.com"
	crd := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.` + group + `}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
	instance := s.instance("app")
	one := s.revise(instance, 1, crd, "{apiVersion: "+group+"/v1, kind: Widget, metadata: {name: w}}",
		"{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}")
	s.until(instance, "active", s.is(one, v1alpha1.ConditionActive, ""))

	found, err := s.control.Finder.Find(t.Context(), instance.UID, nil)
	s.must(err)
	var got []string
	for _, phase := range found.Phases {
		for _, object := range phase.Objects {
			got = append(got, phase.Name+" "+object.GetKind())
		}
	}
	want := []string{
		provisioner.PhaseCRDs + " CustomResourceDefinition", provisioner.PhaseWorkloads + " Pod", provisioner.PhaseCustom + " Widget",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what goes last goes first in a teardown (-want +got):\n%s", diff)
	}
	s.must(s.client.Delete(t.Context(), instance))
	s.until(instance, "the instance is gone", func() bool {
		return s.client.Get(t.Context(), client.ObjectKeyFromObject(instance), &v1alpha1.BundleInstance{}) != nil
	})
}

// apiService makes an API service that nobody serves.
func (s *stage) apiService() *unstructured.Unstructured {
	s.Helper()
	group := s.namespace + ".example.com"
	service := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group, "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10), "insecureSkipTLSVerify": true,
		"service": map[string]any{"namespace": s.namespace, "name": "nobody"},
	}}}
	service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	service.SetName("v1." + group)
	s.create(service)
	s.Cleanup(func() { _ = s.client.Delete(cleanup, service) })
	return service
}
