// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rukpak.io/rukpak/api/v1alpha1"
)

// wait is why an approved revision is not activated yet.
type wait struct{ reason, message string }

// depend finds out whether the instances that this one depends on are ready. Only the first activation of a revision
// waits for them: what is active is healed whatever becomes of others.
func (c *Controller) depend(ctx context.Context, w *work) error {
	if w.newest == nil || w.newest.Status.ActivatedAt != nil || len(w.instance.Spec.DependsOn) == 0 || !allowed(w.newest) {
		return nil
	}
	circle, err := c.circle(ctx, w.instance, []string{w.instance.Name}, map[string]bool{})
	if err != nil {
		return err
	}
	if len(circle) > 0 {
		w.waits = &wait{v1alpha1.ReasonDependencyCycle, "spec.dependsOn goes in a circle: " + strings.Join(circle, ", ") + "; remove one of its steps"}
		return nil
	}
	var missing []string
	for _, dependency := range w.instance.Spec.DependsOn {
		why, err := c.unready(ctx, w.instance.Namespace, dependency.Name)
		if err != nil {
			return err
		}
		if why != "" {
			missing = append(missing, fmt.Sprintf("BundleInstance %q %s", dependency.Name, why))
		}
	}
	if len(missing) > 0 {
		w.waits = &wait{v1alpha1.ReasonDependencyNotReady, "it depends on others: " + strings.Join(missing, "; ")}
	}
	return nil
}

// unready says why an instance is not ready, or "".
func (c *Controller) unready(ctx context.Context, namespace, name string) (string, error) {
	found, err := c.named(ctx, namespace, name)
	if err != nil || found == nil {
		return "does not exist", err
	}
	ready := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case !found.DeletionTimestamp.IsZero():
		return "is being deleted", nil
	case ready == nil || ready.ObservedGeneration != found.Generation:
		return "is being looked at", nil
	case ready.Status != "True":
		return "is not ready: " + ready.Reason, nil
	}
	return "", nil
}

func (c *Controller) named(ctx context.Context, namespace, name string) (*v1alpha1.BundleInstance, error) {
	found := &v1alpha1.BundleInstance{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that it is absent is an answer
	}
	return found, err
}

// circle is the way from an instance back to the one that way begins with, or nil. Each instance is looked at once.
func (c *Controller) circle(ctx context.Context, instance *v1alpha1.BundleInstance, way []string, seen map[string]bool) ([]string, error) {
	for _, dependency := range instance.Spec.DependsOn {
		step := append(way[:len(way):len(way)], dependency.Name)
		if dependency.Name == way[0] {
			return step, nil
		}
		if seen[dependency.Name] {
			continue
		}
		seen[dependency.Name] = true
		next, err := c.named(ctx, instance.Namespace, dependency.Name)
		if err != nil {
			return nil, err
		}
		if next == nil {
			continue
		}
		if found, err := c.circle(ctx, next, step, seen); err != nil || found != nil {
			return found, err
		}
	}
	return nil, nil
}

// ofDependency finds the instances that depend on one, or go round with it.
func (c *Controller) ofDependency(ctx context.Context, object client.Object) []reconcile.Request {
	var list v1alpha1.BundleInstanceList
	if err := c.Client.List(ctx, &list, client.InNamespace(object.GetNamespace())); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		for _, dependency := range list.Items[i].Spec.DependsOn {
			if dependency.Name == object.GetName() {
				requests = append(requests, request(list.Items[i].Namespace, list.Items[i].Name)...)
			}
		}
	}
	return requests
}
