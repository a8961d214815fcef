// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/state"
)

// approving is what run and rollback do once the spec is as it should be: show
// the plan, get it approved, wait until it is active and healthy.
type approving struct {
	approve bool
	message string
	wait    bool
	timeout time.Duration
}

func (a *approving) addTo(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.approve, "approve", false, "Approve the plan that is shown without asking")
	cmd.Flags().StringVarP(&a.message, "message", "m", "", "Why; it is kept with the approval")
	cmd.Flags().BoolVar(&a.wait, "wait", true, "After the approval, wait until it is active and healthy")
	cmd.Flags().DurationVar(&a.timeout, "timeout", defaultTimeout, "How long to wait for the plan, and then for the rest")
}

// carry carries an instance from a changed spec to ready.
func (a *approving) carry(ctx context.Context, s *session, name string) error {
	found, err := a.awaitPlan(ctx, s, name)
	if err != nil {
		return err
	}
	revision := found.revision
	if !conditionTrue(revision.Status.Conditions, v1alpha1.ConditionActive) {
		if err := a.decide(ctx, s, revision); err != nil {
			return err
		}
	}
	if !a.wait {
		return nil
	}
	return s.awaitReady(ctx, name, a.timeout)
}

func (a *approving) awaitPlan(ctx context.Context, s *session, name string) (target, error) {
	line := s.progress()
	defer line.Close()
	if _, err := s.await(ctx, name, goalPlanned, a.timeout, line); err != nil {
		return target{}, err
	}
	return s.targetInstance(ctx, name)
}

func (a *approving) decide(ctx context.Context, s *session, revision *v1alpha1.InstanceRevision) error {
	if found := state.OfRevision(revision); found.Word == state.Denied {
		return failf(ExitDenied, "%s was denied: %s", revision.Name, found.Message).
			hintf("change the instance: a new revision is decided about anew")
	}
	if err := s.showPlan(ctx, s.Out, revision); err != nil {
		return err
	}
	if conditionTrue(revision.Status.Conditions, v1alpha1.ConditionApproved) {
		s.say("%s is approved%s.", revision.Name, byWhom(revision.Status.Decisions))
		return nil
	}
	if !a.approve && !s.canAsk() {
		hint := fmt.Sprintf("%s approves it, %s then waits until it is active and healthy", s.command("approve %s", revision.Name), s.command("wait %s", revision.Spec.Instance.Name))
		if undo := s.undoHint(revision); undo != "" {
			hint += "; " + undo
		}
		return failf(ExitWaiting, "%s waits for approval", revision.Name).hintf("%s", hint)
	}
	v := &decideVerb{session: s, decision: v1alpha1.DecisionApprove, message: a.message, yes: a.approve}
	if done, err := v.ownVote(ctx, revision, nil); done || err != nil {
		return err
	}
	if err := v.ask(ctx, revision); err != nil {
		return err
	}
	return v.decideOn(ctx, revision, nil)
}
