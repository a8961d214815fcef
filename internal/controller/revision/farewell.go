// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// farewell is the revision whose tasks are run when its instance is deleted.
type farewell struct {
	control  *Controller
	revision *v1alpha1.InstanceRevision // nil if no tasks are run
	loaded   *Loaded
	skipped  string
}

// farewell finds the revision whose tasks are run: the active one, or else the last that wrote anything.
func (c *Controller) farewell(ctx context.Context, w *work) (farewell, error) {
	none := farewell{control: c}
	last := w.active
	for _, revision := range w.revisions {
		if w.active == nil && revision.Status.ActivatedAt != nil && !is(revision, v1alpha1.ConditionSuperseded) {
			last = revision
		}
	}
	if last == nil {
		return none, nil
	}
	loaded, err := c.Manifests.Load(ctx, last)
	if lost(err) {
		none.skipped = "; tasks were not run, if there were any, since the manifests are lost"
		return none, nil
	}
	if err != nil {
		return none, err
	}
	due := activate.Due(loaded.Phases, provisioner.OnTeardown, provisioner.OnTeardownFinish)
	if len(due) == 0 {
		return none, nil
	}
	if w.instance.Annotations[v1alpha1.AnnotationTeardownTasks] == v1alpha1.TeardownTasksSkip {
		none.skipped = "; its tasks were not run, as its annotation says"
		return none, nil
	}
	namespace := &corev1.Namespace{}
	err = c.Live.Get(ctx, types.NamespacedName{Name: w.instance.Namespace}, namespace)
	if apierrors.IsNotFound(err) || err == nil && !namespace.DeletionTimestamp.IsZero() {
		none.skipped = "; its tasks were not run, since its namespace is being deleted"
		return none, nil
	}
	if err != nil {
		return none, err
	}
	return farewell{control: c, revision: last, loaded: loaded}, c.retryTasks(ctx, w, last)
}

// begun reports whether tasks of a moment were started.
func (f farewell) begun(moment provisioner.Moment) bool {
	return f.revision != nil && slices.ContainsFunc(f.revision.Status.Tasks, func(task v1alpha1.TaskStatus) bool {
		return task.Moment == string(moment)
	})
}

// run runs the tasks of a moment.
func (f farewell) run(ctx context.Context, w *work, moment provisioner.Moment) (activate.Result, error) {
	if f.revision == nil {
		return activate.Result{Complete: true}, nil
	}
	c := f.control
	phases := activate.Due(f.loaded.Phases, moment)
	if len(phases) == 0 {
		return activate.Result{Complete: true}, nil
	}
	if err := c.Watcher.Use(owner(w.instance), f.loaded.Kinds); err != nil {
		return activate.Result{}, err
	}
	actor, err := c.Accounts.Client(f.revision.Namespace, f.revision.Spec.ServiceAccountName)
	if err != nil {
		return activate.Result{}, err
	}
	options := c.options(ctx, f.revision, nil)
	options.Tasks = c.tasks(w, f.revision, moment)
	return c.Engine.Apply(ctx, actor, owner(w.instance), phases, options), nil
}

// removeTasks removes what tasks of any revision left, also of revisions that are not kept any more.
func (c *Controller) removeTasks(ctx context.Context, w *work) (activate.Result, error) {
	if !w.instance.Status.TasksRun {
		return activate.Result{Complete: true}, nil
	}
	account := ""
	for _, revision := range w.revisions {
		if revision.Status.ActivatedAt != nil {
			account = revision.Spec.ServiceAccountName
		}
	}
	if account == "" {
		var err error
		if account, err = c.account(ctx, w.instance); err != nil || account == "" {
			return activate.Result{Complete: true}, err
		}
	}
	left, err := c.marked(ctx, w, account)
	if err != nil {
		return activate.Result{}, err
	}
	actor, err := c.Accounts.Client(w.instance.Namespace, account)
	if err != nil {
		return activate.Result{}, err
	}
	phases := asState(left[0].loaded.Phases)
	options := left[0].options
	options.Keep = func(id ownership.ID) bool { return left[0].loaded.IDs[id] != nil }
	result := c.Engine.Prune(ctx, actor, owner(w.instance), phases, options)
	c.measure(result)
	return result, nil
}

// asState makes state of tasks, to be removed as that is.
func asState(phases []provisioner.Phase) []provisioner.Phase {
	var all []provisioner.Phase
	for _, phase := range phases {
		if activate.IsTask(phase) {
			all = append(all, provisioner.ByKind(phase.Objects)...)
		}
	}
	return all
}
