// SPDX-License-Identifier: Apache-2.0

// Package class says of each ProvisionerClass whether it can be used: its
// provisioner is served here and accepts the parameters. It also answers for
// the other controllers which class a name means and who may use it.
package class

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/provisioner"
)

// Controller sets the Ready condition of ProvisionerClasses.
type Controller struct {
	Client       client.Client
	Provisioners map[string]provisioner.Provisioner // by ID
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("class").
		For(&v1alpha1.ProvisionerClass{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), c))
}

// Reconcile judges one class.
func (c *Controller) Reconcile(ctx context.Context, class *v1alpha1.ProvisionerClass) (ctrl.Result, error) {
	before := class.DeepCopy()
	reason, message := c.judge(ctx, class)
	state := metav1.ConditionFalse
	if reason == v1alpha1.ReasonServed {
		state = metav1.ConditionTrue
	}
	class.Status.ObservedGeneration = class.Generation
	conditions := status.Conditions{List: &class.Status.Conditions, Generation: class.Generation}
	conditions.Set(v1alpha1.ConditionReady, state, reason, message)
	return ctrl.Result{}, status.Patch(ctx, c.Client, class, before)
}

func (c *Controller) judge(ctx context.Context, class *v1alpha1.ProvisionerClass) (reason, message string) {
	served, ok := c.Provisioners[class.Spec.Provisioner]
	if !ok {
		return v1alpha1.ReasonProvisionerNotFound, fmt.Sprintf("nobody serves the provisioner %q; this manager serves %s",
			class.Spec.Provisioner, strings.Join(c.served(), ", "))
	}
	if err := served.Validate(ctx, nil, Parameters(class)); err != nil {
		return v1alpha1.ReasonInvalidParameters, err.Error()
	}
	return v1alpha1.ReasonServed, fmt.Sprintf("the provisioner %s is served", class.Spec.Provisioner)
}

func (c *Controller) served() []string {
	var ids []string
	for id := range c.Provisioners {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Parameters of a class, as its provisioner gets them; nil if there are none.
func Parameters(class *v1alpha1.ProvisionerClass) json.RawMessage {
	if class.Spec.Parameters == nil {
		return nil
	}
	return class.Spec.Parameters.Raw
}
