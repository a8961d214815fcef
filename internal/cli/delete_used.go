// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/plural"
)

// askUsed asks, or where nobody can be asked warns, before something is deleted that others name: they keep what is
// active, but get nothing new.
func (v *deleteVerb) askUsed(ctx context.Context, known kind, object client.Object) error {
	used := v.usedBy(ctx, object)
	if used == "" {
		return nil
	}
	v.say("warning: %s %q is used by %s: what is active stays so, but nothing new comes about without it", known.name, object.GetName(), used)
	if v.yes || !v.canAsk() {
		return nil
	}
	yes, err := v.confirm(ctx, fmt.Sprintf("Delete %s %s?", known.name, object.GetName()))
	if err == nil && !yes {
		return failf(ExitError, "%s %q is not deleted", known.name, object.GetName())
	}
	return err
}

// usedBy says what names a class or a bundle. What the user may not list is not counted.
func (v *deleteVerb) usedBy(ctx context.Context, object client.Object) string {
	cluster, err := v.client()
	if err != nil {
		return ""
	}
	switch object := object.(type) {
	case *v1alpha1.Bundle:
		var instances v1alpha1.BundleInstanceList
		_ = cluster.List(ctx, &instances, client.InNamespace(object.Namespace))
		return users(instances.Items, "instance", func(instance *v1alpha1.BundleInstance) (string, bool) {
			reference := instance.Spec.BundleRef
			return instance.Name, reference != nil && reference.Name == object.Name
		})
	case *v1alpha1.ProvisionerClass:
		var bundles v1alpha1.BundleList
		_ = cluster.List(ctx, &bundles)
		return users(bundles.Items, "bundle", func(bundle *v1alpha1.Bundle) (string, bool) {
			uses := bundle.Spec.ProvisionerClassName == object.Name || bundle.Status.ProvisionerClassName == object.Name
			return bundle.Namespace + "/" + bundle.Name, uses
		})
	}
	return ""
}

// users counts those that use something, and names the first.
func users[T any](items []T, noun string, uses func(*T) (string, bool)) string {
	count, first := 0, ""
	for i := range items {
		name, is := uses(&items[i])
		if !is {
			continue
		}
		if count++; first == "" {
			first = name
		}
	}
	switch count {
	case 0:
		return ""
	case 1:
		return noun + " " + first
	}
	return fmt.Sprintf("%s, such as %s", plural.Of(count, noun), first)
}
