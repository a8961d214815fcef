// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/ownership"
)

func TestFolderThatIsCalledByAVersionGivesTheNameOfTheOneAboveIt(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"notes/v1", "notes/2.0-rc1", "v2x"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for what, want := range map[string]string{
		filepath.Join(root, "notes", "v1"): "notes", filepath.Join(root, "notes", "2.0-rc1"): "notes",
		filepath.Join(root, "notes"): "notes", filepath.Join(root, "v2x"): "v2x", "example.com/team/app:v1": "app",
	} {
		if got := nameFrom(what); got != want {
			t.Errorf("the name from %s is %q, want %q", what, got, want)
		}
	}
}

func TestTreeTellsWhoseAnObjectIs(t *testing.T) {
	f := &forest{owner: "mine"}
	marked := func(uid, name string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		object.SetLabels(map[string]string{
			ownership.LabelInstanceUID: uid, ownership.LabelInstanceNamespace: "team-a", ownership.LabelInstanceName: name,
		})
		return object
	}
	for want, object := range map[string]*unstructured.Unstructured{
		"": marked("mine", "web"), "team-a/notes": marked("other", "notes"), "nobody that is known": {},
	} {
		if got := f.belongsTo(object); got != want {
			t.Errorf("it belongs to %q, want %q", got, want)
		}
	}
	if got := f.belongsTo(nil); got != "" {
		t.Errorf("what is not there belongs to %q", got)
	}
}

func TestWhatStandsInTheWayIsCounted(t *testing.T) {
	for want, of := range map[string]*v1alpha1.PlanSummary{
		"":                                 {Added: 3},
		"12 conflicts":                     {Conflicts: 12, Problems: []string{"a", "b"}},
		"1 conflict, 1 problem":            {Conflicts: 1, Failing: 1},
		"2 missing permissions":            {MissingPermissions: []string{"a", "b"}},
		"1 problem":                        {Problems: []string{"from an older manager"}},
		"3 problems, 1 missing permission": {Failing: 3, MissingPermissions: []string{"a"}},
	} {
		if got := blockers(of); got != want {
			t.Errorf("%+v: %q, want %q", of, got, want)
		}
	}
}

func TestDecisionOfAClassIsToldAsTheClass(t *testing.T) {
	who, _ := lastDecision([]v1alpha1.Decision{{Approval: "class", Approver: "class/auto", Decision: v1alpha1.DecisionApprove}}, now)
	if who != "class auto" {
		t.Errorf("decided by %q", who)
	}
}

func TestContentOfWhatIsRolledBackIsThatOfTheRevision(t *testing.T) {
	one := int64(1)
	got := instanceContent(instance(func(i *v1alpha1.BundleInstance) { i.Spec.RollbackTo = &one }))
	if want := "that of revision 1; registry.example.com/web:v2 has no effect before the rollback ends"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPlanOfTheActiveRevisionIsHistory(t *testing.T) {
	shown := revision(2, activated(), with(condition("Active", "True", "Activated", "")))
	want := "web-2 is active since " + ago(20*time.Minute).UTC().Format("2006-01-02 15:04:05 UTC") + "; this was its plan, as service account installer (revision 1 was active):"
	if got := planTitle(shown, paint.Painter{}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
