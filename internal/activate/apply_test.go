// SPDX-License-Identifier: Apache-2.0

package activate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
)

func TestAbsentObjectIsCreatedWithTheMark(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	want := configMap(t, "settings", "{a: b}")
	if result := only(t, s.mustApply(want)); result.Action != activate.Created {
		t.Errorf("got %s", result)
	}
	live := s.live(want)
	if owner, ok := ownership.OwnerOf(live); !ok || owner != s.owner {
		t.Errorf("owner: got %v, %v", owner, ok)
	}
	if annotations := live.GetAnnotations(); len(annotations) > 0 {
		t.Errorf("annotations: got %v", annotations)
	}
}

func TestObjectAsItShouldBeCostsNoRequest(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	objects := []*unstructured.Unstructured{configMap(t, "settings", "{a: b}"), deployment(t, "web"), service(t, "web")}
	s.mustApply(objects...)
	for _, again := range [][]*unstructured.Unstructured{objects, {objects[0].DeepCopy(), objects[1].DeepCopy(), objects[2].DeepCopy()}} {
		result := s.mustApply(again...)
		if result.Count(activate.Intact) != 3 || result.Reads+result.Writes != 0 {
			t.Errorf("got %s with %d reads and %d writes", result, result.Reads, result.Writes)
		}
	}
}

func TestAfterARestartObjectsAreReadAndNotWritten(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	objects := []*unstructured.Unstructured{
		configMap(t, "settings", "{a: b}"), without(deployment(t, "web"), "spec", "template", "spec", "containers", "resources"),
		service(t, "web"),
		parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: b}}`),
		parse(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: s, annotations: null}}`),
	}
	objects[1] = set(objects[1], []any{map[string]any{
		"name": "main", "image": "example.com/app:1",
		"ports":        []any{map[string]any{"containerPort": int64(80)}, map[string]any{"containerPort": int64(81), "protocol": "UDP"}},
		"env":          []any{map[string]any{"name": "A", "value": "a"}},
		"args":         []any{"x", "y"},
		"volumeMounts": []any{map[string]any{"name": "tmp", "mountPath": "/tmp"}},
	}}, "spec", "template", "spec", "containers")
	objects[1] = set(objects[1], []any{map[string]any{"name": "tmp", "emptyDir": map[string]any{}}}, "spec", "template", "spec", "volumes")
	s.mustApply(objects...)
	s.earlier()
	s.engine = activate.New(activate.Config{Observed: fresh{s.admin}})
	result := s.mustApply(objects...)
	if result.Count(activate.Intact) != len(objects) || result.Writes != 0 || result.Reads != len(objects) {
		t.Errorf("got %s with %d reads and %d writes", result, result.Reads, result.Writes)
	}
	if again := s.mustApply(objects...); again.Reads+again.Writes != 0 {
		t.Errorf("second time: %d reads and %d writes", again.Reads, again.Writes)
	}
}

func TestQuantityWrittenAnotherWayIsNoDifference(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	want := deployment(t, "web") // says 1000m, which becomes 1
	s.mustApply(want)
	s.earlier()
	s.engine = activate.New(activate.Config{Observed: fresh{s.admin}})
	s.mustApply(want) // the API server decides, and its answer is remembered
	generation := s.live(want).GetGeneration()
	result := s.mustApply(want)
	if result.Reads+result.Writes != 0 || only(t, result).Action != activate.Intact {
		t.Errorf("got %s with %d reads and %d writes", result, result.Reads, result.Writes)
	}
	if generation != 1 {
		t.Errorf("generation %d: something was changed", generation)
	}
}

func TestChangeCostsOneWrite(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		old, now *unstructured.Unstructured
		fields   []string
		writes   int
	}{
		"ConfigMapValue": {
			old: configMap(t, "x", "{a: b}"), now: configMap(t, "x", "{a: c}"),
			fields: []string{"data.a"}, writes: 1,
		},
		"DeploymentImage": {
			old: deployment(t, "x"), now: set(deployment(t, "x"), int64(3), "spec", "replicas"),
			fields: []string{"spec.replicas", `spec.template.spec.containers[name="main"].resources.requests.cpu`}, writes: 1,
		},
		"ServicePort": {
			old: service(t, "x"), now: set(service(t, "x"), []any{map[string]any{"port": int64(80), "name": "web"}}, "spec", "ports"),
			fields: []string{`spec.ports[port=80,protocol="TCP"].name`}, writes: 1,
		},
		"DroppedValue": {
			old: configMap(t, "x", "{a: b, c: d}"), now: configMap(t, "x", "{a: b}"),
			fields: []string{"data.c"}, writes: 2, // who manages it is put right first
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.mustApply(test.old)
			s.earlier(test.old)
			result := s.mustApply(test.now)
			if result.Writes != test.writes || only(t, result).Action != activate.Applied {
				t.Errorf("got %s with %d writes, want %d", result, result.Writes, test.writes)
			}
			if diff := cmp.Diff(test.fields, only(t, result).Fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if again := s.mustApply(test.now); again.Reads+again.Writes != 0 {
				t.Errorf("again: %s", again)
			}
		})
	}
}

