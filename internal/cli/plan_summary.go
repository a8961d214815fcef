// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/plan"
)

// summaryText is the plan in a revision's status for people: what the content
// may do, what the account lacks to install it, one line a changed object, what
// would fail, images, counts. It is what can be read without any right on Secrets.
func summaryText(revision *v1alpha1.InstanceRevision, painter paint.Painter) string {
	var out strings.Builder
	of := revision.Status.Plan
	out.WriteString(planHead(revision, painter))
	writeRuntime(&out, plan.RuntimeLinesIn(of), painter)
	writeList(&out, painter.Bad(plan.LackingTitle(of.Installer)), of.MissingPermissions)
	writeList(&out, painter.Busy(plan.HealingTitle), of.MissingForHealing)
	for _, change := range of.Changes {
		fmt.Fprintln(&out, changeLine(change, painter))
	}
	if len(of.Changes) > 0 {
		fmt.Fprintln(&out)
	}
	writeList(&out, painter.Bad("Would fail as things stand:"), of.Problems)
	writeList(&out, painter.Bad("CRD upgrades:"), crdLines(of.CRDs))
	writeList(&out, "Images:", of.Images)
	if of.Truncated {
		fmt.Fprintln(&out, painter.Faint("This is not all: the lists are cut."))
	}
	fmt.Fprintln(&out, painter.Bold("Plan: "+plan.CountsIn(of).String()))
	return out.String()
}

// planHead is what stands above every plan: its title, and who signed what it is made of.
func planHead(revision *v1alpha1.InstanceRevision, painter paint.Painter) string {
	head := planTitle(revision, painter) + "\n"
	if signatures := revision.Status.Plan.Signatures; len(signatures) > 0 {
		head += "Signed: " + verdictText(&v1alpha1.BundleVerification{Verdicts: signatures}) + "\n"
	}
	for _, line := range revision.Status.Varies {
		head += painter.Busy("Comes out differently each time: ") + paint.Clean(line) + "\n"
	}
	if counts := plan.CountsIn(revision.Status.Plan); counts.Add+counts.Change+counts.Unchanged+counts.Conflict+counts.Problems == 0 {
		head += fmt.Sprintf("No objects: what is approved is the content %s, which is there to be read.\n", revision.Spec.ContentDigest)
	}
	return head
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
	if at := revision.Status.ActivatedAt; at != nil {
		return fmt.Sprintf("%s%s %s; this was its plan, %s (%s):", painter.Bold(revision.Name), what,
			sinceText(revision, at.UTC().Format("2006-01-02 15:04:05 UTC")), actorText(revision), strings.NewReplacer(" is active yet", " was active before", " is active", " was active").Replace(against))
	}
	return fmt.Sprintf("%s%s, %s (%s):", painter.Bold(revision.Name), what, actorText(revision), against)
}

// actorText says as whom a revision is activated and healed.
func actorText(revision *v1alpha1.InstanceRevision) string {
	if by := revision.Spec.Installer; by != nil {
		return fmt.Sprintf("activated as %s/%s, healed as %s", by.Namespace, by.Name, revision.Spec.ServiceAccountName)
	}
	return "as service account " + revision.Spec.ServiceAccountName
}

// sinceText says what became of a revision that has been activated.
func sinceText(revision *v1alpha1.InstanceRevision, since string) string {
	conditions := revision.Status.Conditions
	switch {
	case conditionTrue(conditions, v1alpha1.ConditionSuperseded):
		return "was activated at " + since + " and is replaced by now"
	case conditionTrue(conditions, v1alpha1.ConditionActive):
		return "is active since " + since
	}
	return "is being activated since " + since
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
		line += ": " + painter.Faint(paint.Clean(fieldsText(change)))
	}
	if change.Unchecked {
		line += " (not checked by the API server)"
	}
	return line
}

// fieldsText names the fields of the list, and says how many there are beside them.
func fieldsText(change v1alpha1.PlannedChange) string {
	text := strings.Join(change.Fields, ", ")
	if change.MoreFields > 0 {
		text += fmt.Sprintf(" and %d more", change.MoreFields)
	}
	return text
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

// writeRuntime writes what the content may do.
func writeRuntime(out *strings.Builder, lines []plan.Line, painter paint.Painter) {
	for _, line := range lines {
		text := paint.Clean(line.Text)
		switch line.Mood {
		case plan.Alarming:
			text = painter.Bad(text)
		case plan.Relieving:
			text = painter.Good(text)
		case plan.Neutral:
		}
		fmt.Fprintln(out, text)
	}
	if len(lines) > 0 {
		fmt.Fprintln(out)
	}
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
func changes(of *v1alpha1.PlanSummary) bool { return of.Added+of.Changed+of.Removed > 0 }

// crdLines are the findings about CustomResourceDefinitions, in the words of the full plan.
func crdLines(findings []v1alpha1.CRDFinding) []string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, crdsafety.Finding{
			Action: crdsafety.Action(f.Action), CRD: f.CRD, Rule: crdsafety.Rule(f.Rule), Version: f.Version, Path: f.Path, Message: f.Message,
		}.String())
	}
	return lines
}
