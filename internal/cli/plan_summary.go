// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/paint"
)

// summaryText is the plan in a revision's status for people: one line a changed
// object, what would fail, what is missing, images, counts. It is what can be
// read without any right on Secrets.
func summaryText(revision *v1alpha1.InstanceRevision, painter paint.Painter) string {
	var out strings.Builder
	plan := revision.Status.Plan
	fmt.Fprintln(&out, planTitle(revision, painter))
	for _, change := range plan.Changes {
		fmt.Fprintln(&out, changeLine(change, painter))
	}
	if len(plan.Changes) > 0 {
		fmt.Fprintln(&out)
	}
	writeList(&out, painter.Bad("Would fail as things stand:"), plan.Problems)
	writeList(&out, painter.Bad("The service account lacks:"), plan.MissingPermissions)
	writeList(&out, "Images:", plan.Images)
	if plan.Truncated {
		fmt.Fprintln(&out, painter.Faint("This is not all: the lists are cut."))
	}
	fmt.Fprintln(&out, painter.Bold(fmt.Sprintf("Plan: %d to add, %d to change, %d to remove, %d unchanged",
		plan.Added, plan.Changed, plan.Removed, plan.Unchanged)))
	return out.String()
}

// planTitle is the first line: what would be done, as whom, and to what.
func planTitle(revision *v1alpha1.InstanceRevision, painter paint.Painter) string {
	against := "nothing is active yet"
	if number := revision.Status.Plan.Against; number > 0 {
		against = fmt.Sprintf("revision %d is active", number)
	}
	what := ""
	if of := revision.Spec.RollbackOf; of != nil {
		what = fmt.Sprintf(", back to revision %d", *of)
	}
	return fmt.Sprintf("%s%s, as service account %s (%s):", painter.Bold(revision.Name), what, revision.Spec.ServiceAccountName, against)
}

// changeLine is one object: a mark, its name and the fields that change.
func changeLine(change v1alpha1.PlannedChange, painter paint.Painter) string {
	line := changeMark(change.Action) + " " + paint.Clean(change.Object)
	switch change.Action {
	case "Add":
		line = painter.Good(line)
	case "Change":
		line = painter.Busy(line)
	case "Remove", "Conflict":
		line = painter.Bad(line)
	}
	switch {
	case change.Action == "Keep":
		line += " (no longer part of it, but stays)"
	case change.Action == "Conflict":
		line += " (is somebody else's)"
	case len(change.Fields) > 0:
		line += ": " + painter.Faint(paint.Clean(strings.Join(change.Fields, ", ")))
	}
	return line
}

func changeMark(action string) string {
	switch action {
	case "Add":
		return "+"
	case "Change":
		return "~"
	case "Remove":
		return "-"
	case "Conflict":
		return "!"
	}
	return "="
}

func writeList(out *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(out, title)
	for _, line := range lines {
		fmt.Fprintln(out, "  "+paint.Clean(line))
	}
	fmt.Fprintln(out)
}

// changes says whether activation would change anything.
func changes(plan *v1alpha1.PlanSummary) bool { return plan.Added+plan.Changed+plan.Removed > 0 }
