// SPDX-License-Identifier: Apache-2.0

package provisioner_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/provisioner"
)

func TestResultsThatBreakTheContractAreFound(t *testing.T) {
	one := func(name string) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{object("v1", "ConfigMap", name)}
	}
	owned, numbered := object("v1", "ConfigMap", "a"), object("v1", "ConfigMap", "a")
	owned.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"uid": "1"}}
	numbered.Object["data"] = []any{map[string]any{"n": 5}}
	for name, test := range map[string]struct {
		result provisioner.Result
		want   string // "" if it keeps the contract
	}{
		"one object":          {provisioner.Result{Phases: []provisioner.Phase{{Name: "a", Objects: one("a")}}}, ""},
		"nothing, on purpose": {provisioner.Result{Nothing: true}, ""},
		"a task in two phases": {provisioner.Result{Phases: []provisioner.Phase{
			{Name: "a", On: []provisioner.Moment{provisioner.OnInstall}, Objects: one("a")}, {Name: "b", On: []provisioner.Moment{provisioner.OnUpgrade}, Objects: one("a")},
		}}, ""},
		"nothing":                {provisioner.Result{}, "there are 0 objects, and Nothing is false"},
		"nothing, but objects":   {provisioner.Result{Nothing: true, Phases: []provisioner.Phase{{Name: "a", Objects: one("a")}}}, "there are 1 objects, and Nothing is true"},
		"no name of a phase":     {provisioner.Result{Phases: []provisioner.Phase{{Objects: one("a")}}}, `phase ""`},
		"a long name of a phase": {provisioner.Result{Phases: []provisioner.Phase{{Name: strings.Repeat("a", 64), Objects: one("a")}}}, "the name has more than 63 bytes"},
		"a phase of two lines":   {provisioner.Result{Phases: []provisioner.Phase{{Name: "a\x1b[2J", Objects: one("a")}}}, "cannot be printed"},
		"an empty phase":         {provisioner.Result{Phases: []provisioner.Phase{{Name: "a", Objects: one("a")}, {Name: "b"}}}, `phase "b"`},
		"a phase twice":          {provisioner.Result{Phases: []provisioner.Phase{{Name: "a", Objects: one("a")}, {Name: "a", Objects: one("b")}}}, "there twice"},
		"no moment":              {provisioner.Result{Phases: []provisioner.Phase{{Name: "a", On: []provisioner.Moment{"Sometimes"}, Objects: one("a")}}}, `"Sometimes" is no moment`},
		"an object twice":        {provisioner.Result{Phases: []provisioner.Phase{{Name: "a", Objects: one("a")}, {Name: "b", Objects: one("a")}}}, "ConfigMap a is there twice"},
		"a task twice in one phase": {provisioner.Result{Phases: []provisioner.Phase{
			{Name: "a", On: []provisioner.Moment{provisioner.OnInstall}, Objects: append(one("a"), one("a")...)},
		}}, "ConfigMap a is there twice"},
		"a nil object":        {provisioner.Result{Phases: []provisioner.Phase{{Name: "a", Objects: []*unstructured.Unstructured{nil}}}}, "is nil"},
		"an owner":            {provisioner.Result{Phases: []provisioner.Phase{{Name: "a", Objects: []*unstructured.Unstructured{owned}}}}, "ownerReferences is not supported"},
		"an int":              {provisioner.Result{Phases: []provisioner.Phase{{Name: "a", Objects: []*unstructured.Unstructured{numbered}}}}, "is a int, which is no value of JSON"},
		"a path for a name":   {provisioner.Result{Phases: []provisioner.Phase{{Name: "a", Objects: one("../b")}}}, `metadata.name "../b"`},
		"unsorted Varies":     {provisioner.Result{Nothing: true, Varies: []string{"b", "a"}}, "Varies is not sorted"},
		"a schema of no JSON": {provisioner.Result{Nothing: true, ConfigSchema: []byte("{")}, "ConfigSchema is no JSON"},
	} {
		err := test.result.Check()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
	many := provisioner.Result{Nothing: true}
	for range 100 {
		many.Phases = append(many.Phases, provisioner.Phase{})
	}
	if lines := strings.Split(many.Check().Error(), "\n"); len(lines) != 21 || lines[20] != "and more" {
		t.Errorf("got %d lines, the last %q; want 20 and that there are more", len(lines), lines[len(lines)-1])
	}
}
