// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/revision"
	"rukpak.io/rukpak/internal/ownership"
)

// late is a watch that has not heard of anything since it was made.
type late struct {
	revision.Watcher
	seen map[ownership.ID]*metav1.PartialObjectMetadata
}

func (l late) Get(id ownership.ID) (*metav1.PartialObjectMetadata, bool) {
	seen, ok := l.seen[id]
	return seen, ok
}

func TestARevisionIsNotHealthyByTheHealthOfTheOneBefore(t *testing.T) {
	s := newStage(t)
	instance := s.instance("app")
	web := func(version, play string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, template: {` +
			`metadata: {labels: {app: web, version: ` + version + `}, annotations: {testenv.rukpak.io/pod: "` + play + `"}},` +
			`spec: {containers: [{name: web, image: "registry.k8s.io/pause:3.10"}]}}}}`
	}
	one := s.revise(instance, 1, web("v1", ""))
	s.until(instance, "revision 1 is healthy", s.is(one, v1alpha1.ConditionActive, v1alpha1.ReasonCompleted))
	id := ownership.IDOf(s.parse(web("v1", "")))
	s.until(instance, "the watch knows the healthy Deployment", func() bool {
		live := &appsv1.Deployment{}
		s.must(s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "web"}, live))
		seen, ok := s.watcher.Get(id)
		return ok && seen.ResourceVersion == live.ResourceVersion && live.Status.ReadyReplicas == 1
	})
	s.must(s.reconcile(instance))

	seen, _ := s.watcher.Get(id)
	s.control.Watcher = late{s.watcher, map[ownership.ID]*metav1.PartialObjectMetadata{id: seen}}
	two := s.revise(instance, 2, web("v2", "not-ready"))
	s.until(instance, "revision 2 is active", s.is(two, v1alpha1.ConditionActive, ""))
	for range 3 {
		s.must(s.reconcile(instance))
	}
	if got := s.condition(two, v1alpha1.ConditionHealthy); got.Status != metav1.ConditionFalse {
		t.Errorf("revision 2 is healthy: %+v", got)
	}
	if s.is(two, v1alpha1.ConditionActive, v1alpha1.ReasonCompleted)() {
		t.Error("revision 2 counts as completed")
	}
}
