// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval"
	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/cli/state"
	"rukpak.io/rukpak/internal/cli/table"
	"rukpak.io/rukpak/internal/spelling"
)

type historyVerb struct {
	*session
	output output
}

func (s *session) historyCommand() *cobra.Command {
	v := &historyVerb{session: s}
	cmd := &cobra.Command{
		Use:   "history INSTANCE",
		Short: "List the revisions of an instance: what each was, who decided, when and why",
		Long: `Lists the revisions of an instance that are kept, oldest first.

CONTENT and MANIFESTS are the beginnings of digests: two revisions with the same MANIFESTS make exactly the
same objects. DECIDED BY is the user whose approval or denial counted, or "class" where the class approves by itself.`,
		Example:           `  rukpak history web`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames("instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			return v.run(cmd.Context(), args[0])
		},
	}
	v.output.addTo(cmd, formatWide)
	return cmd
}

func (v *historyVerb) run(ctx context.Context, name string) error {
	instance, err := v.instanceNamed(ctx, name)
	if err != nil {
		return err
	}
	revisions, err := v.revisionsOf(ctx, instance)
	if err != nil {
		return err
	}
	if !v.output.forPeople() {
		return v.value(historyValues(revisions), v.output.format)
	}
	if len(revisions) == 0 {
		v.say("%s has no revision yet: %s", instance.Name, sentence(state.OfInstance(instance)))
		return nil
	}
	return historyTable(revisions, v.painter(), v.now(), v.output.format == formatWide).Write(v.Out)
}

// historyEntry is one line of `history -o json`.
type historyEntry struct {
	Number         int64               `json:"number"`
	Name           string              `json:"name"`
	State          string              `json:"state"`
	Message        string              `json:"message,omitempty"`
	RollbackOf     *int64              `json:"rollbackOf,omitempty"`
	Bundle         string              `json:"bundle"`
	ContentDigest  v1alpha1.Digest     `json:"contentDigest"`
	ManifestDigest v1alpha1.Digest     `json:"manifestDigest"`
	Created        metav1.Time         `json:"created"`
	Activated      *metav1.Time        `json:"activated,omitempty"`
	Decisions      []v1alpha1.Decision `json:"decisions,omitempty"`
}

func historyValues(revisions []v1alpha1.InstanceRevision) []historyEntry {
	entries := make([]historyEntry, 0, len(revisions))
	for i := range revisions {
		revision := &revisions[i]
		found := state.OfRevision(revision)
		entries = append(entries, historyEntry{
			Number: revision.Spec.Number, Name: revision.Name, State: found.Word, Message: found.Message,
			RollbackOf: revision.Spec.RollbackOf, Bundle: revision.Spec.BundleName,
			ContentDigest: revision.Spec.ContentDigest, ManifestDigest: revision.Spec.ManifestDigest,
			Created: revision.CreationTimestamp, Activated: revision.Status.ActivatedAt, Decisions: revision.Status.Decisions,
		})
	}
	return entries
}

func historyTable(revisions []v1alpha1.InstanceRevision, painter paint.Painter, now time.Time, wide bool) table.Table {
	shown := table.Table{Titles: []string{"NUMBER", "REVISION", "STATE", "CONTENT", "MANIFESTS", "DECIDED BY", "WHEN", "MESSAGE"}}
	for i := range revisions {
		revision := &revisions[i]
		found := state.OfRevision(revision)
		name := revision.Name
		if of := revision.Spec.RollbackOf; of != nil {
			name += " (back to " + number(*of) + ")"
		}
		who, when := lastDecision(approval.Activating(revision.Status.Decisions), now)
		why := reasons(revision.Status.Decisions)
		content, manifests := short(revision.Spec.ContentDigest), short(revision.Spec.ManifestDigest)
		if wide {
			content, manifests = string(revision.Spec.ContentDigest), string(revision.Spec.ManifestDigest)
		}
		shown.Add(number(revision.Spec.Number), name, colourState(painter, found.Mood, found.Word), content, manifests, who, when, why)
	}
	return shown
}

// lastDecision is the one that settled it, by whom it and those before it were made.
func lastDecision(decisions []v1alpha1.Decision, now time.Time) (who, when string) {
	if len(decisions) == 0 {
		return "", ""
	}
	last := decisions[len(decisions)-1]
	for _, decision := range decisions {
		if decision.Decision == v1alpha1.DecisionDeny {
			last = decision
		}
	}
	who = spelling.Name(last.Approver)
	if last.Approval == "class" {
		who = "class " + strings.TrimPrefix(last.Approver, "class/")
	}
	if names := approval.Names(decisions); last.Decision == v1alpha1.DecisionApprove && len(names) > 1 { // all of them may have been needed
		others := slices.DeleteFunc(names, func(name string) bool { return name == last.Approver })
		who = spelling.Names(others) + ", " + who
	}
	if !last.Time.IsZero() {
		when = duration.HumanDuration(now.Sub(last.Time.Time)) + " ago"
	}
	return who, when
}

// reasons are the messages of all decisions, with who gave them where there are several, and what was decided about removals.
func reasons(decisions []v1alpha1.Decision) string {
	var all []string
	for _, one := range decisions {
		text := one.Message
		switch {
		case one.Prune != "":
			verb := map[v1alpha1.ApprovalDecision]string{v1alpha1.DecisionApprove: "approved", v1alpha1.DecisionDeny: "denied"}[one.Decision]
			text = strings.TrimSuffix("removals "+verb+" by "+spelling.Name(one.Approver)+": "+text, ": ")
		case text != "" && len(decisions) > 1:
			text = spelling.Name(one.Approver) + ": " + text
		}
		if text != "" {
			all = append(all, paint.Clean(text))
		}
	}
	return strings.Join(all, "; ")
}

// short is the beginning of a digest, enough to compare by eye.
func short(digest v1alpha1.Digest) string {
	hex := strings.TrimPrefix(string(digest), "sha256:")
	return hex[:min(12, len(hex))]
}

func conditionTrue(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(conditions, kind)
}
