// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"rukpak.io/rukpak/internal/plan"
)

func TestSummaryOfAHugePlanFitsIntoAStatus(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	huge := &plan.Plan{}
	for i := range 1000 {
		problem := &plan.Problem{Reason: "Rejected", Message: fmt.Sprintf("%d %s", i, long)}
		change := plan.Change{Action: plan.Alter, Kind: "Thing", Namespace: "n", Name: fmt.Sprint(i), Problem: problem}
		for j := range 20 {
			change.Fields = append(change.Fields, plan.Field{Path: fmt.Sprintf("spec.%d%s", j, long)})
		}
		huge.Changes = append(huge.Changes, change)
		huge.Missing = append(huge.Missing, fmt.Sprintf("get %d %s", i, long))
		huge.Images = append(huge.Images, fmt.Sprintf("image%d/%s", i, long))
	}
	got := summary(huge)
	encoded, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(encoded) > 56<<10 {
		t.Errorf("it takes %d bytes of a status that is to stay below 64 KiB", len(encoded))
	}
	if !got.Truncated || len(got.Problems) == 0 {
		t.Errorf("truncated %v, %d problems; want it to say that it is cut, and what would fail", got.Truncated, len(got.Problems))
	}
}

func TestSummaryOfAnOrdinaryPlanIsWhole(t *testing.T) {
	small := &plan.Plan{Missing: []string{"get secrets"}, Images: []string{"a/b:c"}}
	for i := range 100 {
		change := plan.Change{Action: plan.Alter, Group: "apps", Kind: "Deployment", Namespace: "production", Name: fmt.Sprintf("service-%d", i)}
		for j := range 5 {
			change.Fields = append(change.Fields, plan.Field{Path: fmt.Sprintf("spec.template.spec.containers[name=main].env[name=A%d]", j)})
		}
		small.Changes = append(small.Changes, change)
	}
	if got := summary(small); got.Truncated || len(got.Changes) != 100 || len(got.Changes[99].Fields) != 5 || len(got.Images) != 1 || len(got.MissingPermissions) != 1 {
		t.Errorf("truncated %v, %d changes, %v, %v", got.Truncated, len(got.Changes), got.Images, got.MissingPermissions)
	}
}

func TestSummarySaysHowManyFieldsItLeavesOut(t *testing.T) {
	change := plan.Change{Action: plan.Alter, Kind: "ConfigMap", Namespace: "n", Name: "c", Unchecked: true, MoreFields: 2}
	for i := range 14 {
		change.Fields = append(change.Fields, plan.Field{Path: fmt.Sprintf("data.%02d", i)})
	}
	of := &plan.Plan{Changes: []plan.Change{change}, Counts: plan.Counts{Change: 1, Keep: 2, Conflict: 3, Problems: 4}}
	got := summary(of)
	if !got.Truncated || len(got.Changes[0].Fields) != 10 || got.Changes[0].MoreFields != 6 || !got.Changes[0].Unchecked {
		t.Errorf("truncated %v, %+v; want 10 fields and 6 more", got.Truncated, got.Changes)
	}
	if got.Kept != 2 || got.Conflicts != 3 || got.Failing != 4 {
		t.Errorf("%+v; want what the plan counts", got)
	}
}

func TestSummaryOfANameThatIsTooLongFitsItsSchema(t *testing.T) {
	// The schema takes 1024 characters; a status that it refuses would be tried for ever, and the plan never seen.
	got := summary(&plan.Plan{Changes: []plan.Change{{Action: plan.Add, Kind: "ConfigMap", Name: strings.Repeat("x", 100<<10)}}})
	if len(got.Changes) != 1 || len(got.Changes[0].Object) > 1024 || !strings.HasPrefix(got.Changes[0].Object, "ConfigMap xxx") {
		t.Errorf("got %d changes, the first of %d bytes", len(got.Changes), len(got.Changes[0].Object))
	}
}
