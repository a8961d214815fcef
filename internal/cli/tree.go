// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/cli/state"
	"rukpak.io/rukpak/internal/cli/tree"
	"rukpak.io/rukpak/internal/health/check"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/provisioner"
)

type treeVerb struct {
	*session
	output output
}

func (s *session) treeCommand() *cobra.Command {
	v := &treeVerb{session: s}
	cmd := &cobra.Command{
		Use:   "tree INSTANCE",
		Short: "Show the objects of an instance, what they made in turn, and their health",
		Long: `Shows the active objects of an instance by phase, in the order of activation, with their health, and below
each what it made in turn (ReplicaSets, Pods, Jobs, ...). All is read with your own rights.

  ✓ as it should be   … on its way   ✗ failed   ○ missing   ⌫ being deleted   ? cannot be judged
  ! not its own`,
		Example:           `  rukpak tree web`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames("instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			return v.run(cmd.Context(), args[0])
		},
	}
	v.output.addTo(cmd)
	return cmd
}

func (v *treeVerb) run(ctx context.Context, name string) error {
	instance, err := v.instanceNamed(ctx, name)
	if err != nil {
		return err
	}
	found := state.OfInstance(instance)
	shown := tree.Tree{Instance: instance.Name, State: found.Word, Groups: []tree.Group{}}
	reference := shownRevision(instance)
	if reference == nil {
		v.say("%s has no objects yet: %s", instance.Name, sentence(found))
	} else {
		shown.Revision = reference.Name
		if shown.Groups, err = v.groups(ctx, instance, reference); err != nil {
			return err
		}
	}
	if !v.output.forPeople() {
		return v.value(shown, v.output.format)
	}
	if reference == nil {
		return nil
	}
	return shown.Write(v.Out, v.title(instance, reference, shown, found), v.painter())
}

// shownRevision is the active revision, or else the pending one: while it is
// being activated its objects appear one after another.
func shownRevision(instance *v1alpha1.BundleInstance) *v1alpha1.RevisionReference {
	if instance.Status.Active != nil {
		return instance.Status.Active
	}
	return instance.Status.Pending
}

func (v *treeVerb) title(instance *v1alpha1.BundleInstance, reference *v1alpha1.RevisionReference, shown tree.Tree, found state.State) string {
	painter := v.painter()
	count := shown.Count()
	if count.Total == 0 && instance.Status.Objects != nil && instance.Status.Objects.Total == 0 {
		return fmt.Sprintf("%s  %s  active is %s, which has no objects: its content is there to be read", painter.Bold(instance.Name), colourState(painter, found.Mood, found.Word), reference.Name)
	}
	if count.Total == 0 {
		return fmt.Sprintf("%s  %s  you may see none of the objects of %s", painter.Bold(instance.Name), colourState(painter, found.Mood, found.Word), reference.Name)
	}
	what := "active is " + reference.Name
	if instance.Status.Active == nil {
		what = "nothing is active; these are the objects of " + reference.Name
	}
	title := fmt.Sprintf("%s  %s  %s, ", painter.Bold(instance.Name), colourState(painter, found.Mood, found.Word), what)
	if count.Foreign > 0 {
		title += fmt.Sprintf("%d of %d are its own, ", count.Total-count.Foreign, count.Total)
	}
	return title + fmt.Sprintf("%d of %d objects are as they should be", count.Current, count.Total)
}

func (v *treeVerb) groups(ctx context.Context, instance *v1alpha1.BundleInstance, reference *v1alpha1.RevisionReference) ([]tree.Group, error) {
	cluster, err := v.client()
	if err != nil {
		return nil, err
	}
	checks, _ := check.Compile(instance.Spec.HealthChecks) // what is wrong with one is told at the objects that it is for
	forest := &forest{cluster: cluster, owner: instance.UID, namespace: instance.Namespace, checks: checks}
	phases, err := v.phases(ctx, reference)
	switch {
	case err == nil:
		return forest.byPhase(ctx, phases)
	case !apierrors.IsForbidden(err) && !errors.Is(err, manifest.ErrIncomplete):
		return nil, err
	}
	namespace, _ := v.namespace()
	v.say("note: objects are grouped by kind and missing ones are not shown, since the manifests cannot be read: %v", err)
	if apierrors.IsForbidden(err) {
		v.say("hint: the verb \"get\" on secrets in namespace %q is needed, for example by the cluster role rukpak-plan-reader", namespace)
	}
	discovery, err := v.flags.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	return forest.byKind(ctx, discovery)
}

// phases are the objects of a revision as they were approved.
func (v *treeVerb) phases(ctx context.Context, reference *v1alpha1.RevisionReference) ([]provisioner.Phase, error) {
	cluster, namespace, err := v.place()
	if err != nil {
		return nil, err
	}
	encoded, err := manifest.LoadVerified(ctx, cluster, namespace, reference.Name, digest.Digest(reference.ManifestDigest))
	if err != nil {
		return nil, err
	}
	set, err := manifest.Decode(encoded)
	return activate.State(set.Phases), err // what tasks left comes and goes
}

func kindsOf(phases []provisioner.Phase) map[string][]*unstructured.Unstructured {
	kinds := map[string][]*unstructured.Unstructured{}
	for _, phase := range phases {
		for _, object := range phase.Objects {
			name := object.GroupVersionKind().String()
			kinds[name] = append(kinds[name], object)
		}
	}
	return kinds
}
