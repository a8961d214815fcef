// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/controller/class"
	"rukpak.io/rukpak/internal/controller/pace"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/provisioner"
)

// orphanAfter is how long a teardown that the service account may not do is
// tried, when the account or the namespace is gone and nobody can be expected
// to grant it anything any more.
const orphanAfter = time.Minute

// teardownPause is the time after which a teardown that waits is looked at again.
const teardownPause = 2 * time.Second

// teardown removes the instance's objects in reverse order and then lets it go.
func (c *Controller) teardown(ctx context.Context, w *work) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(w.instance, v1alpha1.FinalizerTeardown) {
		return ctrl.Result{}, nil
	}
	retain, err := c.retains(ctx, w)
	if err != nil {
		return ctrl.Result{}, err
	}
	if retain {
		return c.release(ctx, w, "Retained", "the objects are left as they are (reclaim policy Retain)")
	}
	result, err := c.takeDown(ctx, w)
	if err != nil {
		_, _ = c.reportTeardown(ctx, w, v1alpha1.ReasonTransientError, err.Error())
		return ctrl.Result{}, err
	}
	if result.Complete {
		return c.release(ctx, w, "Removed", kept(result.Result)+result.skipped)
	}
	reason, message, _ := outcome(result.Result)
	if abandoned, why := c.abandoned(ctx, w); abandoned && reason == v1alpha1.ReasonPermissionsMissing {
		return c.release(ctx, w, "Orphaned", why+"; left behind: "+message)
	}
	return c.reportTeardown(ctx, w, reason, message)
}

// takenDown is what became of a teardown.
type takenDown struct {
	activate.Result
	skipped string // says why tasks were not run, "" if they were
}

// takeDown runs the tasks of the deletion around the removal of the objects, and removes what tasks left at last.
func (c *Controller) takeDown(ctx context.Context, w *work) (takenDown, error) {
	last, err := c.farewell(ctx, w)
	if err != nil {
		return takenDown{}, err
	}
	all := takenDown{skipped: last.skipped}
	for _, step := range []func(context.Context, *work) (activate.Result, error){
		func(ctx context.Context, w *work) (activate.Result, error) {
			return last.run(ctx, w, provisioner.OnTeardown)
		},
		func(ctx context.Context, w *work) (activate.Result, error) {
			if last.begun(provisioner.OnTeardownFinish) {
				return activate.Result{Complete: true}, nil // all is removed by then
			}
			return c.remove(ctx, w)
		},
		func(ctx context.Context, w *work) (activate.Result, error) {
			return last.run(ctx, w, provisioner.OnTeardownFinish)
		},
		c.removeTasks,
	} {
		result, err := step(ctx, w)
		if err != nil {
			return all, err
		}
		result.Objects = append(all.Objects, result.Objects...)
		if all.Result = result; !result.Complete {
			break
		}
	}
	return all, nil
}

// remove tears down every revision that may have objects, the newest first.
func (c *Controller) remove(ctx context.Context, w *work) (activate.Result, error) {
	left, err := c.leftovers(ctx, w)
	if err != nil {
		return activate.Result{}, err
	}
	all := activate.Result{Complete: true}
	for _, one := range left {
		actor, err := c.Accounts.Client(w.instance.Namespace, one.account)
		if err != nil {
			return all, err
		}
		result := c.Engine.Teardown(ctx, actor, owner(w.instance), one.loaded.removable(), one.options)
		c.measure(result)
		result.Objects = append(all.Objects, result.Objects...)
		if all = result; !all.Complete {
			return all, nil
		}
	}
	return all, nil
}

// leftover is what one account has to remove.
type leftover struct {
	account string
	loaded  *Loaded
	options activate.Options
}

// leftovers gives what the activated revisions may have written. Revisions or
// their Secrets may be gone before us, when the whole namespace is deleted: then
// what carries our mark is ours all the same.
func (c *Controller) leftovers(ctx context.Context, w *work) ([]leftover, error) {
	var left []leftover
	for _, revision := range slices.Backward(w.revisions) {
		if revision.Status.ActivatedAt == nil || is(revision, v1alpha1.ConditionSuperseded) {
			continue
		}
		loaded, err := c.Manifests.Load(ctx, revision)
		if lost(err) {
			return c.marked(ctx, w, revision.Spec.ServiceAccountName)
		}
		if err != nil {
			return nil, err
		}
		left = append(left, leftover{revision.Spec.ServiceAccountName, loaded, c.options(ctx, revision, nil)})
	}
	if len(left) == 0 {
		account, err := c.account(ctx, w.instance)
		if err != nil || account == "" {
			return nil, err
		}
		return c.marked(ctx, w, account)
	}
	return left, nil
}

// marked gives all that carries the instance's mark.
func (c *Controller) marked(ctx context.Context, w *work, account string) ([]leftover, error) {
	loaded, err := c.Finder.Find(ctx, w.instance.UID, knownKinds(w.instance))
	if err != nil {
		return nil, fmt.Errorf("find the objects of BundleInstance %s/%s: %w", w.instance.Namespace, w.instance.Name, err)
	}
	options := activate.Options{Alive: Alive(ctx, c.instances()), DefaultNamespace: w.instance.Namespace}
	return []leftover{{account, loaded, options}}, nil
}

