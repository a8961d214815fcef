// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

type waitVerb struct {
	*session
	goal    string
	timeout time.Duration
}

func (s *session) waitCommand() *cobra.Command {
	v := &waitVerb{session: s}
	cmd := &cobra.Command{
		Use:   "wait INSTANCE",
		Short: "Wait until an instance is ready, or planned, approved, active, healthy, deleted",
		Long: `Waits until an instance is what --for says, and shows what it waits for meanwhile.

It ends early, with a code of its own, when that cannot come about without help: the revision was denied (4),
or it or its content failed (5); where somebody has to mend something, such as a missing service account, it
looks again for 20 seconds first. When the time is up the code is 3 if a revision still waits for approval,
and else 6. "help exit-codes" lists all codes.`,
		Example: `  # Until the newest revision is active and healthy
  rukpak wait web

  # Until the plan can be read
  rukpak wait web --for planned --timeout 1m

  # Is it ready now?
  rukpak wait web --timeout 0`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames("instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf(cmd, "for", v.goal, goals()...); err != nil {
				return err
			}
			return v.run(cmd.Context(), args[0])
		},
	}
	cmd.Flags().StringVar(&v.goal, "for", string(goalReady), "What to wait for: planned, approved, active, healthy, ready or deleted")
	cmd.Flags().DurationVar(&v.timeout, "timeout", defaultTimeout, "How long to wait; 0 looks once")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(goals(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (v *waitVerb) run(ctx context.Context, name string) error {
	line := v.progress()
	defer line.Close()
	reached, err := v.await(ctx, name, goal(v.goal), v.timeout, line)
	if err != nil {
		return err
	}
	line.Close()
	v.print("%s", reached)
	return nil
}
