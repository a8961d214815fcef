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
