// SPDX-License-Identifier: Apache-2.0

// Package certificate keeps the serving certificates that the objects of active revisions ask for: it makes their Secrets,
// fills in each caBundle, and renews both in time.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it stands
// beside the revision controller: that one applies what was approved, and this one adds what no approved bytes can hold. It
// writes as the instance's service account and takes no field from the other's field manager, so that neither undoes what the
// other did. The Secret alone is its memory. Removing is the revision controller's: it takes the Secrets for objects of a revision.
package certificate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/certificate"
	"rukpak.io/rukpak/internal/controller/pace"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/watch"
	"rukpak.io/rukpak/provisioner"
)

// FieldManager is the name under which the API server knows what is written here.
const FieldManager = "rukpak-certificates"

// Accounts gives clients that act as service accounts.
type Accounts interface {
	Client(namespace, account string) (client.Client, error)
}

// Manifests reads the manifests of revisions.
type Manifests interface {
	Phases(ctx context.Context, revision *v1alpha1.InstanceRevision) ([]provisioner.Phase, error)
}

// Controller reconciles the certificates of BundleInstances.
type Controller struct {
	Client    client.Client // cached reads
	Recorder  events.EventRecorder
	Accounts  Accounts
	Manifests Manifests
	Lifetime  time.Duration    // of certificates; 0 means certificate.Lifetime
	Now       func() time.Time // nil means time.Now
	Workers   int

	once  sync.Once
	asked *lru.Cache // what each revision asks for, by UID; most ask for nothing
}

// maxAsked bounds the revisions of which it is remembered what they ask for. What is forgotten is read again.
const maxAsked = 50_000

// asks is what a revision asks for.
type asks struct {
	requests []certificate.Request
	problems []string
}

// Register adds the controller to a manager. An event about any object of an instance makes it look again, so that what
// somebody changes or removes is put right at once.
func (c *Controller) Register(mgr ctrl.Manager, watcher *watch.Watcher) error {
	return ctrl.NewControllerManagedBy(mgr).Named("certificate").
		For(&v1alpha1.BundleInstance{}).
		Watches(&v1alpha1.InstanceRevision{}, handler.EnqueueRequestsFromMapFunc(ofRevision)).
		WatchesRawSource(watcher.Source(ofObject)).
		WithOptions(pace.Options(c.Workers)).
		Complete(reconcile.AsReconciler(mgr.GetClient(), c))
}

func ofRevision(_ context.Context, object client.Object) []reconcile.Request {
	revision, ok := object.(*v1alpha1.InstanceRevision)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: revision.Namespace, Name: revision.Spec.Instance.Name}}}
}

func ofObject(event watch.Event) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: event.Owner.Namespace, Name: event.Owner.Name}}}
}

// Reconcile looks after the certificates of one instance.
func (c *Controller) Reconcile(ctx context.Context, instance *v1alpha1.BundleInstance) (ctrl.Result, error) {
	if !instance.DeletionTimestamp.IsZero() || instance.Spec.Suspend {
		return ctrl.Result{}, nil
	}
	revision, err := c.current(ctx, instance)
	if err != nil || revision == nil {
		return ctrl.Result{}, err
	}
	asked, err := c.asksOf(ctx, revision)
	if err != nil || len(asked.requests)+len(asked.problems) == 0 {
		return ctrl.Result{}, err
	}
	for _, problem := range asked.problems {
		c.warn(revision, problem)
	}
	actor, err := c.Accounts.Client(revision.Namespace, revision.Spec.ServiceAccountName)
	if err != nil {
		return ctrl.Result{}, err
	}
	owner := ownership.Owner{UID: instance.UID, Namespace: instance.Namespace, Name: instance.Name}
	var next time.Duration
	var failed error
	for _, request := range asked.requests {
		keeper := &keeper{controller: c, actor: actor, owner: owner, revision: revision, request: request}
		pause, err := keeper.keep(ctx)
		switch {
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
			pause = pace.Conflict
		case err != nil:
			c.warn(revision, "Secret "+request.Secret.String()+": "+err.Error())
			failed = errors.Join(failed, err)
			continue
		}
		if next == 0 || pause < next {
			next = pause
		}
	}
	return ctrl.Result{RequeueAfter: next}, failed
}

// current is the newest revision that is, or is being, activated. One that is made while its Deployments start needs its
// Secrets by then.
func (c *Controller) current(ctx context.Context, instance *v1alpha1.BundleInstance) (*v1alpha1.InstanceRevision, error) {
	var list v1alpha1.InstanceRevisionList
	err := c.Client.List(ctx, &list, client.InNamespace(instance.Namespace), client.MatchingLabels{v1alpha1.LabelInstance: instance.Name})
	if err != nil {
		return nil, err
	}
	list.Items = slices.DeleteFunc(list.Items, func(revision v1alpha1.InstanceRevision) bool {
		return revision.Spec.Instance.UID != instance.UID || revision.Status.ActivatedAt == nil ||
			meta.IsStatusConditionTrue(revision.Status.Conditions, v1alpha1.ConditionSuperseded)
	})
	if len(list.Items) == 0 {
		return nil, nil //nolint:nilnil // there is none, and that is no fault
	}
	newest := slices.MaxFunc(list.Items, func(a, b v1alpha1.InstanceRevision) int { return cmp.Compare(a.Spec.Number, b.Spec.Number) })
	return &newest, nil
}

// asksOf reads the manifests of a revision once: they never change.
func (c *Controller) asksOf(ctx context.Context, revision *v1alpha1.InstanceRevision) (*asks, error) {
	if found, known := c.memory().Get(revision.UID); known {
		return found.(*asks), nil //nolint:forcetypeassert // nothing else is put into it
	}
	phases, err := c.Manifests.Phases(ctx, revision)
	if err != nil {
		return nil, err
	}
	asked := &asks{}
	asked.requests, asked.problems = certificate.Requests(phases)
	c.memory().Add(revision.UID, asked)
	return asked, nil
}

func (c *Controller) warn(revision *v1alpha1.InstanceRevision, message string) {
	c.Recorder.Eventf(revision, nil, corev1.EventTypeWarning, v1alpha1.ReasonCertificateFailed, "Certify", "%s", status.Note(message))
}

func (c *Controller) memory() *lru.Cache {
	c.once.Do(func() { c.asked = lru.New(maxAsked) })
	return c.asked
}

func (c *Controller) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}
