// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/health"
)

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return object
}

const thing = "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, namespace: ns, labels: {app: x}, generation: 2}, "

func TestObjectsAreJudgedByExpressions(t *testing.T) {
	spec := v1alpha1.HealthCheck{
		APIVersion: "example.com/v1beta1", Kind: "Thing",
		Current:    "self.status.phase == 'Up' && self.status.size >= self.spec.size",
		InProgress: "has(self.status) && self.status.phase == 'Coming'",
		Failed:     "has(self.status) && self.status.conditions.exists(c, c.type == 'Broken' && c.status == 'True')",
	}
	tests := map[string]struct {
		object string
		change func(*v1alpha1.HealthCheck)
		want   health.Status
		says   string
	}{
		"current":     {object: thing + "spec: {size: 2}, status: {phase: Up, size: 2, conditions: []}}", want: health.Current},
		"in progress": {object: thing + "status: {phase: Coming}}", want: health.InProgress, says: "spec.healthChecks[0].inProgress is true"},
		"failed": {
			object: thing + "status: {phase: Up, conditions: [{type: Broken, status: 'True'}]}}", want: health.Failed, says: "spec.healthChecks[0].failed is true",
		},
		"none is true": {
			object: thing + "spec: {size: 2}, status: {phase: Up, size: 1, conditions: []}}", want: health.InProgress, says: "spec.healthChecks[0].current is not true",
		},
		"a field that is not there yet": {
			object: thing + "spec: {size: 2}}", want: health.InProgress, says: "spec.healthChecks[0].current: absent: no such key: status",
		},
		"a field of another type": {
			object: thing + "spec: {size: much}, status: {phase: Up, size: 1, conditions: []}}", want: health.Unknown, says: "spec.healthChecks[0].current: no such overload",
		},
		"an item that is not there": {
			object: thing + "status: {}}", change: func(c *v1alpha1.HealthCheck) {
				*c = v1alpha1.HealthCheck{APIVersion: c.APIVersion, Kind: c.Kind, Current: "[1][3] == 1"}
			},
			want: health.InProgress, says: "index out of bounds",
		},
		"an older generation": {
			object: thing + "status: {observedGeneration: 1, phase: Up, size: 2, conditions: []}, spec: {size: 2}}", want: health.InProgress, says: "generation 2 is not observed yet",
		},
		"being deleted": {
			object: strings.Replace(thing, "generation", "deletionTimestamp: '2026-01-01T00:00:00Z', generation", 1) + "}", want: health.Terminating, says: "is being deleted",
		},
		"too much to compute": {
			object: thing + "spec: {}}", change: func(c *v1alpha1.HealthCheck) {
				list := "[" + strings.Repeat("1,", 400) + "1]"
				*c = v1alpha1.HealthCheck{APIVersion: c.APIVersion, Kind: c.Kind, Current: list + ".all(a, " + list + ".all(b, " + list + ".all(c, a + b + c > 0)))"}
			},
			want: health.Unknown, says: "operation cancelled: actual cost limit exceeded",
		},
		"no truth": {
			object: thing + "spec: {word: hello}}", change: func(c *v1alpha1.HealthCheck) {
				*c = v1alpha1.HealthCheck{APIVersion: c.APIVersion, Kind: c.Kind, Current: "self.spec.word"}
			},
			want: health.Unknown, says: "gives a string, not true or false",
		},
		"functions of Kubernetes": {
			object: thing + "spec: {cpu: 1500m}}", change: func(c *v1alpha1.HealthCheck) {
				*c = v1alpha1.HealthCheck{APIVersion: c.APIVersion, Kind: c.Kind, Current: "quantity(self.spec.cpu).isGreaterThan(quantity('1')) && self.?status.?phase.orValue('') == ''"}
			},
			want: health.Current,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			one := spec
			if tc.change != nil {
				tc.change(&one)
			}
			checks, err := Compile([]v1alpha1.HealthCheck{one})
			if err != nil {
				t.Fatal(err)
			}
			object := read(t, tc.object)
			got := checks.For(object).Judge(context.Background(), object)
			if got.Status != tc.want || !strings.Contains(got.Message, tc.says) || tc.says == "" && got.Message != "" {
				t.Errorf("got %+v, want %s: %s", got, tc.want, tc.says)
			}
		})
	}
	checks, err := Compile([]v1alpha1.HealthCheck{spec})
	if err != nil {
		t.Fatal(err)
	}
	if got := checks.For(read(t, thing+"}")).Judge(t.Context(), nil); got.Status != health.NotFound {
		t.Errorf("of an object that does not exist: %+v", got)
	}
}

