// SPDX-License-Identifier: Apache-2.0

// Package dependency says which instances one waits for. Package instance renders again what was rendered before they
// were ready, and package revision activates nothing before they are.
package dependency

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rukpak.io/rukpak/api/v1alpha1"
)

// Unready says of each instance in dependsOn that is not ready what it lacks, in that order.
func Unready(ctx context.Context, c client.Reader, instance *v1alpha1.BundleInstance) ([]string, error) {
	var missing []string
	for _, dependency := range instance.Spec.DependsOn {
		why, err := unready(ctx, c, instance.Namespace, dependency.Name)
		if err != nil {
			return nil, err
		}
		if why != "" {
			missing = append(missing, fmt.Sprintf("BundleInstance %q %s", dependency.Name, why))
		}
	}
	return missing, nil
}

// unready says why an instance is not ready, or "".
func unready(ctx context.Context, c client.Reader, namespace, name string) (string, error) {
	found, err := named(ctx, c, namespace, name)
	if err != nil || found == nil {
		return "does not exist", err
	}
	ready := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case !found.DeletionTimestamp.IsZero():
		return "is being deleted", nil
	case ready == nil || ready.ObservedGeneration != found.Generation:
		return "is being looked at", nil
	case ready.Status != metav1.ConditionTrue:
		return "is not ready: " + ready.Reason, nil
	}
	return "", nil
}

func named(ctx context.Context, c client.Reader, namespace, name string) (*v1alpha1.BundleInstance, error) {
	found := &v1alpha1.BundleInstance{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that it is absent is an answer
	}
	return found, err
}

// Circle is the way from an instance back to itself, with its name at both ends, or nil.
func Circle(ctx context.Context, c client.Reader, instance *v1alpha1.BundleInstance) ([]string, error) {
	return circle(ctx, c, instance, []string{instance.Name}, map[string]bool{})
}

// circle is the way from an instance back to the one that way begins with, or nil. Each instance is looked at once.
func circle(ctx context.Context, c client.Reader, instance *v1alpha1.BundleInstance, way []string, seen map[string]bool) ([]string, error) {
	for _, dependency := range instance.Spec.DependsOn {
		step := append(way[:len(way):len(way)], dependency.Name)
		if dependency.Name == way[0] {
			return step, nil
		}
		if seen[dependency.Name] {
			continue
		}
		seen[dependency.Name] = true
		next, err := named(ctx, c, instance.Namespace, dependency.Name)
		if err != nil {
			return nil, err
		}
		if next == nil {
			continue
		}
		if found, err := circle(ctx, c, next, step, seen); err != nil || found != nil {
			return found, err
		}
	}
	return nil, nil
}

// Dependents finds the instances that wait for one, to be looked at when that one changes.
func Dependents(ctx context.Context, c client.Reader, on client.Object) []reconcile.Request {
	var list v1alpha1.BundleInstanceList
	// It is asked at each change of each instance: to copy all of them each time would grow with the square of their number.
	if err := c.List(ctx, &list, client.InNamespace(on.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		for _, dependency := range list.Items[i].Spec.DependsOn {
			if dependency.Name == on.GetName() {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
	}
	return requests
}
