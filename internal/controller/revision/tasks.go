// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// maxTasks is how many tasks a revision may run, as the schema of its status has it.
const maxTasks = manifest.MaxTasks

// taskPause is the time after which a task that runs is looked at again; its changes are watched too.
const taskPause = 5 * time.Second

// MomentOf gives the moment of the tasks that run when a revision is activated. all are those of its instance.
func MomentOf(of *v1alpha1.InstanceRevision, all []v1alpha1.InstanceRevision) provisioner.Moment {
	for i := range all {
		if all[i].UID != of.UID && is(&all[i], v1alpha1.ConditionActive) {
			return momentOf(of, &all[i])
		}
	}
	return momentOf(of, nil)
}

// momentOf knows that some revision stays active until another one is: none is active only as long as none ever was.
func momentOf(of, active *v1alpha1.InstanceRevision) provisioner.Moment {
	switch {
	case of.Status.Moment != "":
		return provisioner.Moment(of.Status.Moment)
	case of.Spec.RollbackOf != nil:
		return provisioner.OnRollback
	case active != nil && active.UID != of.UID:
		return provisioner.OnUpgrade
	default:
		return provisioner.OnInstall
	}
}

// tasks has the engine run the tasks of a moment. What becomes of them is kept in the revision's status, so that each
// runs once in whichever manager.
func (c *Controller) tasks(w *work, of *v1alpha1.InstanceRevision, moment provisioner.Moment) activate.Tasks {
	return activate.Tasks{
		Moment:   moment,
		Run:      fmt.Sprintf("%s.%d", of.UID, of.Status.Retries),
		Deadline: deadline(w.instance),
		Known: func(phase string, id ownership.ID) (activate.TaskReport, bool) {
			at := findTask(of, moment, phase, id.String())
			if at < 0 {
				return activate.TaskReport{}, false
			}
			found := of.Status.Tasks[at]
			report := activate.TaskReport{
				Phase: phase, ID: id, UID: found.UID, State: activate.TaskState(found.State), Message: found.Message, Started: found.StartedAt.Time,
			}
			if found.EndedAt != nil {
				report.Ended = found.EndedAt.Time
			}
			return report, true
		},
		Note: func(ctx context.Context, reports []activate.TaskReport) error {
			return c.noteTasks(ctx, w, of, moment, reports)
		},
	}
}

func findTask(of *v1alpha1.InstanceRevision, moment provisioner.Moment, phase, object string) int {
	return slices.IndexFunc(of.Status.Tasks, func(task v1alpha1.TaskStatus) bool {
		return task.Moment == string(moment) && task.Phase == phase && task.Object == object
	})
}

// noteTasks keeps what became of tasks and tells of those that ended.
func (c *Controller) noteTasks(ctx context.Context, w *work, of *v1alpha1.InstanceRevision, moment provisioner.Moment, reports []activate.TaskReport) error {
	for _, report := range reports {
		task := v1alpha1.TaskStatus{
			Moment: string(moment), Phase: report.Phase, Object: report.ID.String(), UID: report.UID, State: v1alpha1.TaskState(report.State),
			Message: status.Cut(report.Message, status.MaxNote), StartedAt: metav1.NewTime(report.Started),
		}
		if !report.Ended.IsZero() {
			task.EndedAt = new(metav1.NewTime(report.Ended))
		}
		switch at := findTask(of, moment, report.Phase, task.Object); {
		case at >= 0:
			of.Status.Tasks[at] = task
		case len(of.Status.Tasks) == maxTasks:
			return fmt.Errorf("revision %d has more than %d tasks: split the bundle", of.Spec.Number, maxTasks)
		default:
			of.Status.Tasks = append(of.Status.Tasks, task)
		}
	}
	of.Status.ProgressAt = new(metav1.Now())
	if err := c.patch(ctx, w); err != nil {
		return err
	}
	for _, report := range reports {
		c.tellTask(of, moment, report)
	}
	return nil
}

func (c *Controller) tellTask(of *v1alpha1.InstanceRevision, moment provisioner.Moment, report activate.TaskReport) {
	switch report.State {
	case activate.TaskSucceeded:
		c.Metrics.Task(string(moment), true)
		c.Recorder.Eventf(of, nil, corev1.EventTypeNormal, "TaskSucceeded", "Run", "%s", status.Note(fmt.Sprintf("%s of phase %s, at %s", report.ID, report.Phase, moment)))
	case activate.TaskFailed:
		c.Metrics.Task(string(moment), false)
		c.Recorder.Eventf(of, nil, corev1.EventTypeWarning, v1alpha1.ReasonTaskFailed, "Run", "%s", status.Note(fmt.Sprintf("%s of phase %s, at %s: %s", report.ID, report.Phase, moment, report.Message)))
	}
}

// noteTasksRun says in the instance's status, before the first task is run, that tasks may have left something.
func (c *Controller) noteTasksRun(ctx context.Context, instance *v1alpha1.BundleInstance, loaded *Loaded) error {
	if len(loaded.Tasks) == 0 || instance.Status.TasksRun {
		return nil
	}
	before := instance.DeepCopy()
	instance.Status.TasksRun = true
	return status.Patch(ctx, c.Client, instance, before)
}

// recordTaskFailure says that a revision failed since a task of it did.
func recordTaskFailure(target *v1alpha1.InstanceRevision, result activate.Result) {
	var failed []error
	for _, object := range result.Failed() {
		if object.Err.Reason == activate.TaskFailedReason {
			failed = append(failed, object.Err)
		}
	}
	if len(failed) == 0 {
		return
	}
	conditionsOf(target).True(v1alpha1.ConditionFailed, v1alpha1.ReasonTaskFailed,
		fmt.Sprintf("%v; change the instance, or annotate it with another value of %s to run its tasks again%s", errors.Join(failed...), v1alpha1.AnnotationRetry, withoutReturn(target)))
}

// retryTasks forgets what became of the tasks of a revision of which one failed, if the instance asks for that, so that
// they are run again: all, since those that succeeded may have made what the failed one needs.
func (c *Controller) retryTasks(ctx context.Context, w *work, of *v1alpha1.InstanceRevision) error {
	asked := askedRetry(w.instance)
	if asked == of.Status.Retry {
		return nil
	}
	of.Status.Retry = asked
	failed := slices.ContainsFunc(of.Status.Tasks, func(task v1alpha1.TaskStatus) bool { return task.State == v1alpha1.TaskFailed })
	if asked != "" && failed {
		of.Status.Tasks = nil
		of.Status.Retries++
		of.Status.ProgressAt = new(metav1.Now())
		conditionsOf(of).Remove(v1alpha1.ConditionFailed)
	}
	return c.patch(ctx, w)
}

func askedRetry(instance *v1alpha1.BundleInstance) string {
	return status.Cut(instance.Annotations[v1alpha1.AnnotationRetry], status.MaxNote)
}

// pauseFor is the time after which a result without faults to try again is looked at again; 0 if only others can help.
func pauseFor(result activate.Result) time.Duration {
	waiting := result.Waiting()
	switch {
	case len(waiting) == 0:
		return 0
	case slices.ContainsFunc(waiting, func(object activate.ObjectResult) bool { return !object.Runs() }):
		return waitPause
	default:
		return taskPause
	}
}
