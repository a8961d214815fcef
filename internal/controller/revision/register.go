// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval"
	"rukpak.io/rukpak/internal/controller/pace"
	"rukpak.io/rukpak/internal/watch"
)

// Register adds the controller to the manager. watcher brings the news of the
// objects.
func (c *Controller) Register(mgr ctrl.Manager, watcher *watch.Watcher) error {
	return ctrl.NewControllerManagedBy(mgr).Named("revision").
		For(&v1alpha1.BundleInstance{}).
		Watches(&v1alpha1.InstanceRevision{}, handler.EnqueueRequestsFromMapFunc(ofRevision), builder.WithPredicates(predicate.Funcs{DeleteFunc: c.deleted})).
		Watches(&v1alpha1.BundleInstance{}, handler.EnqueueRequestsFromMapFunc(c.ofDependency)).
		Watches(&v1alpha1.Approval{}, handler.EnqueueRequestsFromMapFunc(c.ofApproval)).
		Watches(&v1alpha1.ProvisionerClass{}, handler.EnqueueRequestsFromMapFunc(c.ofClass)).
		WatchesRawSource(watcher.Source(ofObject)).
		WithOptions(pace.Options(c.Workers)).
		Complete(reconcile.AsReconciler(mgr.GetClient(), c))
}

// deleted notes that nobody waits for a revision any more. Its instance may be gone with it, so no reconcile will.
func (c *Controller) deleted(event event.DeleteEvent) bool {
	name := event.Object.GetNamespace() + "/" + event.Object.GetName()
	c.Metrics.NotWaiting(name)
	c.Metrics.NotWaiting(name + pruneSuffix)
	return true
}

func request(namespace, name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

func ofRevision(_ context.Context, object client.Object) []reconcile.Request {
	revision, ok := object.(*v1alpha1.InstanceRevision)
	if !ok {
		return nil
	}
	return request(revision.Namespace, revision.Spec.Instance.Name)
}

// ofApproval finds the instance of the revision that an approval names. One
// that names none is answered at once, since no instance will.
func (c *Controller) ofApproval(ctx context.Context, object client.Object) []reconcile.Request {
	about, ok := object.(*v1alpha1.Approval)
	if !ok {
		return nil
	}
	revision := &v1alpha1.InstanceRevision{}
	name := types.NamespacedName{Namespace: about.Namespace, Name: about.Spec.Revision}
	err := c.Client.Get(ctx, name, revision)
	if err == nil {
		return request(revision.Namespace, revision.Spec.Instance.Name)
	}
	if apierrors.IsNotFound(err) && about.DeletionTimestamp.IsZero() {
		// A failure to write is no loss: the approval counts for nothing either way.
		_ = Answer(ctx, c.Client, about.DeepCopy(), approval.Orphan(*about))
	}
	return nil
}

// ofClass finds the instances with revisions of a class: its approval mode or
// reclaim policy may have changed.
func (c *Controller) ofClass(ctx context.Context, class client.Object) []reconcile.Request {
	var list v1alpha1.InstanceRevisionList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	seen := map[types.NamespacedName]bool{}
	var requests []reconcile.Request
	for i := range list.Items {
		revision := &list.Items[i]
		name := types.NamespacedName{Namespace: revision.Namespace, Name: revision.Spec.Instance.Name}
		if revision.Spec.ProvisionerClassName == class.GetName() && !seen[name] {
			seen[name] = true
			requests = append(requests, reconcile.Request{NamespacedName: name})
		}
	}
	return requests
}

func ofObject(event watch.Event) []reconcile.Request {
	return request(event.Owner.Namespace, event.Owner.Name)
}
