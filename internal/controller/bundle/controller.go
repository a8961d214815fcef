// SPDX-License-Identifier: Apache-2.0

// Package bundle carries a Bundle from its source to the content store: it
// pins the sources to digests, records them, and only then fetches. What is
// active does not depend on it: a source that is gone changes nothing but the
// bundle's own status.
package bundle

import (
	"context"
	"errors"

	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/controller/class"
	"rukpak.io/rukpak/internal/controller/origin"
	"rukpak.io/rukpak/internal/controller/pace"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/unpack"
	"rukpak.io/rukpak/internal/verify"
)

// Sources opens sources with the credentials that belong to them.
type Sources interface {
	// Open gives a source and the name of its kind; see origin.Opener.
	Open(ctx context.Context, spec v1alpha1.BundleSource, at origin.Place) (source.Source, string, error)
	// Verifier makes what judges signatures; see origin.Opener.
	Verifier(ctx context.Context, asked v1alpha1.Verification, namespace, field string) (verify.Verifier, error)
}

// Contents is what the store has.
type Contents interface {
	// Has tells whether the whole content is in the store.
	Has(tree digest.Digest) bool
	// Begin opens a session that writes to it.
	Begin() (*content.Session, error)
}

// Metrics counts what is fetched.
type Metrics interface {
	Fetched(kind string, bytes int64, err error)
}

// Controller reconciles Bundles.
type Controller struct {
	Client   client.Client
	Recorder events.EventRecorder
	Sources  Sources
	Contents Contents
	Shared   Shared // nil if there is none
	Metrics  Metrics
	Limits   unpack.Limits             // on the content of one bundle
	Lost     <-chan event.GenericEvent // bundles whose content is found missing
	Workers  int                       // for the bundles of one namespace; those of all have twice as many

	turns *pace.Turns // nil: no bundle waits for another
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	workers := 2 * c.Workers
	woken := make(chan event.GenericEvent, 1024)
	c.turns = &pace.Turns{Workers: workers, Wake: func(name types.NamespacedName) {
		bundle := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
		select {
		case woken <- event.GenericEvent{Object: bundle}:
		default: // it is tried again later
		}
	}}
	return ctrl.NewControllerManagedBy(mgr).Named("bundle").
		For(&v1alpha1.Bundle{}).
		Watches(&v1alpha1.ProvisionerClass{}, handler.EnqueueRequestsFromMapFunc(c.waitingForClass)).
		WatchesRawSource(ctrlsource.Channel(c.Lost, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(ctrlsource.Channel(woken, &handler.EnqueueRequestForObject{})).
		WithOptions(pace.Options(workers)).
		Complete(reconcile.AsReconciler(mgr.GetClient(), c))
}

// Reconcile brings the content of one bundle into the store.
func (c *Controller) Reconcile(ctx context.Context, bundle *v1alpha1.Bundle) (ctrl.Result, error) {
	if !bundle.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if c.settled(ctx, bundle) {
		if c.sharedAsSaid(bundle) {
			return ctrl.Result{}, nil
		}
		return c.share(ctx, bundle)
	}
	done, ok := c.turns.Take(client.ObjectKeyFromObject(bundle))
	if !ok {
		// It is woken, mostly before that. To say so keeps the count of its failures.
		return ctrl.Result{Requeue: true}, nil //nolint:staticcheck // RequeueAfter would forget them
	}
	defer done()
	return c.bring(ctx, bundle)
}

// bring fetches what is missing and says how far that came.
func (c *Controller) bring(ctx context.Context, bundle *v1alpha1.Bundle) (ctrl.Result, error) {
	before := bundle.DeepCopy()
	err := c.advance(ctx, bundle)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: pace.Conflict}, nil
	}
	retry := c.report(bundle, err)
	c.tell(before, bundle)
	before.SetResourceVersion(bundle.GetResourceVersion()) // resolve may have written a part of the status
	if err := status.Patch(ctx, c.Client, bundle, before); err != nil {
		if apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: pace.Conflict}, nil
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err == nil {
		return c.share(ctx, bundle)
	}
	if !retry {
		return ctrl.Result{}, nil
	}
	if failed, ok := errors.AsType[*source.Error](err); ok && failed.After > 0 {
		return ctrl.Result{RequeueAfter: failed.After}, nil
	}
	return ctrl.Result{}, err
}

