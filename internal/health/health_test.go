// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

// read makes an object from YAML: group/version Kind in the first line, then the rest of it. Every object has
// generation 2, unless it says otherwise.
func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	head, body, _ := strings.Cut(strings.TrimSpace(text), "\n")
	apiVersion, kind, ok := strings.Cut(head, " ")
	if !ok {
		t.Fatalf("no kind in %q", head)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	data, err := yaml.YAMLToJSON([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != "null" {
		object := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,%s`, apiVersion, kind, strings.TrimPrefix(string(data), "{"))
		if err := obj.UnmarshalJSON([]byte(object)); err != nil {
			t.Fatal(err)
		}
	}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetName("x")
	if _, found := obj.Object["metadata"].(map[string]any)["generation"]; !found {
		obj.SetGeneration(2)
	}
	return obj
}

type test struct {
	object string
	want   Status
	says   string
	// kstatus is what kstatus says, where that is something else, and why tells why we do not follow.
	kstatus status.Status
	why     string
}

func TestOf(t *testing.T) {
	for name, tests := range map[string]map[string]test{
		"any": anyTests, "deployment": deploymentTests, "stateful set": statefulSetTests, "daemon set": daemonSetTests,
		"replica set": replicaSetTests, "job": jobTests, "pod": podTests, "storage": storageTests, "API": apiTests,
		"network": networkTests, "scaling": scalingTests, "custom": customTests,
	} {
		for behaviour, tc := range tests {
			t.Run(name+"/"+behaviour, func(t *testing.T) { check(t, tc) })
		}
	}
}

func check(t *testing.T, tc test) {
	t.Helper()
	obj := read(t, tc.object)
	before := obj.DeepCopy()
	got := Of(obj)
	if got.Status != tc.want || got.Message != tc.says {
		t.Errorf("got %s %q, want %s %q", got.Status, got.Message, tc.want, tc.says)
	}
	if fmt.Sprint(before) != fmt.Sprint(obj) {
		t.Error("the object was changed")
	}
	theirs := status.UnknownStatus
	if result, err := status.Compute(obj); err == nil {
		theirs = result.Status
	}
	expected := tc.kstatus
	if expected == "" {
		expected = status.Status(tc.want)
	}
	if theirs != expected {
		t.Errorf("kstatus says %s, not %s", theirs, expected)
	}
	if (tc.kstatus != "") != (tc.why != "") || string(tc.kstatus) == string(tc.want) {
		t.Error("a difference from kstatus needs a reason, and a reason a difference")
	}
}

func TestAnObjectThatIsNotThere(t *testing.T) {
	if got := Of(nil); got.Status != NotFound {
		t.Errorf("got %+v", got)
	}
}

// TestExistenceIsHealth also holds that a kind is in one table only.
func TestExistenceIsHealth(t *testing.T) {
	for gk := range existence {
		if _, both := rules[gk]; both {
			t.Errorf("%s is in both tables", gk)
		}
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(gk.WithVersion("v1"))
		if got := Of(obj); got.Status != Current || NeedsStatus(gk) {
			t.Errorf("%s: %+v, needs status: %v", gk, got, NeedsStatus(gk))
		}
	}
	for gk := range rules {
		if !NeedsStatus(gk) {
			t.Errorf("%s does not need its status", gk)
		}
	}
	if !NeedsStatus(schema.GroupKind{Group: "example.com", Kind: "ConfigMap"}) {
		t.Error("a custom resource of a built-in kind's name does not need its status")
	}
}

// TestNothingPanics gives every rule values of the wrong type in every field that it may read.
func TestNothingPanics(t *testing.T) {
	all := []schema.GroupKind{{Group: "example.com", Kind: "Thing"}}
	for gk := range rules {
		all = append(all, gk)
	}
	for _, gk := range all {
		for _, wrong := range []any{nil, "x", int64(1), 1.5, true, []any{}, []any{nil, "x", []any{}}, map[string]any{}} {
			for _, path := range [][]string{
				{"metadata", "annotations"}, {"metadata", "finalizers"}, {"metadata", "generation"}, {"metadata", "deletionTimestamp"},
				{"spec"}, {"spec", "replicas"}, {"spec", "type"}, {"spec", "paused"}, {"spec", "updateStrategy"},
				{"status"}, {"status", "conditions"}, {"status", "observedGeneration"}, {"status", "replicas"}, {"status", "phase"},
				{"status", "containerStatuses"}, {"status", "loadBalancer"}, {"status", "loadBalancer", "ingress"},
			} {
				obj := &unstructured.Unstructured{Object: map[string]any{}}
				obj.SetGroupVersionKind(gk.WithVersion("v1"))
				obj.SetName("x")
				if err := unstructured.SetNestedField(obj.Object, wrong, path...); err != nil {
					t.Fatal(err)
				}
				if got := Of(obj); got.Status == "" {
					t.Errorf("%s with %v = %v: no status", gk, path, wrong)
				}
			}
		}
	}
}

func TestAMessageOfOthersIsOneShortLine(t *testing.T) {
	obj := read(t, "example.com/v1 Thing\nstatus: {conditions: [{type: Stalled, status: 'True', reason: Broken}]}")
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	conditions[0].(map[string]any)["message"] = strings.Repeat("ä\n", 300)
	if err := unstructured.SetNestedSlice(obj.Object, conditions, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	got := Of(obj)
	if len(got.Message) > 250 || strings.Contains(got.Message, "\n") || !strings.HasPrefix(got.Message, "Stalled (Broken): ä ä") {
		t.Errorf("got %q", got.Message)
	}
}
