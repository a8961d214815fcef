// SPDX-License-Identifier: Apache-2.0

// Package instance carries a BundleInstance to the plan of its newest
// revision: it makes the Bundle, waits for the content, renders it, makes an
// InstanceRevision for every new pair of content and configuration, and plans
// it. What is approved becomes active in package revision; this package tells
// in the instance's status how far that has come.
package instance

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/pace"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/health/check"
	"rukpak.io/rukpak/provisioner"
)

// Controller reconciles BundleInstances up to the plan.
type Controller struct {
	Client       client.Client // cached reads
	Live         client.Reader // uncached reads, for Secrets and service accounts
	Recorder     events.EventRecorder
	Provisioners Provisioners
	Contents     Contents
	Planner      Planner
	Scopes       Scopes
	Accounts     Accounts
	Facts        Facts
	Follower     Follower
	Workers      int // for the instances of one namespace; those of all have twice as many

	turns *pace.Turns // to render; nil: no instance waits for another

	looked   sync.Map // UID of an instance -> *look
	followed sync.Map // UID of an instance -> *round

	watching sync.Mutex
	watch    func(kind string) error
	toWatch  []string // kinds that configurations may be in, as long as none is

	checks check.Book
}

// work is what the steps of one reconcile hand to one another.
type work struct {
	instance  *v1alpha1.BundleInstance
	revisions []v1alpha1.InstanceRevision // of this instance, by number
	pins      []v1alpha1.ResolvedSource   // of the bundle, if the sources are followed
	bundle    *v1alpha1.Bundle
	class     *v1alpha1.ProvisionerClass
	account   string               // name of the service account
	config    json.RawMessage      // of all parts, nil for none
	places    []provisioner.Origin // of the content, if the provisioner looks at them
	current   *v1alpha1.InstanceRevision
	requeue   time.Duration

	rolledBack bool   // the newest revision is there in place of the wanted one, which failed
	stuck      string // why the wanted one, which failed, has to stay
}

// again has the instance looked at after a pause, or earlier if a step before
// asked for that. No pause asks for nothing.
func (w *work) again(pause time.Duration) {
	if pause > 0 && (w.requeue == 0 || pause < w.requeue) {
		w.requeue = pause
	}
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	workers := 2 * c.Workers
	c.turns = &pace.Turns{Workers: workers}
	built, err := ctrl.NewControllerManagedBy(mgr).Named("instance").
		For(&v1alpha1.BundleInstance{}).
		Watches(&v1alpha1.InstanceRevision{}, handler.EnqueueRequestsFromMapFunc(c.ofRevision)).
		Watches(&v1alpha1.Bundle{}, handler.EnqueueRequestsFromMapFunc(c.ofBundle)).
		Watches(&v1alpha1.ProvisionerClass{}, handler.EnqueueRequestsFromMapFunc(c.ofClass)).
		Watches(&v1alpha1.BundleInstance{}, handler.EnqueueRequestsFromMapFunc(c.ofDependency)).
		WatchesRawSource(source.Func(c.ofProvisioner)).
		WithOptions(pace.Options(workers)).
		Build(reconcile.AsReconciler(mgr.GetClient(), c))
	if err != nil {
		return err
	}
	c.watch, c.toWatch = c.watchKind(mgr.GetCache(), built.Watch), []string{"ConfigMap", "Secret"}
	return nil
}

// Reconcile brings one instance as far as it can and says so in its status.
func (c *Controller) Reconcile(ctx context.Context, instance *v1alpha1.BundleInstance) (ctrl.Result, error) {
	if !instance.DeletionTimestamp.IsZero() {
		c.followed.Delete(instance.UID)
		c.looked.Delete(instance.UID)
		c.checks.Forget(instance.UID)
		return ctrl.Result{}, nil // package revision tears down and tells how far it is
	}
	before := instance.DeepCopy()
	w := &work{instance: instance}
	err := c.advance(ctx, w)

	if errors.Is(err, errTurn) { // it is woken, mostly before that
		return ctrl.Result{Requeue: true}, nil //nolint:staticcheck // RequeueAfter would forget its failures
	}
	var held *Hold
	if err != nil && !errors.As(err, &held) {
		held = &Hold{Reason: v1alpha1.ReasonTransientError, Message: err.Error(), Retry: true}
	}
	if lostRace(err) {
		return ctrl.Result{RequeueAfter: pace.Conflict}, nil
	}
	summarise(w, held)
	if patchErr := status.Patch(ctx, c.Client, instance, before); patchErr != nil {
		return retryConflict(patchErr) // and nothing is told, or it would be told again then
	}
	c.tell(before, instance)
	if held != nil && held.Retry {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: w.requeue}, nil
}

// advance runs the steps until one cannot go on.
func (c *Controller) advance(ctx context.Context, w *work) error {
	steps := []func(context.Context, *work) error{
		c.listRevisions,
		c.mayWork,
		c.checkHealthChecks,
		c.follow,
		c.ensureBundle,
		c.findClass,
		c.findAccount,
		c.findConfig,
		c.ensureRevision,
		c.ensurePlan,
		c.trimHistory,
	}
	for _, step := range steps {
		if err := step(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// checkHealthChecks stops for an instance of which nobody could tell whether it is healthy.
func (c *Controller) checkHealthChecks(_ context.Context, w *work) error {
	if _, err := c.checks.Of(w.instance); err != nil {
		return &Hold{Reason: v1alpha1.ReasonInvalidHealthCheck, Message: err.Error()}
	}
	return nil
}

// mayWork stops for an instance that is suspended.
func (c *Controller) mayWork(_ context.Context, w *work) error {
	if w.instance.Spec.Suspend {
		return &Hold{Reason: v1alpha1.ReasonSuspended, Message: "spec.suspend is true: nothing is fetched, planned, activated or healed"}
	}
	return nil
}
