// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/plural"
	"rukpak.io/rukpak/provisioner"
)

// permissionsPause is the time after which an account that lacked permissions
// is asked about again: nothing tells the manager that a role was granted.
const permissionsPause = 15 * time.Second

// activate applies the target's objects, or heals them if it is active.
func (c *Controller) activate(ctx context.Context, w *work) error {
	c.explainWaiting(w)
	if w.target == nil {
		return nil
	}
	loaded, err := c.Manifests.Load(ctx, w.target)
	if err != nil {
		return unreadable(w.target, err)
	}
	if err := c.noteReclaim(ctx, w); err != nil {
		return err
	}
	actor, use, err := c.mayWrite(ctx, w, loaded)
	if err != nil || actor == nil {
		return err
	}
	if ready, err := c.begin(ctx, w, loaded, use); err != nil || !ready {
		return err
	}
	if err := c.retryTasks(ctx, w, w.target); err != nil {
		return err
	}
	earlier, err := c.loadEarlier(ctx, w)
	if err != nil {
		return err
	}
	if err := c.Watcher.Use(owner(w.instance), kinds(loaded, earlier)); err != nil {
		return err
	}
	options := c.options(ctx, w.target, earlier)
	options.PassForbidden = healsOnly(w.target)
	if !is(w.target, v1alpha1.ConditionActive) {
		options.Tasks = c.tasks(w, w.target, provisioner.Moment(w.target.Status.Moment))
	}
	result := c.Engine.Apply(ctx, actor, owner(w.instance), loaded.lasting(w.target), options)
	c.measure(result)
	c.health.written(w.instance.UID, result)
	c.record(w, result)
	if !result.Complete {
		c.healActive(ctx, w, loaded)
	}
	return nil
}

// unreadable says on the target that its manifests are lost. What is active stays so, but nobody can heal it. That they
// could not be read this time says nothing.
func unreadable(target *v1alpha1.InstanceRevision, err error) error {
	conditions := conditionsOf(target)
	switch {
	case !lost(err):
	case is(target, v1alpha1.ConditionActive):
		conditions.True(v1alpha1.ConditionDrifted, v1alpha1.ReasonManifestCorrupt, "what others change cannot be put right: "+err.Error())
	default:
		conditions.False(v1alpha1.ConditionActive, v1alpha1.ReasonManifestCorrupt, err.Error())
	}
	return err
}

// explainWaiting says on the newest revision why it is not the target.
func (c *Controller) explainWaiting(w *work) {
	if w.newest == nil || w.newest == w.target {
		return
	}
	conditions := conditionsOf(w.newest)
	switch {
	case is(w.newest, v1alpha1.ConditionDenied):
		conditions.False(v1alpha1.ConditionActive, v1alpha1.ReasonDenied, "the revision was denied")
	case !is(w.newest, v1alpha1.ConditionPlanned):
		conditions.False(v1alpha1.ConditionActive, v1alpha1.ReasonPlanning, "the revision is being planned")
	case is(w.newest, v1alpha1.ConditionApproved) && blocked(w.newest) != "":
		conditions.False(v1alpha1.ConditionActive, v1alpha1.ReasonUnsafeCRDUpgrade, blocked(w.newest))
	case w.waits != nil:
		conditions.False(v1alpha1.ConditionActive, w.waits.reason, w.waits.message)
	default:
		conditions.False(v1alpha1.ConditionActive, v1alpha1.ReasonWaitingForApproval, waitingMessage(w.newest))
	}
}

