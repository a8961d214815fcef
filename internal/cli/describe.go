// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

type describeVerb struct{ *session }

func (s *session) describeCommand() *cobra.Command {
	v := &describeVerb{session: s}
	return &cobra.Command{
		Use:   "describe (NAME | KIND NAME)",
		Short: "Tell all about an instance or another object, with its events",
		Long: `Tells how an object is and why: for an instance its active and pending revision, the plan, who decided,
conditions and events. Without a kind NAME is an instance or a revision.`,
		Example: `  rukpak describe web
  rukpak describe web-2
  rukpak describe bundle web-v1`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: v.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			return v.run(cmd, args)
		},
	}
}

func (v *describeVerb) complete(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		names := v.namesOf(cmd.Context(), []string{"instance", "revision"}, start)
		words, directive := v.completeKindAndName()(cmd, args, start)
		return append(names, words...), directive
	}
	return v.completeKindAndName()(cmd, args, start)
}

func (v *describeVerb) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	if known, name, prefixed := splitName(args[0]); prefixed && len(args) == 1 {
		return v.object(ctx, known, name)
	}
	if known, ok := kindOf(args[0]); ok && len(args) == 1 && known.name != "instance" && known.name != "revision" {
		return usagef(cmd, "the name of the %s is missing; %s lists them", known.name, v.command("get %s", known.plural))
	}
	if len(args) == 1 {
		return v.instanceOrRevision(ctx, args[0])
	}
	known, ok := kindOf(args[0])
	if !ok {
		return usagef(cmd, "%q is not a kind of RukPak; there are instance, revision, bundle, approval and class", args[0])
	}
	return v.object(ctx, known, args[1])
}

func (v *describeVerb) instanceOrRevision(ctx context.Context, name string) error {
	found, err := v.target(ctx, name)
	if err != nil {
		return err
	}
	if found.byInstance {
		return v.instance(ctx, found.instance)
	}
	return v.revision(ctx, found.revision)
}

func (v *describeVerb) object(ctx context.Context, known kind, name string) error {
	cluster, namespace, err := v.place()
	if err != nil {
		return err
	}
	key := client.ObjectKey{Name: name, Namespace: namespace}
	if known.cluster {
		key.Namespace = ""
	}
	object := known.object()
	if err := cluster.Get(ctx, key, object); err != nil {
		return v.missing(err, known.name, name, namespace)
	}
	switch object := object.(type) {
	case *v1alpha1.BundleInstance:
		return v.instance(ctx, object)
	case *v1alpha1.InstanceRevision:
		return v.revision(ctx, object)
	}
	sheet := v.sheet()
	switch object := object.(type) {
	case *v1alpha1.Bundle:
		sheet.bundle(object)
	case *v1alpha1.ProvisionerClass:
		sheet.class(object)
	case *v1alpha1.Approval:
		sheet.approval(object)
	}
	sheet.events(v.eventsOf(ctx, object))
	return sheet.write(v.Out)
}

func (v *describeVerb) instance(ctx context.Context, instance *v1alpha1.BundleInstance) error {
	revisions, err := v.revisionsOf(ctx, instance)
	if err != nil {
		return err
	}
	sheet := v.sheet()
	sheet.instance(instance)
	about := []client.Object{instance}
	for i := range revisions {
		revision := &revisions[i]
		if isReference(instance.Status.Pending, revision) || isReference(instance.Status.Active, revision) {
			about = append(about, revision)
		}
		if isReference(instance.Status.Pending, revision) {
			sheet.decisions(revision)
			sheet.plan(revision)
		}
		if instance.Status.Pending == nil && isReference(instance.Status.Active, revision) {
			sheet.decisions(revision) // its plan is history
		} else if isReference(instance.Status.Active, revision) {
			sheet.removals(revision)
		}
	}
	sheet.leftovers(revisions)
	sheet.events(v.eventsOf(ctx, about...))
	return sheet.write(v.Out)
}

func (v *describeVerb) revision(ctx context.Context, revision *v1alpha1.InstanceRevision) error {
	sheet := v.sheet()
	sheet.revision(revision)
	sheet.decisions(revision)
	sheet.plan(revision)
	sheet.events(v.eventsOf(ctx, revision))
	return sheet.write(v.Out)
}

func isReference(reference *v1alpha1.RevisionReference, revision *v1alpha1.InstanceRevision) bool {
	return reference != nil && reference.Name == revision.Name
}

// eventsOf lists the events about objects, oldest first. Events are a courtesy:
// who may not read them is told so, and the rest is shown.
func (v *describeVerb) eventsOf(ctx context.Context, objects ...client.Object) ([]corev1.Event, error) {
	cluster, err := v.client()
	if err != nil {
		return nil, err
	}
	var all []corev1.Event
	for _, object := range objects {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = "default" // where events about what is in no namespace are
		}
		var list corev1.EventList
		selector := fields.OneTermEqualSelector("involvedObject.uid", string(object.GetUID()))
		if err := cluster.List(ctx, &list, &client.ListOptions{Namespace: namespace, FieldSelector: selector}); err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
	}
	slices.SortStableFunc(all, func(a, b corev1.Event) int { return lastSeen(&a).Compare(lastSeen(&b)) })
	return all, nil
}
