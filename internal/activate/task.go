// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/internal/certificate"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// AnnotationRun on the object of a task says which run made it: the name of the run, the moment and the phase.
const AnnotationRun = "rukpak.io/run"

// Tasks says which tasks a call of Apply runs and what is known of them. Each runs once in a run, however often Apply is
// called and from wherever: what was made is found again by its annotation, and what has ended by what Note kept.
type Tasks struct {
	// Moment is that of the tasks to run. Without one none are.
	Moment provisioner.Moment
	// Run names the run. It is the same until that is over, and never used again.
	Run string
	// Deadline is the time that a task has from its start, 0 for ever. One that has not ended by then has failed.
	Deadline time.Duration
	// Known gives what Note was told last of a task. Nil knows nothing.
	Known func(phase string, id ownership.ID) (TaskReport, bool)
	// Note keeps what became of tasks, such that Known gives it from then on, also after a restart. Nothing goes on, and
	// nothing is deleted, before that is done. Nil keeps nothing.
	Note func(ctx context.Context, reports []TaskReport) error
}

// TaskState is how far a task is.
type TaskState string

// The states of tasks.
const (
	TaskRunning   TaskState = "Running"
	TaskSucceeded TaskState = "Succeeded"
	TaskFailed    TaskState = "Failed"
)

// TaskReport is what became of one task.
type TaskReport struct {
	Phase   string
	ID      ownership.ID
	UID     types.UID // of the object that was made for it
	State   TaskState
	Message string // why it failed
	Started time.Time
	Ended   time.Time // zero while it runs
}

func (t Tasks) known(phase string, id ownership.ID) TaskReport {
	if t.Known == nil {
		return TaskReport{}
	}
	report, _ := t.Known(phase, id)
	return report
}

func (t Tasks) note(ctx context.Context, reports []TaskReport) error {
	if t.Note == nil || len(reports) == 0 {
		return nil
	}
	return t.Note(ctx, reports)
}

// runOf is what the object of a task is annotated with.
func (t Tasks) runOf(phase string) string { return fmt.Sprintf("%s/%s/%s", t.Run, t.Moment, phase) }

// IsTask reports whether the objects of a phase are tasks.
func IsTask(phase provisioner.Phase) bool { return len(phase.On) > 0 }

// State gives the phases that hold state.
func State(phases []provisioner.Phase) []provisioner.Phase {
	return slices.DeleteFunc(slices.Clone(phases), IsTask)
}

// Due gives the phases of tasks that run at one of the moments.
func Due(phases []provisioner.Phase, moments ...provisioner.Moment) []provisioner.Phase {
	return slices.DeleteFunc(slices.Clone(phases), func(phase provisioner.Phase) bool {
		return !slices.ContainsFunc(moments, func(moment provisioner.Moment) bool { return slices.Contains(phase.On, moment) })
	})
}

// At gives the phases that an activation at a moment goes through: those of state, and those of the tasks that run then.
func At(phases []provisioner.Phase, moment provisioner.Moment) []provisioner.Phase {
	return slices.DeleteFunc(slices.Clone(phases), func(phase provisioner.Phase) bool {
		return IsTask(phase) && !slices.Contains(phase.On, moment)
	})
}

// Needed gives the phases that an account must be able to carry out before an activation at a moment begins: those of it,
// and the tasks of the teardown, for which nobody is asked again. The Secrets of serving certificates that objects ask for are among
// them.
func Needed(phases []provisioner.Phase, moment provisioner.Moment) []provisioner.Phase {
	all := append(slices.Clone(phases), certificate.Secrets(phases)...)
	return slices.DeleteFunc(all, func(phase provisioner.Phase) bool {
		return IsTask(phase) && len(Due([]provisioner.Phase{phase}, moment, provisioner.OnTeardown, provisioner.OnTeardownFinish)) == 0
	})
}

// deletePolicy says when the object of a task is deleted.
type deletePolicy struct{ before, succeeded, failed bool }

func policyOf(task *unstructured.Unstructured) (deletePolicy, error) {
	value, said := task.GetAnnotations()[provisioner.AnnotationDeleteTask]
	if !said {
		return deletePolicy{before: true}, nil
	}
	var policy deletePolicy
	for _, word := range strings.Split(value, ",") {
		switch strings.TrimSpace(word) {
		case provisioner.DeleteBeforeRun:
			policy.before = true
		case provisioner.DeleteOnSuccess:
			policy.succeeded = true
		case provisioner.DeleteOnFailure:
			policy.failed = true
		case "":
		default:
			return policy, fmt.Errorf("annotation %s: %q is none of %s, %s and %s", provisioner.AnnotationDeleteTask, strings.TrimSpace(word),
				provisioner.DeleteBeforeRun, provisioner.DeleteOnSuccess, provisioner.DeleteOnFailure)
		}
	}
	return policy, nil
}

// wants reports whether the object of a task goes once it has ended so.
func (p deletePolicy) wants(state TaskState) bool {
	return state == TaskSucceeded && p.succeeded || state == TaskFailed && p.failed
}
