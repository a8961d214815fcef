// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/state"
)

type planVerb struct {
	*session
	output  output
	code    bool
	summary bool
	full    bool
}

func (s *session) planCommand() *cobra.Command {
	v := &planVerb{session: s}
	cmd := &cobra.Command{
		Use:   "plan (INSTANCE|REVISION)",
		Short: "Show what a revision would change",
		Long: `Shows what activating a revision would change, against what was live when the plan was computed: objects
added, changed and removed, field by field; what would fail; what the service account lacks. Data of Secrets
is not shown. An instance stands for its pending revision, or else for its active one, whose plan is history.

The full plan is kept in a Secret and read with your own rights; who may not read it sees the summary.`,
		Example: `  rukpak plan web
  rukpak plan web-2 --full --color always | less -R

  # In a script: 0 nothing would change, 2 something would
  rukpak plan web --exit-code >/dev/null`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames("instance", "revision"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			if v.full && v.summary {
				return usagef(cmd, "--full and --summary exclude one another")
			}
			return v.run(cmd.Context(), args[0])
		},
	}
	v.output.addTo(cmd)
	cmd.Flags().BoolVar(&v.code, "exit-code", false, "Exit with 2 if there are changes")
	cmd.Flags().BoolVar(&v.summary, "summary", false, "Only which objects and fields, without values; it needs no right to read Secrets")
	cmd.Flags().BoolVar(&v.full, "full", false, "Also the manifests of objects that are added")
	return cmd
}

func (v *planVerb) run(ctx context.Context, word string) error {
	found, err := v.target(ctx, word)
	if err != nil {
		return err
	}
	if err := v.checkPlanned(found, word); err != nil {
		return err
	}
	if err := v.write(ctx, found.revision); err != nil {
		return err
	}
	if v.code && !conditionTrue(found.revision.Status.Conditions, v1alpha1.ConditionActive) && changes(found.revision.Status.Plan) {
		return exitWith(ExitChanges)
	}
	return nil
}

// checkPlanned fails where there is no plan, and says if there is a newer change without one.
func (v *planVerb) checkPlanned(found target, word string) error {
	if found.revision == nil {
		return failf(ExitError, "%s has no plan yet: %s", word, sentence(state.OfInstance(found.instance))).
			hintf("%s waits for it", v.command("wait %s --for planned", word))
	}
	if found.revision.Status.Plan == nil {
		return failf(ExitError, "%s has no plan yet: %s", found.revision.Name, sentence(state.OfRevision(found.revision))).
			hintf("%s waits for it", v.command("wait %s --for planned", found.revision.Spec.Instance.Name))
	}
	if found.byInstance && !upToDate(found.instance) {
		v.say("note: this is the plan of %s; the newest change has none yet: %s", found.revision.Name, early(found.instance).text)
	}
	return nil
}
