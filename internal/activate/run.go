// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// run brings the tasks of a phase to their end, side by side, or as far as they come in this call.
func (r *revisions) run(ctx context.Context, s *session, phase provisioner.Phase) []ObjectResult {
	fresh := false // something was started in this call, and is waited for a little
	results := r.phases.each(ctx, s, phase.Name, phase.Objects, func(ctx context.Context, s *session, object *unstructured.Unstructured) ObjectResult {
		return r.objects.task(ctx, s, phase.Name, object)
	})
	for i := range results {
		fresh = fresh || results[i].begun
	}
	if !keepReports(ctx, s, results) {
		return results
	}
	for fresh && anyRunning(results) && s.wait(ctx) {
		for i := range results {
			if running(results[i]) {
				results[i] = s.watchTask(ctx, *results[i].report)
			}
		}
	}
	keepReports(ctx, s, results)
	return results
}

func running(result ObjectResult) bool {
	return result.Err == nil && result.report != nil && result.report.State == TaskRunning
}

func anyRunning(results []ObjectResult) bool {
	for _, result := range results {
		if running(result) {
			return true
		}
	}
	return false
}

// keepReports has the caller keep what is new. What could not be kept has not happened: it is found again.
func keepReports(ctx context.Context, s *session, results []ObjectResult) bool {
	var reports []TaskReport
	for _, result := range results {
		if result.report != nil && result.report.State != s.options.Tasks.known(result.report.Phase, result.ID).State {
			reports = append(reports, *result.report)
		}
	}
	err := s.options.Tasks.note(ctx, reports)
	if err == nil {
		return true
	}
	for i := range results {
		if results[i].report != nil {
			results[i] = ObjectResult{ID: results[i].ID, Phase: results[i].Phase, Action: Failed, Err: &Error{
				ID: results[i].ID, Reason: TransientError, Err: fmt.Errorf("keep what became of the task: %w", err),
			}}
		}
	}
	return false
}

// task starts one task, unless this run did already, and looks how far it is.
func (o *objects) task(ctx context.Context, s *session, phase string, source *unstructured.Unstructured) ObjectResult {
	id := ownership.IDOf(source)
	kind := source.GroupVersionKind()
	scope, err := s.scope(kind)
	if err == nil {
		desired := s.taskObject(Desired(source, s.owner, scope, s.options.DefaultNamespace), phase)
		id = ownership.IDOf(desired)
		known := s.options.Tasks.known(phase, id)
		switch known.State {
		case TaskSucceeded, TaskFailed:
			return ended(known)
		case TaskRunning:
			return s.watchTask(ctx, known)
		}
		var result ObjectResult
		if result, err = o.startTask(ctx, s, phase, desired); err == nil {
			return result
		}
	}
	switch {
	case notServed(err) && s.isBrought(kind) && !interrupted(err):
		return ObjectResult{ID: id, Action: Waiting, Wait: "the API server does not serve this kind yet"}
	case namespaceGoes(err):
		return ObjectResult{ID: id, Action: Waiting, Wait: fmt.Sprintf("namespace %s is being deleted", id.Namespace)}
	default:
		return failed(id, err)
	}
}

// taskObject is what is sent for a task.
func (s *session) taskObject(desired *unstructured.Unstructured, phase string) *unstructured.Unstructured {
	annotations := map[string]any{AnnotationRun: s.options.Tasks.runOf(phase)}
	for key, value := range desired.GetAnnotations() {
		if key != AnnotationRun {
			annotations[key] = value
		}
	}
	return withMetadata(desired, map[string]any{"annotations": annotations})
}

// startTask makes the object of a task, after the one of an earlier run is gone.
func (o *objects) startTask(ctx context.Context, s *session, phase string, desired *unstructured.Unstructured) (ObjectResult, error) {
	var result ObjectResult
	var err error = errAgain
	for attempt := 0; attempt < attempts && again(err); attempt++ {
		if attempt > 1 {
			backOff(ctx, attempt)
		}
		result, err = o.startTaskOnce(ctx, s, phase, desired)
	}
	return result, err
}

func (o *objects) startTaskOnce(ctx context.Context, s *session, phase string, desired *unstructured.Unstructured) (ObjectResult, error) {
	id := ownership.IDOf(desired)
	live, err := s.get(ctx, desired)
	for err == nil {
		switch wait, done, fault := s.earlierRun(ctx, phase, desired, live); {
		case fault != nil:
			return ObjectResult{}, fault
		case done:
			return begun(phase, live, live.GetCreationTimestamp().Time, false), nil
		case wait != "" && !s.wait(ctx):
			return ObjectResult{ID: id, Action: Waiting, Wait: wait}, nil
		}
		live, err = s.get(ctx, desired)
	}
	if !apierrors.IsNotFound(err) || notServed(err) {
		return ObjectResult{}, err
	}
	o.ledger.drop(s.owner.UID, id) // what was state under this name is no more
	made, err := s.create(ctx, desired)
	if apierrors.IsAlreadyExists(err) {
		return ObjectResult{}, errAgain
	}
	if err != nil {
		return ObjectResult{}, err
	}
	return begun(phase, made, time.Now(), true), nil
}