// account is that of an instance whose revisions are gone: the one that it
// names, else the default of the class that it names.
func (c *Controller) account(ctx context.Context, instance *v1alpha1.BundleInstance) (string, error) {
	if name := instance.Spec.ServiceAccountName; name != "" || instance.Spec.Bundle == nil {
		return name, nil
	}
	found, err := class.Resolve(ctx, c.Client, instance.Spec.Bundle.ProvisionerClassName, instance.Namespace)
	var unusable *class.UnusableError
	if errors.As(err, &unusable) {
		return "", nil
	}
	if err != nil || found.Spec.Identity == nil {
		return "", err
	}
	return found.Spec.Identity.DefaultServiceAccount, nil
}

// retains says whether the objects stay: as the instance's annotation says,
// and else the class of the newest activated revision, also if it is gone.
func (c *Controller) retains(ctx context.Context, w *work) (bool, error) {
	switch policy := v1alpha1.ReclaimPolicy(w.instance.Annotations[v1alpha1.AnnotationReclaimPolicy]); policy {
	case v1alpha1.ReclaimRetain, v1alpha1.ReclaimDelete:
		return policy == v1alpha1.ReclaimRetain, nil
	}
	for _, revision := range slices.Backward(w.revisions) {
		if revision.Status.ActivatedAt == nil {
			continue
		}
		policy := &v1alpha1.ProvisionerClass{}
		err := c.Client.Get(ctx, types.NamespacedName{Name: revision.Spec.ProvisionerClassName}, policy)
		if apierrors.IsNotFound(err) {
			return revision.Annotations[v1alpha1.AnnotationReclaimPolicy] == string(v1alpha1.ReclaimRetain), nil
		}
		return policy.Spec.ReclaimPolicy == v1alpha1.ReclaimRetain, err
	}
	return false, nil
}

// abandoned is true when nobody can be expected to grant the account what it
// lacks: the account or the namespace is gone, for a while.
func (c *Controller) abandoned(ctx context.Context, w *work) (bool, string) {
	if time.Since(w.instance.DeletionTimestamp.Time) < orphanAfter {
		return false, ""
	}
	namespace := &corev1.Namespace{}
	err := c.Live.Get(ctx, types.NamespacedName{Name: w.instance.Namespace}, namespace)
	if err == nil && !namespace.DeletionTimestamp.IsZero() {
		return true, fmt.Sprintf("namespace %q is being deleted and the service account lost its permissions", namespace.Name)
	}
	for _, revision := range slices.Backward(w.revisions) {
		if revision.Status.ActivatedAt == nil {
			continue
		}
		name := types.NamespacedName{Namespace: revision.Namespace, Name: revision.Spec.ServiceAccountName}
		if apierrors.IsNotFound(c.Live.Get(ctx, name, &corev1.ServiceAccount{})) {
			return true, fmt.Sprintf("ServiceAccount %q is gone", name.Name)
		}
		return false, ""
	}
	return false, ""
}

// release drops the finalizer.
func (c *Controller) release(ctx context.Context, w *work, reason, message string) (ctrl.Result, error) {
	kind := corev1.EventTypeNormal
	if reason == "Orphaned" {
		kind = corev1.EventTypeWarning
	}
	c.Recorder.Eventf(w.instance, nil, kind, reason, "Teardown", "%s", status.Note(message))
	before := w.instance.DeepCopy()
	controllerutil.RemoveFinalizer(w.instance, v1alpha1.FinalizerTeardown)
	err := c.Client.Patch(ctx, w.instance, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: pace.Conflict}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	c.Watcher.Release(w.instance.UID)
	c.Engine.Forget(owner(w.instance))
	c.health.forget(w.instance.UID)
	c.checks.Forget(w.instance.UID)
	return ctrl.Result{}, nil
}

// reportTeardown says in the instance's status what the teardown waits for.
func (c *Controller) reportTeardown(ctx context.Context, w *work, reason, message string) (ctrl.Result, error) {
	before := w.instance.DeepCopy()
	conditions := status.Conditions{List: &w.instance.Status.Conditions, Generation: w.instance.Generation}
	shown, pause := v1alpha1.ReasonDeleting, teardownPause
	switch reason {
	case v1alpha1.ReasonTaskFailed:
		shown, pause = v1alpha1.ReasonTaskFailed, 0
		message += fmt.Sprintf("; annotate the instance with another value of %s to run the tasks of its deletion again, or with %s=%s to delete it without them",
			v1alpha1.AnnotationRetry, v1alpha1.AnnotationTeardownTasks, v1alpha1.TeardownTasksSkip)
	case v1alpha1.ReasonPermissionsMissing:
		shown, pause = v1alpha1.ReasonTeardownBlocked, permissionsPause
		message += "; grant it, or annotate the instance with " + v1alpha1.AnnotationReclaimPolicy + "=Retain to leave the objects"
	}
	if conditions.False(v1alpha1.ConditionReady, shown, message) {
		c.Recorder.Eventf(w.instance, nil, corev1.EventTypeNormal, shown, "Teardown", "%s", status.Note(message))
	}
	w.instance.Status.ObservedGeneration = w.instance.Generation
	err := status.Patch(ctx, c.Client, w.instance, before)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: pace.Conflict}, nil
	}
	return ctrl.Result{RequeueAfter: pause}, client.IgnoreNotFound(err)
}
