// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

type updateVerb struct {
	*session
	instanceFlags
	output  output
	suspend bool
}

func (s *session) updateCommand() *cobra.Command {
	v := &updateVerb{session: s}
	cmd := &cobra.Command{
		Use:   "update INSTANCE",
		Short: "Change an instance: a new image, another account, suspend or resume it",
		Long: `Changes an instance; what no flag speaks of stays as it is. A change of content, account, configuration
or strategy makes a new revision, which waits for its own approval while the old one stays active.`,
		Example: `  # A new version
  rukpak update web --image registry.example.com/team/web:v2

  # Leave everything as it is for now, and go on later
  rukpak update web --suspend
  rukpak update web --suspend=false`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames("instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.checkFlags(cmd); err != nil {
				return err
			}
			return v.run(cmd, args[0])
		},
	}
	v.addTo(cmd, s)
	v.output.addTo(cmd, withTemplates()...)
	cmd.Flags().BoolVar(&v.suspend, "suspend", false, "Stop everything for it but deletion; --suspend=false resumes")
	return cmd
}

func (v *updateVerb) checkFlags(cmd *cobra.Command) error {
	changing := []string{
		"image", "insecure", "pull-secret", "class", "bundle", "service-account", "config", "config-from", "adoption",
		"progress-deadline", "history", "prune", "recreate-immutable", "suspend",
	}
	if !slices.ContainsFunc(changing, cmd.Flags().Changed) {
		return usagef(cmd, "no flag says what to change")
	}
	if err := v.check(cmd); err != nil {
		return err
	}
	if err := v.checkImage(); err != nil {
		return err
	}
	return v.output.check(cmd)
}

func (v *updateVerb) run(cmd *cobra.Command, name string) error {
	ctx := cmd.Context()
	instance, changed, err := v.change(ctx, name, func(instance *v1alpha1.BundleInstance) error {
		if cmd.Flags().Changed("suspend") {
			instance.Spec.Suspend = v.suspend
		}
		return v.apply(v.session, cmd.Flags(), &instance.Spec)
	})
	if err != nil {
		return err
	}
	if instance.Spec.RollbackTo != nil {
		v.say("note: %s is rolled back to revision %d: a change of its bundle has no effect before %s", instance.Name, *instance.Spec.RollbackTo, v.command("rollback %s --clear", instance.Name))
	}
	v.warnAccount(ctx, instance.Namespace, v.account)
	v.warnMissing(ctx, "class", v.class)
	v.warnMissing(ctx, "bundle", v.bundle)
	if !changed && v.image != "" && !strings.Contains(v.image, "@") && instance.Spec.Track == nil {
		v.say("hint: what %s means was pinned when it was first used; give the digest that \"push\" prints, or set spec.track to follow the tag", v.image)
	}
	return v.printChanged(instance, changed)
}

// change changes an instance and says whether that made a difference. It fails
// with a conflict rather than write over what somebody else did meanwhile.
func (s *session) change(ctx context.Context, name string, mutate func(*v1alpha1.BundleInstance) error) (*v1alpha1.BundleInstance, bool, error) {
	instance, err := s.instanceNamed(ctx, name)
	if err != nil {
		return nil, false, err
	}
	cluster, err := s.client()
	if err != nil {
		return nil, false, err
	}
	before := instance.DeepCopy()
	if err := mutate(instance); err != nil {
		return nil, false, err
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := cluster.Patch(ctx, instance, patch); err != nil {
		return nil, false, err
	}
	return instance, instance.Generation != before.Generation, nil
}

func (v *updateVerb) printChanged(instance *v1alpha1.BundleInstance, changed bool) error {
	done := "changed"
	if !changed {
		done = "unchanged"
	}
	return v.object(instance, v.output.format, done)
}
