// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/state"
	"rukpak.io/rukpak/internal/plural"
	"rukpak.io/rukpak/internal/spelling"
)

// decideOn writes the Approval, of the revision or of removals that wait, and says whether it counts.
func (v *decideVerb) decideOn(ctx context.Context, revision *v1alpha1.InstanceRevision, waits *v1alpha1.HeldRemovals) error {
	approval, err := v.record(ctx, revision, v.decision, v.message, waits)
	if err != nil {
		return err
	}
	if !v.output.forPeople() {
		return v.object(approval, v.output.format, "")
	}
	counted, err := v.awaitCounted(ctx, approval)
	if err != nil {
		return err
	}
	done := map[v1alpha1.ApprovalDecision]string{v1alpha1.DecisionApprove: "approved", v1alpha1.DecisionDeny: "denied"}[v.decision]
	of, stateOf := revision.Name, state.OfRevision
	if waits != nil {
		of, stateOf = "removals of "+revision.Name, state.OfPrune
	}
	v.print("%s %s by %s", of, done, spelling.Name(approval.Spec.Approver))
	if now, err := v.revisionNamed(ctx, revision.Name); err == nil && counted.Word != state.Unseen && stateOf(now).Word == state.Waiting {
		v.say("note: %s", stateOf(now).Message)
	}
	if counted.Word == state.Unseen {
		v.say("note: the decision is written as approval %s, but no manager has counted it yet", approval.Name)
	}
	return nil
}

// record writes an Approval of exactly this revision's manifests, or of exactly these removals, in the user's name.
func (s *session) record(ctx context.Context, revision *v1alpha1.InstanceRevision, decision v1alpha1.ApprovalDecision, message string, waits *v1alpha1.HeldRemovals) (*v1alpha1.Approval, error) {
	cluster, err := s.client()
	if err != nil {
		return nil, err
	}
	me, err := whoAmI(ctx, cluster)
	if err != nil {
		return nil, err
	}
	approval := &v1alpha1.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: revision.Namespace, GenerateName: revision.Name + "-"},
		Spec: v1alpha1.ApprovalSpec{
			Revision: revision.Name, ManifestDigest: revision.Spec.ManifestDigest,
			ProvisionerClassName: revision.Spec.ProvisionerClassName,
			Decision:             decision, Approver: me.Username, Message: message,
		},
	}
	if waits != nil {
		approval.Spec.Prune = waits.Digest
	}
	if decision == v1alpha1.DecisionApprove {
		approval.Spec.Groups = s.askedGroups(ctx, cluster, revision.Spec.ProvisionerClassName, me.Groups)
	}
	return approval, cluster.Create(ctx, approval)
}

// whoAmI is the user as the API server knows them.
func whoAmI(ctx context.Context, cluster client.Client) (authenticationv1.UserInfo, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := cluster.Create(ctx, review); err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("ask the API server who you are: %w", err)
	}
	return review.Status.UserInfo, nil
}

// askedGroups are those of the user's groups of which a rule of the class may want a member. A class that cannot be read
// names none: if one is needed, the verdict on the Approval says so.
func (s *session) askedGroups(ctx context.Context, cluster client.Client, class string, mine []string) []string {
	found := &v1alpha1.ProvisionerClass{}
	if err := cluster.Get(ctx, client.ObjectKey{Name: class}, found); err != nil {
		return nil
	}
	var asked []string
	for _, rule := range found.Spec.Approval.Rules {
		for _, group := range rule.Groups {
			if slices.Contains(mine, group) && !slices.Contains(asked, group) {
				asked = append(asked, group)
			}
		}
	}
	slices.Sort(asked)
	return asked[:min(len(asked), 16)]
}

// countPatience is how long it is waited for that a decision takes effect.
const countPatience = 5 * time.Second

