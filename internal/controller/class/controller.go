// SPDX-License-Identifier: Apache-2.0

// Package class says of each ProvisionerClass whether it can be used: its
// provisioner is served here and accepts the parameters, and the rules of its
// approval policy compile. It also answers for
// the other controllers which class a name means and who may use it.
package class

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval/policy"
	"rukpak.io/rukpak/internal/controller/pace"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/provisioners/remote"
	"rukpak.io/rukpak/provisioner"
)

// Provisioners finds the provisioners.
type Provisioners interface {
	// Find gives the provisioner of an ID, also if nobody serves it: then it says so when it is asked, with a
	// *remote.NobodyError. One that is not part of the manager answers with a *remote.PendingError before it has judged.
	Find(id string) provisioner.Provisioner
	// OnChange has wake called for a provisioner that answers otherwise now. wake does not block.
	OnChange(wake func(id string))
}

// Controller sets the Ready condition of ProvisionerClasses.
type Controller struct {
	Client       client.Client
	Provisioners Provisioners
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("class").
		For(&v1alpha1.ProvisionerClass{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Func(c.ofProvisioner)).
		WithOptions(pace.Options(1)).
		Complete(reconcile.AsReconciler(mgr.GetClient(), c))
}

// ofProvisioner has the classes of a provisioner judged again.
func (c *Controller) ofProvisioner(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	c.Provisioners.OnChange(func(id string) {
		var list v1alpha1.ProvisionerClassList
		if err := c.Client.List(ctx, &list); err != nil {
			return // the cache ends
		}
		for i := range list.Items {
			if list.Items[i].Spec.Provisioner == id {
				queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
	})
	return nil
}

// Reconcile judges one class.
func (c *Controller) Reconcile(ctx context.Context, class *v1alpha1.ProvisionerClass) (ctrl.Result, error) {
	before := class.DeepCopy()
	judged := class.Status.ObservedGeneration == class.Generation
	conditions := status.Conditions{List: &class.Status.Conditions, Generation: class.Generation}
	if err := checkPolicy(class); err != nil {
		conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonInvalidApprovalPolicy, err.Error())
		class.Status.ObservedGeneration = class.Generation
		return ctrl.Result{}, status.Patch(ctx, c.Client, class, before) // no provisioner can put that right
	}
	err := c.Provisioners.Find(class.Spec.Provisioner).Validate(ctx, nil, Parameters(class))
	var nobody *remote.NobodyError
	var pending *remote.PendingError
	switch {
	case err == nil:
		conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonServed, fmt.Sprintf("the provisioner %s is served", class.Spec.Provisioner))
	case errors.As(err, &nobody):
		conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonProvisionerNotFound, err.Error())
		err = nil // whoever serves it makes himself known
	case provisioner.IsInputError(err):
		conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonInvalidParameters, err.Error())
		err = nil
	case errors.As(err, &pending) && judged:
		return ctrl.Result{}, nil // what was said stands until there is an answer, which makes itself known
	case errors.As(err, &pending):
		conditions.Unknown(v1alpha1.ConditionReady, v1alpha1.ReasonRendering, err.Error())
		err = nil
	case judged:
		return ctrl.Result{}, err
	default:
		conditions.Unknown(v1alpha1.ConditionReady, v1alpha1.ReasonTransientError, err.Error())
	}
	class.Status.ObservedGeneration = class.Generation
	if patchErr := status.Patch(ctx, c.Client, class, before); patchErr != nil {
		return ctrl.Result{}, patchErr
	}
	return ctrl.Result{}, err
}

// checkPolicy says what is wrong with the rules of a class, in one line: for whoever writes the class, and long before a
// revision waits for a verdict.
func checkPolicy(class *v1alpha1.ProvisionerClass) error {
	if class.Spec.Approval.Mode != v1alpha1.ApprovalByPolicy {
		return nil
	}
	_, err := policy.Compile(class.Spec.Approval.Rules)
	if err == nil {
		return nil
	}
	const most = 16 << 10 // a condition takes 32 KiB
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "... (cut)"
	}
	return errors.New(text)
}

// Parameters of a class, as its provisioner gets them; nil if there are none.
func Parameters(class *v1alpha1.ProvisionerClass) json.RawMessage {
	if class.Spec.Parameters == nil {
		return nil
	}
	return class.Spec.Parameters.Raw
}
