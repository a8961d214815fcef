// SPDX-License-Identifier: Apache-2.0

// Package revision carries an instance from approval to watch: it counts the
// approvals of the newest revision, activates what is approved, prunes what a
// newer revision no longer has, judges health, undoes drift, and tears all
// down when the instance is deleted. It works on one instance at a time, never
// on two revisions of one instance at once, so that handover needs no locks.
package revision

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval/policy"
	"rukpak.io/rukpak/internal/controller/pace"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/health/check"
	"rukpak.io/rukpak/internal/metrics"
)

// Controller reconciles the revisions of BundleInstances from approval on.
type Controller struct {
	Client    client.Client // cached reads
	Live      client.Reader // uncached reads
	Recorder  events.EventRecorder
	Accounts  Accounts
	Reviewer  Reviewer
	Engine    Engine
	Watcher   Watcher
	Manifests *Manifests
	Finder    *Finder
	Metrics   *metrics.Metrics
	Workers   int
	Confined  bool // there are namespaces that the manager knows nothing of

	health healthBook
	checks check.Book
	rules  policy.Book
	plans  plans
}

// work is what the steps of one reconcile hand to one another.
type work struct {
	instance  *v1alpha1.BundleInstance
	revisions []*v1alpha1.InstanceRevision // of this instance, by number
	before    map[types.UID]*v1alpha1.InstanceRevision
	newest    *v1alpha1.InstanceRevision
	target    *v1alpha1.InstanceRevision // what is activated or healed
	active    *v1alpha1.InstanceRevision // what was active when this began
	approvals []v1alpha1.Approval        // of the namespace
	held      []held                     // what older revisions left and that waits for an approval of its own
	waits     *wait                      // why the newest is not activated yet, though it may be
	requeue   time.Duration
	retry     error
}

// lookAgain has the instance looked at just after a time, if not before; the zero time is never.
func (w *work) lookAgain(at time.Time) {
	if at.IsZero() {
		return
	}
	if left := max(time.Until(at), 0) + time.Second; w.requeue == 0 || left < w.requeue {
		w.requeue = left
	}
}

// Reconcile brings the revisions of one instance as far as it can.
func (c *Controller) Reconcile(ctx context.Context, instance *v1alpha1.BundleInstance) (ctrl.Result, error) {
	w := &work{instance: instance}
	if err := c.listRevisions(ctx, w); err != nil {
		return ctrl.Result{}, err
	}
	if !instance.DeletionTimestamp.IsZero() {
		return c.teardown(ctx, w)
	}
	if instance.Spec.Suspend {
		return ctrl.Result{}, nil
	}
	err := c.advance(ctx, w)
	c.countWaiting(w)
	if patchErr := c.patch(ctx, w); patchErr != nil && err == nil {
		err = patchErr
	}
	if err == nil {
		err = w.retry
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: pace.Conflict}, nil
	}
	return ctrl.Result{RequeueAfter: w.requeue}, err
}

// advance runs the steps until one cannot go on.
func (c *Controller) advance(ctx context.Context, w *work) error {
	steps := []func(context.Context, *work) error{
		c.decide,
		c.depend,
		c.choose,
		c.activate,
		c.prune,
		c.judgeHealth,
		c.lookUnwatched,
		c.checkDeadline,
	}
	for _, step := range steps {
		if err := step(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) listRevisions(ctx context.Context, w *work) error {
	var list v1alpha1.InstanceRevisionList
	err := c.Client.List(ctx, &list, client.InNamespace(w.instance.Namespace),
		client.MatchingLabels{v1alpha1.LabelInstance: w.instance.Name})
	if err != nil {
		return err
	}
	w.before = map[types.UID]*v1alpha1.InstanceRevision{}
	for i := range list.Items {
		revision := &list.Items[i]
		if revision.Spec.Instance.UID != w.instance.UID {
			continue
		}
		w.before[revision.UID] = revision.DeepCopy()
		w.revisions = append(w.revisions, revision)
		if !is(revision, v1alpha1.ConditionSuperseded) && (w.newest == nil || revision.Spec.Number > w.newest.Spec.Number) {
			w.newest = revision
		}
		if is(revision, v1alpha1.ConditionActive) && (w.active == nil || revision.Spec.Number > w.active.Spec.Number) {
			w.active = revision
		}
	}
	slices.SortFunc(w.revisions, func(a, b *v1alpha1.InstanceRevision) int { return int(a.Spec.Number - b.Spec.Number) })
	return nil
}

// patch writes the status of every revision that changed.
func (c *Controller) patch(ctx context.Context, w *work) error {
	for _, revision := range w.revisions {
		before := w.before[revision.UID]
		if err := status.Patch(ctx, c.Client, revision, before); err != nil {
			return err
		}
		c.tell(before, revision)
		w.before[revision.UID] = revision.DeepCopy()
	}
	return nil
}

func is(revision *v1alpha1.InstanceRevision, conditionType string) bool {
	return meta.IsStatusConditionTrue(revision.Status.Conditions, conditionType)
}

func conditionsOf(revision *v1alpha1.InstanceRevision) status.Conditions {
	revision.Status.ObservedGeneration = revision.Generation
	return status.Conditions{List: &revision.Status.Conditions, Generation: revision.Generation}
}
