// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/progress"
)

type deleteVerb struct {
	*session
	wait, retain, ignoreMissing bool
	yes                         bool
	timeout                     time.Duration
}

func (s *session) deleteCommand() *cobra.Command {
	v := &deleteVerb{session: s}
	cmd := &cobra.Command{
		Use:   "delete (instance|bundle|class|revision|approval) NAME...",
		Short: "Delete an instance with all that it made active, or another object",
		Long: `Deletes objects and waits until they are gone.

An instance takes with it what it made active, in reverse order, as its service account: delete the account
and its namespace after it. With --retain, or a class that says so, what is active stays. Before a class or a
bundle that is used is deleted you are asked, where somebody can be; else it is only said.`,
		Example: `  rukpak delete instance web
  rukpak delete instance web --retain
  rukpak delete bundle web-v1 web-v2`,
		ValidArgsFunction: s.completeKindAndName(),
		RunE: func(cmd *cobra.Command, args []string) error {
			known, names, err := v.parse(cmd, args)
			if err != nil {
				return err
			}
			return v.run(cmd.Context(), known, names)
		},
	}
	cmd.Flags().BoolVar(&v.wait, "wait", true, "Wait until the objects are gone")
	cmd.Flags().DurationVar(&v.timeout, "timeout", defaultTimeout, "How long to wait")
	cmd.Flags().BoolVar(&v.retain, "retain", false, "Of an instance: leave what it made active as it is")
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "Of a class or a bundle that is used: do not ask")
	cmd.Flags().BoolVar(&v.ignoreMissing, "ignore-not-found", false, "An object that does not exist is no error")
	return cmd
}

func (v *deleteVerb) parse(cmd *cobra.Command, args []string) (kind, []string, error) {
	if len(args) == 0 {
		return kind{}, nil, usagef(cmd, "the kind and the name of what to delete are missing")
	}
	word, names := args[0], args[1:]
	if prefixed, name, ok := splitName(word); ok {
		word, names = prefixed.name, append([]string{name}, names...)
	}
	known, ok := kindOf(word)
	if !ok {
		return kind{}, nil, usagef(cmd, "%q is not a kind of RukPak; say \"delete instance %s\" for an instance", word, word)
	}
	if len(names) == 0 {
		return kind{}, nil, usagef(cmd, "the name of the %s is missing", known.name)
	}
	if v.retain && known.name != "instance" {
		return kind{}, nil, usagef(cmd, "--retain is for instances: a %s makes nothing active", known.name)
	}
	return known, names, nil
}

func (v *deleteVerb) run(ctx context.Context, known kind, names []string) error {
	line := v.progress()
	defer line.Close()
	for _, name := range names {
		object, err := v.find(ctx, known, name)
		if err != nil && v.ignoreMissing && codeOf(err) == ExitNotFound {
			continue
		}
		if err != nil {
			return err
		}
		if err := v.askUsed(ctx, known, object); err != nil {
			return err
		}
		if err := v.remove(ctx, known, object, line); err != nil {
			return err
		}
		line.Close()
		if v.wait {
			v.print("%s %q deleted", known.name, name)
		} else {
			v.print("%s %q deletion has begun", known.name, name)
		}
	}
	return nil
}

func (v *deleteVerb) find(ctx context.Context, known kind, name string) (client.Object, error) {
	cluster, namespace, err := v.place()
	if err != nil {
		return nil, err
	}
	key := client.ObjectKey{Name: name, Namespace: namespace}
	if known.cluster {
		key.Namespace = ""
	}
	object := known.object()
	if err := cluster.Get(ctx, key, object); err != nil {
		return nil, v.missing(err, known.name, name, namespace)
	}
	return object, nil
}

func (v *deleteVerb) remove(ctx context.Context, known kind, object client.Object, line *progress.Line) error {
	cluster, err := v.client()
	if err != nil {
		return err
	}
	if v.retain {
		if err := retain(ctx, cluster, object); err != nil {
			return err
		}
	}
	uid := object.GetUID()
	err = cluster.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy("Background"))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if !v.wait {
		return nil
	}
	return v.awaitGone(ctx, known, object, line)
}

// retain is written before the deletion, so that nothing is torn down in between.
func retain(ctx context.Context, cluster client.Client, object client.Object) error {
	before := object.DeepCopyObject().(client.Object)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationReclaimPolicy] = string(v1alpha1.ReclaimRetain)
	object.SetAnnotations(annotations)
	return cluster.Patch(ctx, object, client.MergeFrom(before))
}

func (v *deleteVerb) awaitGone(ctx context.Context, known kind, object client.Object, line *progress.Line) error {
	cluster, err := v.client()
	if err != nil {
		return err
	}
	uid, deadline := object.GetUID(), time.Now().Add(v.timeout)
	for {
		err := cluster.Get(ctx, client.ObjectKeyFromObject(object), object)
		switch {
		case apierrors.IsNotFound(err), err == nil && object.GetUID() != uid:
			return nil
		case err != nil && !passing(err):
			return err
		}
		told := deletionProgress(object)
		if time.Now().After(deadline) {
			return failf(ExitTimeout, "the time is up: %s %q is not gone: %s", known.name, object.GetName(), told).
				hintf("it goes on by itself; %s tells more", v.command("describe %s %s", known.name, object.GetName()))
		}
		line.Show("%s %q: %s", known.name, object.GetName(), told)
		if err := sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// deletionProgress says what keeps an object from being gone.
func deletionProgress(object client.Object) string {
	if instance, ok := object.(*v1alpha1.BundleInstance); ok {
		return deletionText(instance)
	}
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		return "is kept by " + strings.Join(finalizers, ", ")
	}
	return "is being deleted"
}