func TestFieldThatTheContentDroppedIsGone(t *testing.T) {
	t.Parallel()
	env := []any{map[string]any{"name": "A", "value": "a"}}
	containers := func(d *unstructured.Unstructured, field string, value any) *unstructured.Unstructured {
		all, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
		all[0].(map[string]any)[field] = value
		return set(d, all, "spec", "template", "spec", "containers")
	}
	tests := map[string]struct {
		versions []*unstructured.Unstructured
		path     string
		want     any
	}{
		"AfterCreate": {
			versions: []*unstructured.Unstructured{configMap(t, "x", "{a: b, c: d}"), configMap(t, "x", "{a: b}")},
			path:     "data", want: map[string]any{"a": "b"},
		},
		"AfterCreateAndApply": {
			versions: []*unstructured.Unstructured{configMap(t, "x", "{a: b, c: d}"), configMap(t, "x", "{a: z, c: d}"), configMap(t, "x", "{a: z}")},
			path:     "data", want: map[string]any{"a": "z"},
		},
		"AfterApply": {
			versions: []*unstructured.Unstructured{configMap(t, "x", "{a: b}"), configMap(t, "x", "{a: b, c: d}"), configMap(t, "x", "{a: b}")},
			path:     "data", want: map[string]any{"a": "b"},
		},
		"SecretStringData": {
			versions: []*unstructured.Unstructured{
				parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: x}, stringData: {a: b, c: d}}`),
				parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: x}, stringData: {a: b}}`),
			},
			path: "data", want: map[string]any{"a": "Yg=="},
		},
		"Label": {
			versions: []*unstructured.Unstructured{deployment(t, "x"), without(deployment(t, "x"), "metadata", "labels")},
			path:     "metadata.labels.app", want: nil,
		},
	}
	for name, test := range tests {
		for _, known := range []bool{true, false} {
			t.Run(name+map[bool]string{true: "/EarlierKnown", false: "/EarlierUnknown"}[known], func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				for i, version := range test.versions {
					if known {
						s.earlier(test.versions[:i]...)
					}
					s.mustApply(version)
				}
				if diff := cmp.Diff(test.want, field(s.live(test.versions[0]), test.path)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", test.path, diff)
				}
			})
		}
	}
	t.Run("ItemOfAList", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		s.mustApply(deployment(t, "x"))
		s.earlier(deployment(t, "x"))
		s.mustApply(containers(deployment(t, "x"), "env", env))
		all, _, _ := unstructured.NestedSlice(s.live(deployment(t, "x")).Object, "spec", "template", "spec", "containers")
		if diff := cmp.Diff(any(env), all[0].(map[string]any)["env"]); diff != "" {
			t.Errorf("env (-want +got):\n%s", diff)
		}
	})
}

func TestWhatTheAPIServerFilledInStays(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.mustApply(service(t, "x"))
	before := field(s.live(service(t, "x")), "spec.clusterIP")
	s.earlier(service(t, "x"))
	s.mustApply(set(service(t, "x"), map[string]any{"app": "y"}, "spec", "selector"))
	if after := field(s.live(service(t, "x")), "spec.clusterIP"); before == nil || after != before {
		t.Errorf("clusterIP was %v and is %v", before, after)
	}
}

func TestWhatOthersAddStays(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.mustApply(configMap(t, "x", "{a: b}"))
	s.edit(configMap(t, "x", ""), `{"metadata":{"labels":{"team":"blue"},"annotations":{"note":"x"},"finalizers":["example.com/hold"]},"data":{"z":"z"}}`)
	s.earlier(configMap(t, "x", "{a: b}"))
	if result := s.mustApply(configMap(t, "x", "{a: b}")); result.Writes != 0 {
		t.Errorf("additions of others: %s", result)
	}
	s.mustApply(configMap(t, "x", "{a: c}"))
	live := s.live(configMap(t, "x", ""))
	if live.GetLabels()["team"] != "blue" || live.GetAnnotations()["note"] != "x" || len(live.GetFinalizers()) != 1 {
		t.Errorf("metadata: got %v, %v, %v", live.GetLabels(), live.GetAnnotations(), live.GetFinalizers())
	}
	if diff := cmp.Diff(any(map[string]any{"a": "c", "z": "z"}), live.Object["data"]); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	s.edit(configMap(t, "x", ""), `{"metadata":{"finalizers":null}}`)
}

func TestOtherVersionIsTheSameObject(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	scaler := func(version string) *unstructured.Unstructured {
		return parse(t, `{apiVersion: autoscaling/`+version+`, kind: HorizontalPodAutoscaler, metadata: {name: x},
 spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}}}`)
	}
	s.mustApply(scaler("v1"))
	uid := s.live(scaler("v1")).GetUID()
	s.earlier(scaler("v1"))
	s.mustApply(set(scaler("v2"), int64(5), "spec", "maxReplicas"))
	live := s.live(scaler("v2"))
	if live.GetUID() != uid || field(live, "spec.maxReplicas") != int64(5) {
		t.Errorf("got UID %s instead of %s, %v", live.GetUID(), uid, live.Object["spec"])
	}
	s.options.Keep = func(id ownership.ID) bool { return id == ownership.IDOf(s.inNamespace(scaler("v2"))) }
	if result := s.teardown(s.inNamespace(scaler("v1"))); len(result.Objects) != 0 || s.gone(scaler("v2")) {
		t.Errorf("pruned by its old version: %s", result)
	}
}

func TestBigCRDIsChangedLikeAnyOther(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	crd := widgets(t, s.namespace)
	long := make([]byte, 300_000)
	for i := range long {
		long[i] = 'x'
	}
	big := set(crd, string(long), "metadata", "annotations", "example.com/size")
	big = without(big, "metadata", "annotations")
	versions, _, _ := unstructured.NestedSlice(big.Object, "spec", "versions")
	versions[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["description"] = string(long)
	big = set(big, versions, "spec", "versions")
	t.Cleanup(func() { s.deleteCRD(crd) })
	s.mustApply(crd)
	s.earlier(crd)
	if result := only(t, s.mustApply(big)); result.Action != activate.Applied {
		t.Errorf("got %s", result)
	}
}
