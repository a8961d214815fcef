// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval"
	"rukpak.io/rukpak/internal/cli/state"
	"rukpak.io/rukpak/internal/spelling"
)

// planPatience is how long approve waits for a plan, and then for the decision to count.
const planPatience = 30 * time.Second

type decideVerb struct {
	*session
	decision v1alpha1.ApprovalDecision
	message  string
	digest   string
	yes      bool
	prune    bool
	wait     bool
	timeout  time.Duration
	output   output
}

func (s *session) approveCommand() *cobra.Command {
	v := &decideVerb{session: s, decision: v1alpha1.DecisionApprove}
	cmd := &cobra.Command{
		Use:   "approve (INSTANCE|REVISION)",
		Short: "Approve a revision: exactly the bytes whose plan is shown",
		Long: `Shows the plan of a revision, asks, and writes an Approval in your name.

An approval is bound to the digest of the rendered manifests: it never covers anything that comes later.
The digest is read once, with the plan, and exactly that is approved. Without a terminal give -y, and --digest
to be sure that it is what was reviewed. You need the verb "approve" on the revision's class.

Where the class says so, Namespaces, CustomResourceDefinitions and PersistentVolumeClaims that a new revision does not
have any more stay until --prune approves that exactly these are deleted.`,
		Example: `  # The pending revision of an instance: show, ask, approve
  rukpak approve web -m "reviewed in change 4711"

  # In a script, exactly what was reviewed, and wait until it is active and healthy
  rukpak approve web-2 --digest sha256:4f2c... -y --wait

  # That namespaces, definitions and claims which older revisions left are deleted
  rukpak approve web --prune`,
	}
	v.addTo(cmd)
	cmd.Flags().BoolVar(&v.wait, "wait", false, "Then wait until the instance is active and healthy")
	cmd.Flags().DurationVar(&v.timeout, "timeout", defaultTimeout, "How long --wait waits")
	return cmd
}

func (s *session) denyCommand() *cobra.Command {
	v := &decideVerb{session: s, decision: v1alpha1.DecisionDeny}
	cmd := &cobra.Command{
		Use:   "deny (INSTANCE|REVISION)",
		Short: "Deny a revision: it never becomes active",
		Long: `Shows the plan of a revision, asks, and writes an Approval with the decision Deny in your name.

That is final for this revision: it never becomes active; what is active now stays so. A change of the
instance makes a new revision, about which is decided anew.

With --prune it is about what older revisions left: that is kept for good, and belongs to no instance then.`,
		Example: `  rukpak deny web -m "opens a port that nobody asked for"
  rukpak deny web-2 -y
  rukpak deny web --prune -m "the claims hold the only copy"`,
	}
	v.addTo(cmd)
	return cmd
}

func (v *decideVerb) addTo(cmd *cobra.Command) {
	cmd.Args = cobra.ExactArgs(1)
	cmd.ValidArgsFunction = v.completeNames("instance", "revision")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := v.output.check(cmd); err != nil {
			return err
		}
		if v.prune {
			return v.runPrune(cmd.Context(), args[0])
		}
		return v.run(cmd.Context(), args[0])
	}
	v.output.addTo(cmd, withTemplates()...)
	cmd.Flags().StringVarP(&v.message, "message", "m", "", "Why; it is kept with the decision")
	cmd.Flags().StringVar(&v.digest, "digest", "", "Decide only if this is the digest of the revision's manifests, with --prune of the removals")
	cmd.Flags().BoolVar(&v.prune, "prune", false, "Decide about the deletion of what older revisions left")
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "Do not ask")
}

func (v *decideVerb) run(ctx context.Context, word string) error {
	found, err := v.planned(ctx, word)
	if err != nil {
		return err
	}
	revision := found.revision
	if done, err := v.decided(ctx, revision); done || err != nil {
		return err
	}
	if err := v.futile(ctx, found); err != nil {
		return err
	}
	if done, err := v.ownVote(ctx, revision, nil); done || err != nil {
		return err
	}
	if err := v.show(ctx, revision); err != nil {
		return err
	}
	if err := v.ask(ctx, revision); err != nil {
		return err
	}
	if err := v.decideOn(ctx, revision, nil); err != nil {
		return err
	}
	if !v.wait {
		return nil
	}
	return v.awaitReady(ctx, revision.Spec.Instance.Name, v.timeout)
}

// planned finds the revision and waits a little for its plan: nobody should
// decide about what cannot be seen.
func (v *decideVerb) planned(ctx context.Context, word string) (target, error) {
	line := v.progress()
	defer line.Close()
	deadline := time.Now().Add(planPatience)
	for {
		found, err := v.target(ctx, word)
		if err != nil {
			return found, err
		}
		why := v.undecidable(found)
		if why == "" {
			return found, nil
		}
		if outlook := v.outlook(found); outlook != state.Open {
			return found, failf(ExitFailed, "%s cannot be decided about: %s", word, why).
				hintf("%s tells more", v.command("describe %s", word))
		}
		if time.Now().After(deadline) && line.Kept() {
			why = "it is still so after " + planPatience.String() // what is so stands above
		}
		if time.Now().After(deadline) {
			return found, failf(ExitTimeout, "%s cannot be decided about yet: %s", word, why).
				hintf("%s tells more", v.command("describe %s", word))
		}
		line.Show("%s: %s", word, why)
		if err := sleep(ctx, pollInterval); err != nil {
			return found, err
		}
	}
}

