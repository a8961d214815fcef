// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/cli/state"
	"rukpak.io/rukpak/internal/cli/table"
	"rukpak.io/rukpak/internal/spelling"
)

// sheet is the text of describe: facts, then sections. It does no I/O before write.
type sheet struct {
	paint paint.Painter
	now   time.Time
	out   bytes.Buffer
}

func (s *session) sheet() *sheet { return &sheet{paint: s.painter(), now: s.now()} }

func (d *sheet) write(w io.Writer) error {
	_, err := w.Write(d.out.Bytes())
	return err
}

// facts writes lines "Title: value"; those without a value are left out.
func (d *sheet) facts(pairs ...string) {
	shown := table.Table{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			shown.Add(d.paint.Bold(pairs[i]+":"), pairs[i+1])
		}
	}
	_ = shown.Write(&d.out)
}

// section writes a title and a table, indented; nothing if there are no rows.
func (d *sheet) section(title string, shown table.Table) {
	if len(shown.Rows) == 0 {
		return
	}
	var text bytes.Buffer
	_ = shown.Write(&text)
	d.text(title, text.String())
}

func (d *sheet) text(title, text string) {
	fmt.Fprintf(&d.out, "\n%s\n", d.paint.Bold(title+":"))
	for line := range strings.Lines(text) {
		if line != "\n" {
			line = "  " + line
		}
		d.out.WriteString(line)
	}
}

func (d *sheet) state(found state.State) string {
	text := colourState(d.paint, found.Mood, found.Word)
	if found.Message != "" {
		text += ": " + found.Message
	}
	return text
}

func (d *sheet) age(since metav1.Time) string {
	if since.IsZero() {
		return ""
	}
	return duration.HumanDuration(d.now.Sub(since.Time))
}

func (d *sheet) conditions(conditions []metav1.Condition) {
	shown := table.Table{Titles: []string{"TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"}}
	for _, condition := range slices.SortedFunc(slices.Values(conditions), func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) }) {
		shown.Add(condition.Type, string(condition.Status), condition.Reason, d.age(condition.LastTransitionTime), paint.Clean(condition.Message))
	}
	d.section("Conditions", shown)
}

func (d *sheet) decisions(revision *v1alpha1.InstanceRevision) {
	if revision.Spec.Installer != nil {
		d.text("Accounts of "+revision.Name, actorText(revision)+"\n")
	}
	shown := table.Table{Titles: []string{"DECISION", "BY", "AGE", "APPROVAL", "MESSAGE"}}
	for _, decision := range revision.Status.Decisions {
		what := string(decision.Decision)
		if decision.Prune != "" {
			what += " of removals"
		}
		shown.Add(what, spelling.Name(decision.Approver), d.age(decision.Time), decision.Approval, paint.Clean(decision.Message))
	}
	d.section("Decisions about "+revision.Name, shown)
	d.removals(revision)
}

// leftovers says of older revisions why what they had is not all deleted yet.
func (d *sheet) leftovers(revisions []v1alpha1.InstanceRevision) {
	shown := table.Table{Titles: []string{"REVISION", "REASON", "SINCE", "MESSAGE"}}
	for i := range revisions {
		found := meta.FindStatusCondition(revisions[i].Status.Conditions, v1alpha1.ConditionSuperseded)
		if found != nil && found.Status == metav1.ConditionFalse {
			shown.Add(revisions[i].Name, found.Reason, d.age(found.LastTransitionTime), paint.Clean(found.Message))
		}
	}
	d.section("Not deleted yet", shown)
}

func (d *sheet) plan(revision *v1alpha1.InstanceRevision) {
	if revision.Status.Plan == nil {
		return
	}
	d.text("Plan", summaryText(revision, d.paint))
}

// events writes them, or why they could not be read.
func (d *sheet) events(events []corev1.Event, err error) {
	if err != nil {
		d.text("Events", "cannot be read: "+err.Error()+"\n")
		return
	}
	shown := table.Table{Titles: []string{"AGE", "TYPE", "REASON", "ABOUT", "MESSAGE"}}
	for i := range events {
		event := &events[i]
		age := d.age(metav1.Time{Time: lastSeen(event)})
		if times := timesSeen(event); times > 1 {
			age += fmt.Sprintf(" (%d times)", times)
		}
		shown.Add(age, event.Type, event.Reason, event.InvolvedObject.Name, paint.Clean(strings.TrimSpace(event.Message)))
	}
	d.section("Events", shown)
}

// lastSeen is when an event happened last: events of the two APIs keep it in different fields.
func lastSeen(event *corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	}
	return event.CreationTimestamp.Time
}

func timesSeen(event *corev1.Event) int32 {
	if event.Series != nil {
		return event.Series.Count
	}
	return event.Count
}
