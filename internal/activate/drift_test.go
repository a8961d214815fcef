// SPDX-License-Identifier: Apache-2.0

package activate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
)

func TestDriftIsFoundWithoutReadingAllAndUndone(t *testing.T) {
	t.Parallel()
	web := deployment(t, "web")
	tests := map[string]struct {
		reason string
		drift  func(*stage)
		fields []string
		action activate.Action
	}{
		"Edit": {
			drift:  func(s *stage) { s.edit(web, `{"spec":{"template":{"metadata":{"labels":{"x":"y"}}},"replicas":5}}`) },
			fields: []string{"spec.replicas"}, action: activate.Applied,
		},
		"FieldRemoved": {
			drift:  func(s *stage) { s.edit(web, `{"metadata":{"labels":{"app":null}}}`) },
			fields: []string{"metadata.labels.app"}, action: activate.Applied,
		},
		"ItemRemoved": {
			drift: func(s *stage) {
				s.patch(web, types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"A","$patch":"delete"}]}]}}}}`)
			},
			fields: []string{`spec.template.spec.containers[name="main"].env[name="A"]`}, action: activate.Applied,
		},
		"AtomicMapExtended": {
			reason: "a selector with one more label selects nothing",
			drift:  func(s *stage) { s.edit(service(t, "web"), `{"spec":{"selector":{"more":"x"}}}`) },
			fields: []string{"spec.selector"}, action: activate.Applied,
		},
		"MarkRemoved": {
			drift:  func(s *stage) { s.edit(web, `{"metadata":{"labels":{"rukpak.io/instance-name":null}}}`) },
			fields: []string{"metadata.labels.rukpak.io/instance-name"}, action: activate.Applied,
		},
		"ForcedByAnotherApply": {
			drift: func(s *stage) {
				part := s.inNamespace(parse(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 7}}"))
				err := s.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(part), client.FieldOwner("other"), client.ForceOwnership)
				if err != nil {
					t.Fatal(err)
				}
			},
			fields: []string{"spec.replicas"}, action: activate.Applied,
		},
		"Scaled": {
			reason: "the scale subresource is another way to the same field",
			drift:  func(s *stage) { s.scale(web, 9) },
			fields: []string{"spec.replicas"}, action: activate.Applied,
		},
		"Deleted": {
			drift:  func(s *stage) { s.delete(web) },
			action: activate.Created,
		},
		"ReplacedByAnother": {
			reason: "another object has its name, without a mark: that is a collision, not drift",
			drift: func(s *stage) {
				s.delete(web)
				s.stranger(web)
			},
			action: activate.Collision,
		},
	}
	for name, test := range tests {
		for _, history := range []string{"Created", "Applied"} {
			t.Run(name+"/"+history, func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				s.earlier()
				s.mustApply(web, service(t, "web"))
				if history == "Applied" {
					s.edit(web, `{"metadata":{"labels":{"app":"other"}}}`)
					s.scale(web, 1)
					s.mustApply(web, service(t, "web"))
				}
				test.drift(s)
				result := s.apply(web, service(t, "web"))
				if result.Count(activate.Intact) != 1 || result.Count(test.action) != 1 {
					t.Fatalf("%s: got %s", test.reason, result)
				}
				for _, object := range result.Objects {
					if diff := cmp.Diff(test.fields, quiet(object.Fields)); object.Action == activate.Applied && diff != "" {
						t.Errorf("fields (-want +got):\n%s", diff)
					}
				}
				if test.action == activate.Collision {
					return
				}
				if again := s.apply(web, service(t, "web")); again.Reads+again.Writes != 0 {
					t.Errorf("again: %s with %d reads and %d writes", again, again.Reads, again.Writes)
				}
			})
		}
	}
}

// quiet leaves out the field whose value the API server writes another way, which is told as a difference beside a real one.
func quiet(fields []string) []string {
	var out []string
	for _, path := range fields {
		if path != `spec.template.spec.containers[name="main"].resources.requests.cpu` {
			out = append(out, path)
		}
	}
	return out
}

func TestEditThatChangesNothingOfOursCostsNoRequest(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	web := deployment(t, "web")
	s.mustApply(web)
	s.edit(web, `{"metadata":{"annotations":{"by":"hand"}},"spec":{"minReadySeconds":3}}`)
	object := s.inNamespace(web)
	status := []byte(`{"status":{"observedGeneration":1}}`)
	if err := s.admin.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, status)); err != nil {
		t.Fatal(err)
	}
	if result := s.mustApply(web); result.Reads+result.Writes != 0 {
		t.Errorf("got %s with %d reads and %d writes", result, result.Reads, result.Writes)
	}
}

func TestCacheThatLagsBehindOurOwnWriteIsNoDoubt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	old, now := configMap(t, "x", "{a: b}"), configMap(t, "x", "{a: c}")
	lag := &frozen{fresh: fresh{s.admin}}
	s.engine = activate.New(activate.Config{Observed: lag})
	s.mustApply(old)
	lag.freeze(ownership.IDOf(s.inNamespace(old)))
	s.mustApply(now)
	if result := s.mustApply(now); result.Reads+result.Writes != 0 {
		t.Errorf("got %s with %d reads and %d writes", result, result.Reads, result.Writes)
	}
	lag.state = nil
	s.edit(now, `{"data":{"a":"drift"}}`)
	if result := only(t, s.mustApply(now)); result.Action != activate.Applied {
		t.Errorf("drift after that: got %s", result)
	}
}