// awaitCounted waits a little for the manager's verdict on an approval, and
// until the revision says the same. A verdict that says no is an error.
func (v *decideVerb) awaitCounted(ctx context.Context, approval *v1alpha1.Approval) (state.State, error) {
	cluster, err := v.client()
	if err != nil {
		return state.State{}, err
	}
	line := v.progress()
	defer line.Close()
	for deadline := time.Now().Add(countPatience); ; {
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(approval), approval); err != nil {
			return state.State{}, err
		}
		found := state.OfApproval(approval)
		switch {
		case found.Mood == state.Bad:
			return found, failf(ExitError, "the decision does not count: %s", sentence(found))
		case time.Now().After(deadline) || found.Word != state.Unseen && v.tookEffect(ctx, approval):
			return found, nil
		}
		line.Show("%s: waiting until the decision counts", approval.Spec.Revision)
		if err := sleep(ctx, pollInterval/2); err != nil {
			return found, err
		}
	}
}

// tookEffect says whether the revision knows of the decision. One that cannot be read is not waited for.
func (v *decideVerb) tookEffect(ctx context.Context, approval *v1alpha1.Approval) bool {
	revision, err := v.revisionNamed(ctx, approval.Spec.Revision)
	undecided := err == nil && state.OfRevision(revision).Word == state.Waiting
	if err == nil && approval.Spec.Prune != "" {
		undecided = state.OfPrune(revision).Word == state.Waiting
	}
	return !undecided ||
		slices.ContainsFunc(revision.Status.Decisions, func(made v1alpha1.Decision) bool { return made.Approval == approval.Name })
}

// outlook is whether a plan will come about that is waited for. Where somebody has to mend something first, nobody is
// kept waiting.
func (v *decideVerb) outlook(found target) state.Outlook {
	switch {
	case found.byInstance && !upToDate(found.instance) && found.instance.Status.ObservedGeneration != found.instance.Generation:
		return state.Open
	case found.byInstance && !upToDate(found.instance):
		return state.OutlookOf(state.OfInstance(found.instance).Word)
	}
	return state.Open
}

// futile fails where a decision would change nothing: for a revision that a newer one replaced, or a denial of what is
// active.
func (v *decideVerb) futile(ctx context.Context, found target) error {
	revision := found.revision
	instance := revision.Spec.Instance.Name
	newest := revision
	if found.instance != nil {
		var err error
		if newest, err = v.newest(ctx, found.instance); err != nil {
			return err
		}
	}
	word := state.OfRevision(revision).Word
	switch {
	case revision.Status.ActivatedAt != nil && v.decision == v1alpha1.DecisionDeny && word != v1alpha1.ReasonSuperseded:
		return failf(ExitError, "%s has been activated: a denial changes nothing any more", revision.Name).
			hintf("%s goes back to what was active before", v.command("rollback %s", instance))
	case newest != nil && newest.Spec.Number > revision.Spec.Number:
		return failf(ExitError, "%s was replaced by %s: nothing is left to decide about it", revision.Name, newest.Name).
			hintf("look with %s, decide with %s", v.command("plan %s", newest.Name), v.command("%s %s", strings.ToLower(string(v.decision)), newest.Name))
	case word == v1alpha1.ReasonSuperseded || word == v1alpha1.ReasonReplaced:
		return failf(ExitError, "%s was replaced by a newer revision: nothing is left to decide about it", revision.Name).
			hintf("%s lists the revisions", v.command("history %s", instance))
	}
	return nil
}

// blockers says what stands in the way of a revision's activation, "" if nothing that the plan knows.
func blockers(of *v1alpha1.PlanSummary) string {
	if of == nil {
		return ""
	}
	var parts []string
	for _, part := range []struct {
		count int
		noun  string
	}{{int(of.Conflicts), "conflict"}, {int(of.Failing), "problem"}, {len(of.MissingPermissions), "missing permission"}} {
		if part.count > 0 {
			parts = append(parts, plural.Of(part.count, part.noun))
		}
	}
	if len(parts) == 0 && len(of.Problems) > 0 {
		parts = append(parts, plural.Of(len(of.Problems), "problem"))
	}
	return strings.Join(parts, ", ")
}

// undoHint says what to do instead of deciding, "" if there is nothing but that.
func (s *session) undoHint(revision *v1alpha1.InstanceRevision) string {
	if revision.Spec.RollbackOf == nil {
		return ""
	}
	return s.command("rollback %s --clear", revision.Spec.Instance.Name) + " takes the rollback back"
}
