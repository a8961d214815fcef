// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAnotherOrderOfItemsIsToldBesideOtherDifferences(t *testing.T) {
	state := func(image string, names ...any) *unstructured.Unstructured {
		var items []any
		for _, name := range names {
			items = append(items, map[string]any{"name": name})
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X", "env": items, "a": image}}
	}
	for name, test := range map[string]struct {
		after *unstructured.Unstructured
		want  []string
	}{
		"only the order":     {state("1", "b", "a"), []string{"env"}},
		"the order and more": {state("2", "b", "a"), []string{"a", "env"}},
		"more and not that":  {state("2", "a", "b"), []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			fields, _ := fieldsBetween(state("1", "a", "b"), test.after)
			var got []string
			for _, field := range fields {
				got = append(got, field.Path)
			}
			if len(got) != len(test.want) || got[0] != test.want[0] || got[len(got)-1] != test.want[len(test.want)-1] {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
