// SPDX-License-Identifier: Apache-2.0

package activate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

func TestObjectsOfOthersAreTakenOnlyAsAllowed(t *testing.T) {
	t.Parallel()
	stranger := func(s *stage) { s.stranger(configMap(t, "x", "{a: theirs}")) }
	controlled := func(s *stage) {
		controller := configMap(t, "controller", "{}")
		s.stranger(controller) // has to exist, or what it controls is collected
		yes := true
		object := configMap(t, "x", "{a: theirs}")
		object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "controller", UID: s.live(controller).GetUID(), Controller: &yes}})
		s.stranger(object)
	}
	instance := func(s *stage) {
		other := ownership.Owner{UID: "uid-other", Namespace: s.namespace, Name: "other"}
		s.engine.Apply(t.Context(), s.admin, other, provisioner.ByKind(objects(configMap(t, "x", "{a: theirs}"))), s.options)
	}
	tests := map[string]struct {
		before func(*stage)
		gone   bool
		want   map[ownership.Adoption]activate.Action
	}{
		"Stranger":     {before: stranger, want: map[ownership.Adoption]activate.Action{ownership.AdoptNever: activate.Collision, ownership.AdoptUnowned: activate.Adopted, ownership.AdoptForce: activate.Adopted}},
		"Controlled":   {before: controlled, want: map[ownership.Adoption]activate.Action{ownership.AdoptNever: activate.Collision, ownership.AdoptUnowned: activate.Collision, ownership.AdoptForce: activate.Adopted}},
		"Instance":     {before: instance, want: map[ownership.Adoption]activate.Action{ownership.AdoptNever: activate.Collision, ownership.AdoptUnowned: activate.Collision, ownership.AdoptForce: activate.Adopted}},
		"InstanceGone": {before: instance, gone: true, want: map[ownership.Adoption]activate.Action{ownership.AdoptNever: activate.Collision, ownership.AdoptUnowned: activate.Adopted, ownership.AdoptForce: activate.Adopted}},
	}
	for name, test := range tests {
		for mode, want := range test.want {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				test.before(s)
				s.options.Adoption, s.options.Alive = mode, func(types.UID) bool { return !test.gone }
				later := service(t, "later")
				result := s.apply(configMap(t, "x", "{a: ours}"), later)
				if result.Objects[0].Action != want {
					t.Fatalf("got %s, want %s", result, want)
				}
				data := field(s.live(configMap(t, "x", "")), "data.a")
				if want == activate.Collision {
					if data != "theirs" || result.Complete || result.Skipped != 1 || !s.gone(later) {
						t.Errorf("data %v, %s", data, result)
					}
					if err := result.Err(); !errors.As(err, new(*ownership.CollisionError)) || result.Reason() != activate.CollisionReason {
						t.Errorf("got error %v", err)
					}
					return
				}
				owner, _ := ownership.OwnerOf(s.live(configMap(t, "x", "")))
				if data != "ours" || owner != s.owner || !result.Complete {
					t.Errorf("data %v, owner %v, %s", data, owner, result)
				}
			})
		}
	}
}

func TestFieldsOfFormerClientSideManagersGo(t *testing.T) {
	t.Parallel()
	const theirs = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {old: label}}, data: {a: b, c: d}}"
	tests := map[string]struct {
		adoption ownership.Adoption
		make     func(*stage)
	}{
		"KubectlApply":  {make: func(s *stage) { s.kubectl(theirs, "apply", "-f", "-") }},
		"KubectlCreate": {make: func(s *stage) { s.kubectl(theirs, "create", "-f", "-") }},
		"Helm":          {make: func(s *stage) { s.make(theirs, "helm") }},
		"NeverManaged": {make: func(s *stage) {
			s.make(theirs, "tool")
			s.bare = true
		}},
		"AnyToolByForce": {adoption: ownership.AdoptForce, make: func(s *stage) { s.make(theirs, "my-tool") }},
		"OtherInstance": {adoption: ownership.AdoptForce, make: func(s *stage) {
			other := ownership.Owner{UID: "uid-other", Namespace: s.namespace, Name: "other"}
			result := s.engine.Apply(t.Context(), s.admin, other, provisioner.ByKind(objects(parse(t, theirs))), s.options)
			if !result.Complete {
				t.Fatal(result)
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			test.make(s)
			if s.bare {
				s.edit(configMap(t, "x", ""), `{"metadata":{"managedFields":[{}]}}`)
			} else {
				s.edit(configMap(t, "x", ""), `{"metadata":{"annotations":{"note":"mine"}}}`)
			}
			s.options.Adoption = ownership.AdoptUnowned
			if test.adoption != "" {
				s.options.Adoption = test.adoption
			}
			v1, v2 := configMap(t, "x", "{a: b, c: d}"), configMap(t, "x", "{a: b}")
			if result := only(t, s.mustApply(v1)); result.Action != activate.Adopted {
				t.Errorf("got %s", result)
			}
			s.earlier(v1)
			s.mustApply(v2)
			live := s.live(v2)
			if diff := cmp.Diff(any(map[string]any{"a": "b"}), live.Object["data"]); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"note": "mine"}, live.GetAnnotations()); !s.bare && diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if _, there := live.GetLabels()["old"]; there {
				t.Errorf("labels: %v", live.GetLabels())
			}
		})
	}
}

func TestLiveWorkloadIsAdoptedUnchanged(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.make(string(yamlOf(t, deployment(t, "web"))), "kubectl-create")
	s.options.Adoption = ownership.AdoptUnowned
	if result := only(t, s.mustApply(deployment(t, "web"))); result.Action != activate.Adopted {
		t.Errorf("got %s", result)
	}
	if generation := s.live(deployment(t, "web")).GetGeneration(); generation != 1 {
		t.Errorf("generation %d: it was rolled out anew", generation)
	}
}

func TestFinalizersOfControllersSurviveTakeover(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	claim := parse(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data},
 spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)
	s.make(string(yamlOf(t, claim)), "kubectl-create")
	s.options.Adoption = ownership.AdoptUnowned
	s.mustApply(claim)
	if finalizers := s.live(claim).GetFinalizers(); len(finalizers) != 1 {
		t.Errorf("finalizers: got %v", finalizers)
	}
	own := newStage(t)
	own.mustApply(claim)
	own.mustApply(set(claim, map[string]any{"x": "y"}, "metadata", "labels")) // what it had before is not known
	if finalizers := own.live(claim).GetFinalizers(); len(finalizers) != 1 {
		t.Errorf("finalizers of our own: got %v", finalizers)
	}
}

// make creates an object as a tool with its own manager name.
func (s *stage) make(text, manager string) {
	s.Helper()
	if err := s.admin.Create(s.Context(), s.inNamespace(parse(s, text)), client.FieldOwner(manager)); err != nil {
		s.Fatal(err)
	}
}

func TestStrangerWhoComesBetweenIsNotTaken(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	want := configMap(t, "x", "{a: ours}")
	s.mustApply(configMap(t, "other", "{a: b}")) // the kind was found absent: the next is created without a look
	s.stranger(configMap(t, "x", "{a: theirs}"))
	result := s.apply(configMap(t, "w", "{}"), want)
	if result.Count(activate.Collision) != 1 || !strings.Contains(result.String(), "ConfigMap "+s.namespace+"/x exists") {
		t.Errorf("got %s", result)
	}
}