// begin checks the permissions before the first write and records that the
// revision is about to write, so that what it wrote is never forgotten: the
// finalizer and activatedAt are stored before any object is.
func (c *Controller) begin(ctx context.Context, w *work, loaded *Loaded, use account) (ready bool, err error) {
	target := w.target
	if target.Status.ActivatedAt != nil {
		return true, nil
	}
	moment := momentOf(target, w.active)
	missing, err := c.Reviewer.Missing(ctx, use.namespace, use.name, activate.Needed(loaded.Phases, moment))
	if err != nil {
		return false, err
	}
	if len(missing) > 0 {
		conditionsOf(target).False(v1alpha1.ConditionActive, v1alpha1.ReasonPermissionsMissing, missingMessage(use.in(target.Namespace), missing))
		w.requeue = permissionsPause
		return false, nil
	}
	if err := c.holdInstance(ctx, w.instance, loaded); err != nil {
		return false, err
	}
	if err := c.noteTasksRun(ctx, w.instance, loaded); err != nil {
		return false, err
	}
	now := metav1.Now()
	target.Status.ActivatedAt, target.Status.ProgressAt = &now, &now
	target.Status.ReturnsTo = returnsTo(w.active)
	target.Status.Moment, target.Status.Retry = string(moment), askedRetry(w.instance)
	target.Status.Kinds = kindNames(loaded)
	conditionsOf(target).False(v1alpha1.ConditionActive, v1alpha1.ReasonActivating, "the objects are being applied")
	return true, c.patch(ctx, w)
}

// holdInstance keeps the instance until its objects are gone, and notes on it of which kinds they are.
func (c *Controller) holdInstance(ctx context.Context, instance *v1alpha1.BundleInstance, loaded *Loaded) error {
	before := instance.DeepCopy()
	added := controllerutil.AddFinalizer(instance, v1alpha1.FinalizerTeardown)
	if noted := noteKinds(instance, loaded); !added && !noted {
		return nil
	}
	return c.Client.Patch(ctx, instance, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// record turns the engine's result into conditions, events and metrics.
func (c *Controller) record(w *work, result activate.Result) {
	target := w.target
	conditions := conditionsOf(target)
	wasActive := is(target, v1alpha1.ConditionActive)
	if wasActive {
		c.recordDrift(w, result)
	}
	if result.Complete {
		if !wasActive {
			c.recordActive(target, result)
		}
		supersede(w)
		return
	}
	reason, message, retry := outcome(result)
	if !wasActive {
		conditions.False(v1alpha1.ConditionActive, reason, message)
		recordTaskFailure(target, result)
		recordFailure(target, result)
	}
	if retry != nil {
		w.retry = retry
	} else {
		w.requeue = pauseFor(result)
	}
}

func (c *Controller) recordActive(target *v1alpha1.InstanceRevision, result activate.Result) {
	tasks := result.Count(activate.Ran)
	message := plural.All(len(result.Objects)-tasks, "object") + " applied"
	if tasks > 0 {
		message += "; " + plural.Of(tasks, "task") + " run"
	}
	now := metav1.Now()
	target.Status.ProgressAt = &now
	if target.Status.ActiveAt == nil {
		target.Status.ActiveAt = &now
	}
	conditionsOf(target).True(v1alpha1.ConditionActive, v1alpha1.ReasonActivated, message)
	if approved := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.ConditionApproved); approved != nil {
		c.Metrics.Activated(time.Since(approved.LastTransitionTime.Time))
	}
}

// waitPause is the time after which objects that others depend on are looked
// at again; their changes are watched too.
const waitPause = time.Second

// healActive keeps the objects of the revision that is active, and that the
// target would not change, as they are: a revision that cannot become active
// never takes the old one down.
func (c *Controller) healActive(ctx context.Context, w *work, target *Loaded) {
	if w.active == nil || w.active == w.target {
		return
	}
	loaded, err := c.Manifests.Load(ctx, w.active)
	if err != nil {
		w.retry = err
		return
	}
	actor, err := c.Accounts.Client(w.active.Namespace, w.active.Spec.ServiceAccountName)
	if err != nil {
		w.retry = err
		return
	}
	rest := without(loaded.Phases, target.find)
	options := c.options(ctx, w.active, nil)
	options.PassForbidden = healsOnly(w.active)
	result := c.Engine.Apply(ctx, actor, owner(w.instance), rest, options)
	c.measure(result)
	c.health.written(w.instance.UID, result)
}

func missingMessage(account string, missing []string) string {
	message := fmt.Sprintf("nothing is applied: ServiceAccount %q lacks %s: ", account, plural.Of(len(missing), "permission"))
	for i, line := range missing {
		if i > 0 {
			message += "; "
		}
		message += line
	}
	return status.OneLine(message)
}

func owner(instance *v1alpha1.BundleInstance) ownership.Owner {
	return ownership.Owner{UID: instance.UID, Namespace: instance.Namespace, Name: instance.Name}
}