// settled is true when there is nothing to do: the content is in the store, the
// status says so, and its signatures were judged as the class asks now. What was
// ready before a class was deleted stays so.
func (c *Controller) settled(ctx context.Context, bundle *v1alpha1.Bundle) bool {
	if !meta.IsStatusConditionTrue(bundle.Status.Conditions, v1alpha1.ConditionReady) ||
		bundle.Status.Content == nil || !c.Contents.Has(digest.Digest(bundle.Status.Content.Digest)) {
		return false
	}
	class := &v1alpha1.ProvisionerClass{}
	err := c.Client.Get(ctx, client.ObjectKey{Name: bundle.Status.ProvisionerClassName}, class)
	return err != nil || judged(bundle, class)
}

func (c *Controller) advance(ctx context.Context, bundle *v1alpha1.Bundle) error {
	found, err := class.Resolve(ctx, c.Client, firstOf(bundle.Status.ProvisionerClassName, bundle.Spec.ProvisionerClassName), bundle.Namespace)
	if err != nil {
		return err
	}
	had := bundle.Status.ProvisionerClassName
	bundle.Status.ProvisionerClassName = found.Name
	session, err := c.Contents.Begin()
	if err != nil {
		return err
	}
	defer session.Close()
	fetch := &fetch{
		controller: c, bundle: bundle, class: found, had: had,
		to: source.Destination{Session: session, Budget: unpack.NewBudget(c.Limits)},
	}
	if fetch.restore(ctx) {
		return nil
	}
	return fetch.explain(fetch.run(ctx))
}

// report turns the outcome into conditions and says whether to try again.
func (c *Controller) report(bundle *v1alpha1.Bundle, err error) (retry bool) {
	bundle.Status.ObservedGeneration = bundle.Generation
	conditions := conditionsOf(bundle)
	if err == nil {
		message := contentMessage(bundle.Status.Content)
		conditions.True(v1alpha1.ConditionResolved, v1alpha1.ReasonResolved, resolvedMessage(bundle))
		conditions.True(v1alpha1.ConditionUnpacked, v1alpha1.ReasonUnpacked, message)
		conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonUnpacked, message)
		return false
	}
	reason, retry := classify(err)
	if len(bundle.Status.Sources) == 0 {
		conditions.False(v1alpha1.ConditionResolved, reason, err.Error())
	}
	if bundle.Status.Content == nil || !meta.IsStatusConditionFalse(bundle.Status.Conditions, v1alpha1.ConditionVerified) {
		conditions.False(v1alpha1.ConditionUnpacked, reason, err.Error())
	}
	conditions.False(v1alpha1.ConditionReady, reason, err.Error())
	return retry
}

func classify(err error) (reason string, retry bool) {
	var unusable *class.UnusableError
	if errors.As(err, &unusable) {
		// The labels of namespaces are not watched here.
		return unusable.Reason, unusable.Reason == v1alpha1.ReasonClassNotAllowed
	}
	return origin.Classify(err)
}

// tell makes an Event of each change of the Ready condition's status or reason.
func (c *Controller) tell(before, after *v1alpha1.Bundle) {
	old := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady)
	ready := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || old != nil && old.Status == ready.Status && old.Reason == ready.Reason {
		return
	}
	kind := corev1.EventTypeWarning
	if ready.Status == metav1.ConditionTrue {
		kind = corev1.EventTypeNormal
	}
	c.Recorder.Eventf(after, nil, kind, ready.Reason, "Unpack", "%s", status.Note(ready.Message))
}

// waitingForClass finds the bundles that a change of a class is about: those that
// wait for one, and those whose signatures were judged as it asked before.
func (c *Controller) waitingForClass(ctx context.Context, changed client.Object) []reconcile.Request {
	var list v1alpha1.BundleList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	class, _ := changed.(*v1alpha1.ProvisionerClass)
	var requests []reconcile.Request
	for i := range list.Items {
		bundle := &list.Items[i]
		ready := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil {
			continue
		}
		waits := ready.Reason == v1alpha1.ReasonClassNotFound || ready.Reason == v1alpha1.ReasonClassNotAllowed
		anew := class != nil && bundle.Status.ProvisionerClassName == class.Name && !judged(bundle, class)
		if waits || anew {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bundle)})
		}
	}
	return requests
}

func conditionsOf(bundle *v1alpha1.Bundle) status.Conditions {
	return status.Conditions{List: &bundle.Status.Conditions, Generation: bundle.Generation}
}

func firstOf(names ...string) string {
	for _, name := range names {
		if name != "" {
			return name
		}
	}
	return ""
}
