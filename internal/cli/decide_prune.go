// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval"
	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/cli/state"
	"rukpak.io/rukpak/internal/cli/table"
	"rukpak.io/rukpak/internal/plural"
	"rukpak.io/rukpak/internal/spelling"
)

// runPrune decides about the deletion of what older revisions left.
func (v *decideVerb) runPrune(ctx context.Context, word string) error {
	revision, err := v.pruning(ctx, word)
	if err != nil {
		return err
	}
	waits := removalsOf(revision)
	if waits == nil {
		why := "no removals wait for it"
		if found := state.OfPrune(revision); found.Message != "" {
			why += ": " + found.Message
		}
		return failf(ExitError, "there is nothing to decide about %s: %s", revision.Name, why).
			hintf("%s lists what waits", v.command("approvals --all"))
	}
	if v.digest != "" && v.digest != string(waits.Digest) {
		return failf(ExitError, "the removals of %s are not what you mean: they have the digest %s, not %s", revision.Name, waits.Digest, v.digest).
			hintf("look at them with %s and decide about what they are now", v.command("describe %s", revision.Name))
	}
	if done, err := v.ownVote(ctx, revision, waits); done || err != nil {
		return err
	}
	if err := v.askPrune(ctx, revision, waits); err != nil {
		return err
	}
	return v.decideOn(ctx, revision, waits)
}

// pruning finds the revision of which removals may wait: of an instance the active one.
func (v *decideVerb) pruning(ctx context.Context, word string) (*v1alpha1.InstanceRevision, error) {
	found, err := v.target(ctx, word)
	if err != nil {
		return nil, err
	}
	if found.byInstance && found.instance.Status.Active != nil {
		return v.revisionNamed(ctx, found.instance.Status.Active.Name)
	}
	if found.revision == nil {
		return nil, failf(ExitError, "%s has no revision", word)
	}
	return found.revision, nil
}

// removalsOf gives what waits for an approval of its own; nil if nothing does, or it was decided.
func removalsOf(revision *v1alpha1.InstanceRevision) *v1alpha1.HeldRemovals {
	if state.OfPrune(revision).Word != state.Waiting {
		return nil
	}
	return revision.Status.Removals
}

func (v *decideVerb) askPrune(ctx context.Context, revision *v1alpha1.InstanceRevision, waits *v1alpha1.HeldRemovals) error {
	if !v.yes || isTerminal(v.ErrOut) {
		v.say("%s", removalsText(revision, paint.New(v.colour, isTerminal(v.ErrOut), v.env)))
		v.say("%s", v.whoAsks(ctx, revision, state.OfPrune(revision)))
	}
	if v.yes {
		return nil
	}
	verb := strings.ToLower(string(v.decision))
	if !v.canAsk() {
		return failf(ExitUsage, "nobody can be asked: this is no terminal").
			hintf("%s decides about exactly these", v.command("%s %s --prune --digest %s -y", verb, revision.Name, waits.Digest))
	}
	yes, err := v.confirm(ctx, fmt.Sprintf("%s the deletion of %s, with all that is in them?", v.decision, plural.Of(int(waits.Count), "object")))
	if err != nil {
		return err
	}
	if !yes {
		return failf(ExitWaiting, "nothing was decided: the removals of %s still wait", revision.Name)
	}
	return nil
}

// removalsText lists what stays until somebody decides about it.
func removalsText(revision *v1alpha1.InstanceRevision, painter paint.Painter) string {
	waits := revision.Status.Removals
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", painter.Bold(fmt.Sprintf("Removals of %s, left by older revisions, with all that is in them:", revision.Name)))
	for _, object := range waits.Objects {
		fmt.Fprintf(&out, "  %s %s\n", painter.Bad("-"), spelledObject(object))
	}
	if more := waits.Count - int64(len(waits.Objects)); more > 0 {
		fmt.Fprintf(&out, "  and %d more\n", more)
	}
	fmt.Fprintf(&out, "Digest: %s", waits.Digest)
	return out.String()
}

func spelledObject(object string) string {
	words := strings.Fields(object)
	for i, word := range words {
		words[i] = spelling.Name(word)
	}
	return strings.Join(words, " ")
}

// removals says in a sheet what stays, or what was decided about it.
func (d *sheet) removals(revision *v1alpha1.InstanceRevision) {
	if revision.Status.Removals == nil {
		return
	}
	shown := table.Table{}
	for _, object := range revision.Status.Removals.Objects {
		shown.Add(spelledObject(object))
	}
	if more := revision.Status.Removals.Count - int64(len(revision.Status.Removals.Objects)); more > 0 {
		shown.Add(fmt.Sprintf("and %d more", more))
	}
	d.section("Removals, digest "+string(revision.Status.Removals.Digest), shown)
}

// removalsNote says that removals wait besides what was asked for, "" if none do.
func (s *session) removalsNote(revision *v1alpha1.InstanceRevision) string {
	waits := removalsOf(revision)
	if waits == nil {
		return ""
	}
	return fmt.Sprintf("%s of older revisions wait for an approval of their own: %s", plural.Of(int(waits.Count), "object"), s.command("approve %s --prune", revision.Name))
}

// voters are those who approved the revision, or the removals that wait.
func voters(revision *v1alpha1.InstanceRevision, waits *v1alpha1.HeldRemovals) []string {
	if waits == nil {
		return approval.Names(revision.Status.Decisions)
	}
	return approval.PruneNames(revision.Status.Decisions, waits.Digest)
}