// undecidable says what has to come about before somebody can decide, or "".
func (v *decideVerb) undecidable(found target) string {
	if found.byInstance && !upToDate(found.instance) {
		return early(found.instance).text
	}
	if found.revision == nil {
		return "it has no revision: " + sentence(state.OfInstance(found.instance))
	}
	if found.revision.Status.Plan == nil {
		return fmt.Sprintf("%s has no plan: %s", found.revision.Name, sentence(state.OfRevision(found.revision)))
	}
	return ""
}

// decided says, and tells the user, that there is nothing left to decide.
func (v *decideVerb) decided(ctx context.Context, revision *v1alpha1.InstanceRevision) (bool, error) {
	digest := string(revision.Spec.ManifestDigest)
	if v.digest != "" && v.digest != digest {
		return false, failf(ExitError, "%s is not what you mean: its manifests have the digest %s, not %s", revision.Name, digest, v.digest).
			hintf("look at it with %s and decide about what it is now", v.command("plan %s", revision.Name))
	}
	switch found := state.OfRevision(revision); found.Word {
	case state.Denied:
		if v.decision == v1alpha1.DecisionDeny {
			v.say("%s is denied already: %s", revision.Name, found.Message)
			return true, nil
		}
		return false, failf(ExitDenied, "%s was denied, which is final: %s", revision.Name, found.Message).
			hintf("change the instance: a new revision is decided about anew")
	}
	if v.decision != v1alpha1.DecisionApprove || !conditionTrue(revision.Status.Conditions, v1alpha1.ConditionApproved) {
		return false, nil
	}
	if active := meta.FindStatusCondition(revision.Status.Conditions, v1alpha1.ConditionActive); active != nil && active.Reason == v1alpha1.ReasonSuperseded {
		return false, failf(ExitError, "%s was approved%s, and is no longer what is to be active: %s", revision.Name, byWhom(revision.Status.Decisions), active.Message).
			hintf("%s goes back to it", v.command("rollback %s --to %d", revision.Spec.Instance.Name, revision.Spec.Number))
	}
	v.say("%s is approved already%s.", revision.Name, byWhom(revision.Status.Decisions))
	if note := v.removalsNote(revision); note != "" {
		v.say("note: %s", note)
	}
	if v.wait {
		return true, v.awaitReady(ctx, revision.Spec.Instance.Name, v.timeout)
	}
	return true, nil
}

func byWhom(decisions []v1alpha1.Decision) string {
	who := approval.Names(decisions)
	if len(who) == 0 {
		return ""
	}
	return " by " + spelling.Names(who)
}

// show shows the plan on standard error when somebody is asked: standard output is for the result.
func (v *decideVerb) show(ctx context.Context, revision *v1alpha1.InstanceRevision) error {
	if v.yes && !isTerminal(v.ErrOut) {
		return nil
	}
	if err := v.showPlan(ctx, v.ErrOut, revision); err != nil {
		return err
	}
	v.say("%s", v.whoAsks(ctx, revision, state.OfRevision(revision)))
	return nil
}

func (v *decideVerb) ask(ctx context.Context, revision *v1alpha1.InstanceRevision) error {
	if what := blockers(revision.Status.Plan); what != "" && v.decision == v1alpha1.DecisionApprove {
		v.say("warning: %s: unless that was mended since the plan was made, it will not become active before it is", what)
	}
	if plan := revision.Status.Plan; plan != nil && len(plan.MissingForHealing) > 0 && v.decision == v1alpha1.DecisionApprove {
		v.say("note: service account %s may not heal and remove all of it, and of what it may not read nobody knows the health: %s prints the rights for that",
			revision.Spec.ServiceAccountName, v.command("rbac %s", revision.Spec.Instance.Name))
	}
	if v.yes {
		return nil
	}
	verb := strings.ToLower(string(v.decision))
	if !v.canAsk() {
		return failf(ExitUsage, "nobody can be asked: this is no terminal").
			hintf("%s decides about exactly this", v.command("%s %s --digest %s -y", verb, revision.Name, revision.Spec.ManifestDigest))
	}
	yes, err := v.confirm(ctx, fmt.Sprintf("%s %s?", v.decision, revision.Name))
	if err != nil {
		return err
	}
	if !yes {
		return failf(ExitWaiting, "nothing was decided: %s still waits", revision.Name).hintf("%s", v.undoHint(revision))
	}
	return nil
}
