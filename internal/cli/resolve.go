// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

// target is what a word on the command line means: a revision, and its instance
// if that is still there.
type target struct {
	instance *v1alpha1.BundleInstance   // nil: deleted
	revision *v1alpha1.InstanceRevision // nil: the instance has none yet

	byInstance bool // the word named the instance: what is meant is its newest revision
}

// instanceNamed gets an instance, by "web" or "instance/web".
func (s *session) instanceNamed(ctx context.Context, word string) (*v1alpha1.BundleInstance, error) {
	known, name, prefixed := splitName(word)
	if prefixed && known.name != "instance" {
		return nil, failf(ExitUsage, "%s is not an instance", word)
	}
	cluster, namespace, err := s.place()
	if err != nil {
		return nil, err
	}
	instance := &v1alpha1.BundleInstance{}
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, instance); err != nil {
		return nil, s.missing(err, "instance", name, namespace)
	}
	return instance, nil
}

// revisionNamed gets a revision by its name.
func (s *session) revisionNamed(ctx context.Context, name string) (*v1alpha1.InstanceRevision, error) {
	cluster, namespace, err := s.place()
	if err != nil {
		return nil, err
	}
	revision := &v1alpha1.InstanceRevision{}
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, revision); err != nil {
		return nil, s.missing(err, "revision", name, namespace)
	}
	return revision, nil
}

// missing says of an error that an object is not there, if that is what it says.
func (s *session) missing(err error, kind, name, namespace string) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	known, _ := kindOf(kind)
	if known.cluster {
		return failf(ExitNotFound, "there is no %s %q", kind, name).hintf("%s lists them", s.command("get %s", known.plural))
	}
	return failf(ExitNotFound, "there is no %s %q in namespace %q", kind, name, namespace).
		hintf("%s lists those of all namespaces; -n names another one", s.command("get %s -A", known.plural))
}

// target finds what a word means: "revision/web-2", "instance/web", or only the
// name of either. An instance stands for its pending revision, or else its
// active one.
func (s *session) target(ctx context.Context, word string) (target, error) {
	known, name, prefixed := splitName(word)
	if prefixed && known.name == "revision" {
		return s.targetRevision(ctx, name)
	}
	if prefixed {
		return s.targetInstance(ctx, word)
	}
	byInstance, instanceErr := s.targetInstance(ctx, name)
	byRevision, revisionErr := s.targetRevision(ctx, name)
	switch {
	case instanceErr == nil && revisionErr == nil:
		return target{}, failf(ExitUsage, "%q is the name of an instance and of a revision", name).
			hintf("say instance/%s or revision/%s", name, name)
	case revisionErr == nil:
		return byRevision, nil
	case instanceErr == nil || codeOf(instanceErr) != ExitNotFound:
		return byInstance, instanceErr
	case codeOf(revisionErr) != ExitNotFound:
		return target{}, revisionErr
	}
	namespace, _ := s.namespace()
	return target{}, failf(ExitNotFound, "there is no instance or revision %q in namespace %q", name, namespace).
		hintf("%s lists those of all namespaces; -n names another one", s.command("get all -A"))
}

func (s *session) targetInstance(ctx context.Context, word string) (target, error) {
	instance, err := s.instanceNamed(ctx, word)
	if err != nil {
		return target{}, err
	}
	revision, err := s.newest(ctx, instance)
	return target{instance: instance, revision: revision, byInstance: true}, err
}

func (s *session) targetRevision(ctx context.Context, name string) (target, error) {
	revision, err := s.revisionNamed(ctx, name)
	if err != nil {
		return target{}, err
	}
	instance, err := s.instanceNamed(ctx, revision.Spec.Instance.Name)
	if err != nil && codeOf(err) != ExitNotFound {
		return target{}, err
	}
	if instance != nil && instance.UID != revision.Spec.Instance.UID {
		instance = nil // another one of that name
	}
	return target{instance: instance, revision: revision}, nil
}

// newest gets the pending revision of an instance, or else the active one, or
// nil if there is none.
func (s *session) newest(ctx context.Context, instance *v1alpha1.BundleInstance) (*v1alpha1.InstanceRevision, error) {
	for _, reference := range []*v1alpha1.RevisionReference{instance.Status.Pending, instance.Status.Active} {
		if reference != nil {
			return s.revisionNamed(ctx, reference.Name)
		}
	}
	return nil, nil //nolint:nilnil // an instance without a revision is no error
}

// revisionsOf lists the kept revisions of an instance by number.
func (s *session) revisionsOf(ctx context.Context, instance *v1alpha1.BundleInstance) ([]v1alpha1.InstanceRevision, error) {
	cluster, namespace, err := s.place()
	if err != nil {
		return nil, err
	}
	var list v1alpha1.InstanceRevisionList
	if err := cluster.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	revisions := slices.DeleteFunc(list.Items, func(revision v1alpha1.InstanceRevision) bool {
		return revision.Spec.Instance.UID != instance.UID
	})
	slices.SortFunc(revisions, func(a, b v1alpha1.InstanceRevision) int { return int(a.Spec.Number - b.Spec.Number) })
	return revisions, nil
}