func TestTheFirstCheckThatFitsCounts(t *testing.T) {
	check := func(change func(*v1alpha1.HealthCheck)) v1alpha1.HealthCheck {
		one := v1alpha1.HealthCheck{APIVersion: "example.com/v1", Kind: "Thing", Current: "true"}
		change(&one)
		return one
	}
	checks, err := Compile([]v1alpha1.HealthCheck{
		check(func(c *v1alpha1.HealthCheck) { c.APIVersion = "other.com/v1" }),
		check(func(c *v1alpha1.HealthCheck) { c.Kind = "Other" }),
		check(func(c *v1alpha1.HealthCheck) { c.Name = "b" }),
		check(func(c *v1alpha1.HealthCheck) { c.Name, c.Namespace = "a", "m" }),
		check(func(c *v1alpha1.HealthCheck) {
			c.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "y"}}
		}),
		check(func(c *v1alpha1.HealthCheck) { c.Name, c.Namespace = "a", "ns" }),
		check(func(*v1alpha1.HealthCheck) {}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := checks.For(read(t, thing+"}")); got == nil || got.path != "spec.healthChecks[5]" {
		t.Errorf("got %+v", got)
	}
	if got := checks.For(read(t, strings.Replace(thing, "name: a", "name: c", 1)+"}")); got == nil || got.path != "spec.healthChecks[6]" {
		t.Errorf("got %+v", got)
	}
	if got := (*Checks)(nil).For(read(t, thing+"}")); got != nil || got.Key() != "" {
		t.Errorf("no checks: got %+v", got)
	}
}

func TestWhatIsWrongIsToldWithItsField(t *testing.T) {
	tests := map[string]struct {
		check v1alpha1.HealthCheck
		want  string
	}{
		"syntax":          {v1alpha1.HealthCheck{APIVersion: "v1", Kind: "Pod", Current: "self.status ="}, "spec.healthChecks[0].current: is no expression of CEL: line 1, column 13: Syntax error: token recognition error at: '='"},
		"unknown name":    {v1alpha1.HealthCheck{APIVersion: "v1", Kind: "Pod", Current: "object.status == 1"}, "spec.healthChecks[0].current: is no expression of CEL: line 1, column 1: undeclared reference to 'object'"},
		"another type":    {v1alpha1.HealthCheck{APIVersion: "v1", Kind: "Pod", Current: "true", Failed: "1 + 1"}, "spec.healthChecks[0].failed: gives int, not true or false"},
		"apiVersion":      {v1alpha1.HealthCheck{APIVersion: "a/b/c", Kind: "Pod", Current: "true"}, "spec.healthChecks[0].apiVersion: unexpected GroupVersion string: a/b/c"},
		"selector":        {v1alpha1.HealthCheck{APIVersion: "v1", Kind: "Pod", Current: "true", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}}}, "spec.healthChecks[0].selector: "},
		"two of a kind":   {v1alpha1.HealthCheck{APIVersion: "v1", Kind: "Pod", Current: "x", InProgress: "y"}, "spec.healthChecks[0].inProgress: is no expression of CEL: line 1, column 1: undeclared reference to 'y'"},
		"types that miss": {v1alpha1.HealthCheck{APIVersion: "v1", Kind: "Pod", Current: "self.metadata.name == 'a' && size(1) > 0"}, "found no matching overload for 'size'"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			checks, err := Compile([]v1alpha1.HealthCheck{tc.check})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %s", err, tc.want)
			}
			pod := read(t, "{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running}}")
			if one := checks.For(pod); one != nil {
				if got := one.Judge(t.Context(), pod); got.Status != health.Unknown || !strings.Contains(got.Message, "spec.healthChecks[0].") {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
}

func TestChecksAreCompiledAnewWhenTheInstanceChanges(t *testing.T) {
	var book Book
	instance := &v1alpha1.BundleInstance{ObjectMeta: metav1.ObjectMeta{UID: types.UID("a"), Generation: 1}}
	instance.Spec.HealthChecks = []v1alpha1.HealthCheck{{APIVersion: "v1", Kind: "Pod", Current: "true"}}
	first, err := book.Of(instance)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := book.Of(instance); again != first {
		t.Error("they were compiled again")
	}
	instance.Generation = 2
	instance.Spec.HealthChecks[0].Current = "x"
	if _, err := book.Of(instance); err == nil {
		t.Error("the change was not seen")
	}
	instance.Generation, instance.Spec.HealthChecks = 3, nil
	if none, err := book.Of(instance); none != nil || err != nil || book.Len() != 0 {
		t.Errorf("got %v, %v", none, err)
	}
	if diff := cmp.Diff(health.Of(nil), (*Check)(nil).Judge(t.Context(), nil)); diff != "" {
		t.Error(diff)
	}
}
