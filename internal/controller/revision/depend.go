// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/dependency"
)

// wait is why an approved revision is not activated yet.
type wait struct{ reason, message string }

// depend finds out whether the instances that this one depends on are ready. Only the first activation of a revision
// waits for them: what is active is healed whatever becomes of others, and what was healthy before a failure comes back.
func (c *Controller) depend(ctx context.Context, w *work) error {
	if w.newest == nil || w.newest.Status.ActivatedAt != nil || !allowed(w.newest) || w.newest.Spec.InsteadOf != nil {
		return nil
	}
	circle, err := dependency.Circle(ctx, c.Client, w.instance)
	if err != nil {
		return err
	}
	if len(circle) > 0 {
		w.waits = &wait{v1alpha1.ReasonDependencyCycle, "spec.dependsOn goes in a circle: " + strings.Join(circle, ", ") + "; remove one of its steps"}
		return nil
	}
	missing, err := dependency.Unready(ctx, c.Client, w.instance)
	if err != nil {
		return err
	}
	switch {
	case len(missing) > 0:
		w.waits = &wait{v1alpha1.ReasonDependencyNotReady, "it depends on others: " + strings.Join(missing, "; ")}
	case w.newest.Status.ProvisionalFor != "":
		w.waits = &wait{v1alpha1.ReasonDependencyNotReady, "what it depends on has just become ready; it is looked at whether it renders to the same there"}
	}
	return nil
}

// ofDependency finds the instances that depend on one, or go round with it.
func (c *Controller) ofDependency(ctx context.Context, object client.Object) []reconcile.Request {
	return dependency.Dependents(ctx, c.Client, object)
}
