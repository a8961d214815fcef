// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"rukpak.io/rukpak/api/v1alpha1"
)

type rollbackVerb struct {
	*session
	approving
	to    int64
	clear bool
}

func (s *session) rollbackCommand() *cobra.Command {
	v := &rollbackVerb{session: s}
	cmd := &cobra.Command{
		Use:   "rollback INSTANCE",
		Short: "Go back to an earlier revision, or follow the bundle again",
		Long: `Makes a new revision with exactly the manifests of an earlier one. It needs neither the registry nor the
content any more, and is planned and approved as any other.

Without --to it goes back to the revision that was active before the one that is active now. As long as an
instance is rolled back, changes of its bundle have no effect; --clear ends that.`,
		Example: `  # Back to what was active before: shows the plan, asks, waits until it is active
  rukpak rollback web

  # Without a terminal
  rukpak rollback web --to 3 --approve

  # Follow the bundle again
  rukpak rollback web --clear`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames("instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if v.clear && cmd.Flags().Changed("to") {
				return usagef(cmd, "--clear and --to exclude one another")
			}
			if cmd.Flags().Changed("to") && v.to < 1 {
				return usagef(cmd, "--to is the number of a revision, 1 or more; %s lists them", s.command("history %s", args[0]))
			}
			return v.run(cmd.Context(), args[0])
		},
	}
	cmd.Flags().Int64Var(&v.to, "to", 0, "Number of the revision to go back to")
	cmd.Flags().BoolVar(&v.clear, "clear", false, "Follow the bundle again")
	_ = cmd.RegisterFlagCompletionFunc("to", s.completeNumbers)
	v.approving.addTo(cmd)
	return cmd
}

func (v *rollbackVerb) run(ctx context.Context, name string) error {
	var wanted *int64
	if !v.clear {
		number, err := v.goal(ctx, name)
		if err != nil {
			return err
		}
		if done, err := v.there(ctx, name, number); done || err != nil {
			return err
		}
		wanted = &number
	}
	instance, changed, err := v.change(ctx, name, func(instance *v1alpha1.BundleInstance) error {
		instance.Spec.RollbackTo = wanted
		return nil
	})
	if err != nil {
		return err
	}
	switch {
	case v.clear && !changed:
		v.say("%s is not rolled back: it follows its bundle.", instance.Name)
		return nil
	case v.clear:
		v.say("%s follows its bundle again.", instance.Name)
	case changed:
		v.say("%s goes back to revision %d.", instance.Name, *wanted)
	}
	return v.carry(ctx, v.session, instance.Name)
}

// there says so if the revision is active already: a new one with the same manifests would change nothing. A rollback to
// another one that waits is taken back.
func (v *rollbackVerb) there(ctx context.Context, name string, number int64) (bool, error) {
	instance, err := v.instanceNamed(ctx, name)
	if err != nil || instance.Status.Active == nil || instance.Status.Active.Number != number {
		return false, err
	}
	active, err := v.revisionNamed(ctx, instance.Status.Active.Name)
	if err != nil {
		return false, err
	}
	v.say("%s is active already.", active.Name)
	to, of := instance.Spec.RollbackTo, active.Spec.RollbackOf
	if to == nil || of != nil && *of == *to {
		return true, nil
	}
	_, _, err = v.change(ctx, name, func(instance *v1alpha1.BundleInstance) error {
		instance.Spec.RollbackTo = nil
		return nil
	})
	if err == nil {
		v.say("%s does not go back to revision %d any more: it follows its bundle again.", instance.Name, *to)
	}
	return true, err
}

// goal is the number to go back to.
func (v *rollbackVerb) goal(ctx context.Context, name string) (int64, error) {
	instance, err := v.instanceNamed(ctx, name)
	if err != nil {
		return 0, err
	}
	revisions, err := v.revisionsOf(ctx, instance)
	if err != nil {
		return 0, err
	}
	if v.to == 0 {
		return previous(v.session, instance, revisions)
	}
	for _, revision := range revisions {
		if revision.Spec.Number == v.to {
			return v.to, nil
		}
	}
	return 0, failf(ExitNotFound, "%s has no revision %d, or it is no longer kept", instance.Name, v.to).
		hintf("%s lists those that are kept", v.command("history %s", instance.Name))
}

// previous is the newest revision that was active before the one that is active
// now and has other manifests: going back to the same would change nothing.
func previous(s *session, instance *v1alpha1.BundleInstance, revisions []v1alpha1.InstanceRevision) (int64, error) {
	active := instance.Status.Active
	if active == nil {
		return 0, failf(ExitNotFound, "%s has no active revision to go back from", instance.Name).
			hintf("--to names a revision; %s lists them", s.command("history %s", instance.Name))
	}
	for i := len(revisions) - 1; i >= 0; i-- {
		revision := revisions[i]
		if revision.Spec.Number < active.Number && revision.Status.ActivatedAt != nil && revision.Spec.ManifestDigest != active.ManifestDigest {
			return revision.Spec.Number, nil
		}
	}
	return 0, failf(ExitNotFound, "%s has no earlier revision that was active and differs from %s", instance.Name, active.Name).
		hintf("%s lists the revisions", s.command("history %s", instance.Name))
}