// earlierRun deals with an object that has the name of a task. It says why that has to be waited for; done is true if
// the object is this run's own, or stays and stands for it.
func (s *session) earlierRun(ctx context.Context, phase string, desired, live *unstructured.Unstructured) (wait string, done bool, err error) {
	id := ownership.IDOf(desired)
	if holder, held := ownership.OwnerOf(live); !held || holder.UID != s.owner.UID {
		return "", false, notOurs(id, holder, held)
	}
	switch {
	case live.GetAnnotations()[AnnotationRun] == s.options.Tasks.runOf(phase):
		return "", true, nil
	case live.GetDeletionTimestamp() != nil:
		return "the one of an earlier run " + goingNote(live.GetFinalizers()), false, nil
	}
	if _, isPrecious := precious[id.GroupKind()]; isPrecious {
		return "", true, nil // what it holds would be lost
	}
	policy, err := policyOf(desired)
	if err != nil {
		return "", false, &Error{ID: id, Reason: Rejected, Err: err}
	}
	if !policy.before {
		return "", false, &Error{
			ID: id, Reason: Rejected, Err: errors.New("the one of an earlier run is there"),
			Advice: fmt.Sprintf("delete it, or have the annotation %s of the task say %s", provisioner.AnnotationDeleteTask, provisioner.DeleteBeforeRun),
		}
	}
	if err := s.removeTask(ctx, live); err != nil && !apierrors.IsNotFound(err) {
		return "", false, err
	}
	return "the one of an earlier run is being deleted", false, nil
}

func notOurs(id ownership.ID, holder ownership.Owner, held bool) *Error {
	whose := "it exists and carries no mark of an instance"
	if held {
		whose = fmt.Sprintf("it exists and belongs to BundleInstance %s", holder)
	}
	return &Error{
		ID: id, Reason: CollisionReason, Err: errors.New(whose + "; a task never takes what is somebody else's"),
		Advice: "delete it, or rename one of the two",
	}
}

// begun is the result of a task whose object was made. What does not run has ended by being there.
func begun(phase string, made *unstructured.Unstructured, at time.Time, fresh bool) ObjectResult {
	report := TaskReport{Phase: phase, ID: ownership.IDOf(made), UID: made.GetUID(), State: TaskRunning, Started: at}
	return judged(report, made, fresh)
}

// watchTask looks how far a task is that was started.
func (s *session) watchTask(ctx context.Context, report TaskReport) ObjectResult {
	live, err := s.getTask(ctx, report)
	switch {
	case apierrors.IsNotFound(err) || notServed(err):
		return fail(report, "its object was deleted before its end was seen")
	case err != nil:
		result := failed(report.ID, err)
		result.Phase = report.Phase
		return result
	case live.GetUID() != report.UID:
		return fail(report, "its object was deleted, and another took its name, before its end was seen")
	}
	result := judged(report, live, false)
	switch limit := s.options.Tasks.Deadline; {
	case result.report.State == TaskFailed:
		if why := s.lastWords(ctx, live); why != "" {
			return fail(report, result.report.Message+": "+why)
		}
	case result.report.State == TaskRunning && limit > 0 && time.Since(report.Started) > limit:
		return fail(report, fmt.Sprintf("it has not ended within %s: %s", limit, result.Wait))
	}
	return result
}

func (s *session) getTask(ctx context.Context, report TaskReport) (*unstructured.Unstructured, error) {
	mapping, err := s.client.RESTMapper().RESTMapping(report.ID.GroupKind())
	if err != nil {
		return nil, err
	}
	like := &unstructured.Unstructured{}
	like.SetGroupVersionKind(mapping.GroupVersionKind)
	like.SetNamespace(report.ID.Namespace)
	like.SetName(report.ID.Name)
	return s.get(ctx, like)
}

// judged is the result of a task whose object is as live is.
func judged(report TaskReport, live *unstructured.Unstructured, fresh bool) ObjectResult {
	state, message := endOf(live)
	switch state {
	case TaskFailed:
		return fail(report, message)
	case TaskSucceeded:
		report.State, report.Ended = TaskSucceeded, time.Now()
		return ended(report)
	}
	return ObjectResult{ID: report.ID, Phase: report.Phase, Action: Waiting, Wait: message, report: &report, begun: fresh}
}

func fail(report TaskReport, message string) ObjectResult {
	report.State, report.Message, report.Ended = TaskFailed, oneLine(message), time.Now()
	return ended(report)
}

// ended is the result of a task that has ended.
func ended(report TaskReport) ObjectResult {
	result := ObjectResult{ID: report.ID, Phase: report.Phase, Action: Ran, report: &report}
	if report.State == TaskFailed {
		result.Action = Failed
		result.Err = &Error{ID: report.ID, Reason: TaskFailedReason, Err: fmt.Errorf("the task of phase %s failed: %s", report.Phase, report.Message)}
	}
	return result
}
