// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/plan"
)

func TestUpgradeOfADefinitionThatBreaksItsUsersIsAProblemUnlessTheClassSaysOtherwise(t *testing.T) {
	s := newStage(t)
	old := widgets(t, s.namespace)
	s.activate(old)
	s.activate(old, set(widget(t, s.namespace, "big"), int64(5), "spec", "size"), set(widget(t, s.namespace, "free"), int64(1), "spec", "size"))
	t.Cleanup(func() { s.deleteAll(objects{old}) })
	next := old.DeepCopy()
	versions := next.Object["spec"].(map[string]any)["versions"].([]any)
	properties := versions[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)
	properties["spec"].(map[string]any)["properties"].(map[string]any)["size"] = map[string]any{"type": "integer", "maximum": int64(3)}

	told := func(p *plan.Plan) string {
		var lines []string
		for _, finding := range p.CRDs {
			lines = append(lines, strings.ReplaceAll(finding.String(), s.namespace, "NS"))
		}
		return strings.Join(lines, "\n")
	}
	p := s.plan(objects{old}, objects{next})
	want := `Block: widgets.NS.example.com v1 spec.size: custom resource NS/big: Invalid value: spec.size in body should be less than or equal to 3 (customResourceInvalid)
Block: widgets.NS.example.com v1 spec.size: maximum 3 is added (maximum)`
	if diff := cmp.Diff(want, told(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	change := s.change(p, "CustomResourceDefinition", old.GetName())
	if change.Action != plan.Alter || change.Problem == nil || change.Problem.Reason != "UnsafeCRDUpgrade" || !strings.Contains(change.Problem.Message, "blocked by 2 findings") {
		t.Errorf("the definition: %+v, problem %+v", change, change.Problem)
	}
	if p.Counts.Problems != 1 || len(p.ProblemLines()) != 1 {
		t.Errorf("%v, %v; want one problem", p.Counts, p.ProblemLines())
	}
	var shown bytes.Buffer
	if err := plan.Render(&shown, p, plan.RenderOptions{Width: 1000}); err != nil || !strings.Contains(shown.String(), "CRD upgrades:\n  Block: ") {
		t.Errorf("%v, shown as\n%s", err, shown.String())
	}

	s.crds = crdsafety.Policy{crdsafety.Maximum: crdsafety.Allow, crdsafety.LiveInvalid: crdsafety.Warn}
	p = s.plan(objects{old}, objects{next})
	if got := told(p); !strings.HasPrefix(got, "Warn: ") || strings.Contains(got, "\n") || p.Counts.Problems != 0 || p.Counts.Change != 1 {
		t.Errorf("with a policy that warns: %v\n%s", p.Counts, got)
	}

	s.crds = nil
	labelled := set(old, map[string]any{"a": "b"}, "metadata", "labels")
	if p = s.plan(objects{old}, objects{labelled}); len(p.CRDs) > 0 || p.Counts.Problems > 0 {
		t.Errorf("only a label changes: %s", told(p))
	}
}
