// SPDX-License-Identifier: Apache-2.0

// Package notify has the receivers that a class names told of its revisions: what waits for an
// approval and what was decided. It stands beside the flow, reads the conditions that the revision controller
// writes, and keeps in the revision's status what each receiver has taken; nothing waits for it.
package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/metrics"
	"rukpak.io/rukpak/internal/notify"
)

const (
	// workers is how many events are on their way at once, all receivers together.
	workers = 16
	// DefaultFirst is the pause after the first try of what a receiver does not take. It is doubled each time.
	DefaultFirst = time.Second
	// DefaultLongest is the longest such pause.
	DefaultLongest = 5 * time.Minute
)

// Request is one receiver of a revision; none: only what was told is put in order.
type Request struct {
	Revision types.NamespacedName
	Receiver string
}

// Controller tells receivers.
type Controller struct {
	Client    client.Client
	Live      client.Reader // uncached: what was told is read anew before it is told again
	Sender    *notify.Sender
	Metrics   *metrics.Metrics
	Namespace string // of the Secrets of receivers

	First, Longest time.Duration // pauses between tries; 0 are the defaults

	lanes lanes
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	if c.First == 0 {
		c.First, c.Longest = DefaultFirst, DefaultLongest
	}
	c.lanes.first, c.lanes.longest = c.First, c.Longest
	return builder.TypedControllerManagedBy[Request](mgr).Named("notify").
		Watches(&v1alpha1.InstanceRevision{}, handler.TypedEnqueueRequestsFromMapFunc(c.ofRevision), builder.WithPredicates(present())).
		Watches(&v1alpha1.ProvisionerClass{}, handler.TypedEnqueueRequestsFromMapFunc(c.ofClass), builder.WithPredicates(otherReceivers())).
		WithOptions(controller.TypedOptions[Request]{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[Request](c.First, c.Longest),
		}).
		Complete(reconcile.TypedFunc[Request](c.Reconcile))
}

func present() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }}
}

// otherReceivers passes classes whose receivers are others now.
func otherReceivers() predicate.Predicate {
	some := func(object client.Object) bool { return len(receivers(object)) > 0 }
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return some(e.Object) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return some(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return !slices.Equal(receivers(e.ObjectOld), receivers(e.ObjectNew)) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func receivers(of client.Object) []v1alpha1.ApprovalNotice {
	if class, ok := of.(*v1alpha1.ProvisionerClass); ok {
		return class.Spec.Approval.Notify
	}
	return nil
}

// receivers of a revision now: those of its class. A class that is gone has none.
func (c *Controller) receivers(ctx context.Context, of *v1alpha1.InstanceRevision) ([]v1alpha1.ApprovalNotice, error) {
	class := &v1alpha1.ProvisionerClass{}
	err := c.Client.Get(ctx, types.NamespacedName{Name: of.Spec.ProvisionerClassName}, class)
	return class.Spec.Approval.Notify, client.IgnoreNotFound(err)
}

func (c *Controller) ofRevision(ctx context.Context, object client.Object) []Request {
	of, ok := object.(*v1alpha1.InstanceRevision)
	if !ok {
		return nil
	}
	all, err := c.receivers(ctx, of)
	if err != nil {
		return nil // the cache ends
	}
	return due(of, all)
}

func (c *Controller) ofClass(ctx context.Context, object client.Object) (out []Request) {
	var list v1alpha1.InstanceRevisionList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache ends
	}
	for i := range list.Items {
		if list.Items[i].Spec.ProvisionerClassName == object.GetName() {
			out = append(out, c.ofRevision(ctx, &list.Items[i])...)
		}
	}
	return out
}

// due are the receivers that are to be told of a revision: none of one of which everything is told, so it costs nothing.
func due(of *v1alpha1.InstanceRevision, all []v1alpha1.ApprovalNotice) (out []Request) {
	name := client.ObjectKeyFromObject(of)
	for _, receiver := range all {
		if len(notify.Owed(of, receiver, time.Now())) > 0 {
			out = append(out, Request{name, receiver.Name})
		}
	}
	if len(out) == 0 && !inOrder(of, all) {
		out = append(out, Request{Revision: name})
	}
	return out
}

// Reconcile tells one receiver of one revision.
func (c *Controller) Reconcile(ctx context.Context, request Request) (ctrl.Result, error) {
	of := &v1alpha1.InstanceRevision{}
	if err := c.Client.Get(ctx, request.Revision, of); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	all, err := c.receivers(ctx, of)
	if err != nil || !slices.ContainsFunc(due(of, all), func(r Request) bool { return r == request }) {
		return ctrl.Result{}, err
	}
	// The cache may not know yet what was told a moment ago.
	if err := c.Live.Get(ctx, request.Revision, of); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	at := slices.IndexFunc(all, func(r v1alpha1.ApprovalNotice) bool { return r.Name == request.Receiver })
	if at < 0 {
		return result(c.record(ctx, of, all, nil))
	}
	return c.tell(ctx, of, all, all[at])
}

// tell sends what a receiver does not know yet, unless it has others to wait for.
func (c *Controller) tell(ctx context.Context, of *v1alpha1.InstanceRevision, all []v1alpha1.ApprovalNotice, receiver v1alpha1.ApprovalNotice) (ctrl.Result, error) {
	owed := notify.Owed(of, receiver, time.Now())
	if len(owed) == 0 {
		return result(c.record(ctx, of, all, nil))
	}
	done := &outcome{receiver: receiver}
	leave, wait, resting := c.lanes.enter(receiver.URL)
	if leave == nil {
		if resting == nil {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
		done.problem = resting.Error()
		if err := c.record(ctx, of, all, done); err != nil {
			return result(err)
		}
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	err := c.send(ctx, of, owed, done)
	if ctx.Err() != nil { // the manager ends: that is nobody's fault
		leave(nil)
		err = ctx.Err()
	} else {
		leave(err)
	}
	if err != nil {
		done.problem = err.Error()
		err = fmt.Errorf("receiver %q of class %q: %w", receiver.Name, of.Spec.ProvisionerClassName, err)
	}
	if ctx.Err() != nil {
		return ctrl.Result{}, err
	}
	if failed := c.record(ctx, of, all, done); failed != nil {
		return result(failed)
	}
	return ctrl.Result{}, err
}

// send posts events one after the other, and notes which were taken.
func (c *Controller) send(ctx context.Context, of *v1alpha1.InstanceRevision, owed []notify.State, done *outcome) error {
	credentials, err := c.credentials(ctx, done.receiver)
	if err != nil {
		c.Metrics.Notified(metrics.Failed)
		return err
	}
	for _, state := range owed {
		content, err := notify.Event(of, state)
		if err == nil {
			err = c.Sender.Send(ctx, done.receiver.URL, credentials, content)
		}
		if err != nil {
			how := metrics.Failed
			if _, answered := errors.AsType[*notify.StatusError](err); answered {
				how = metrics.Refused
			}
			c.Metrics.Notified(how)
			return err
		}
		c.Metrics.Notified(metrics.Succeeded)
		done.told = append(done.told, state.Key)
	}
	return nil
}

// result lets what another writer or the end of a revision brings about pass.
func result(err error) (ctrl.Result, error) {
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	return ctrl.Result{}, err
}
