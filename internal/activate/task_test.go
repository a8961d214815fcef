// SPDX-License-Identifier: Apache-2.0

package activate_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// diary keeps what the engine has noted, as a caller does. It outlives engines.
type diary struct {
	mu      sync.Mutex
	reports map[string]activate.TaskReport
	notes   int
}

func (d *diary) tasks(moment provisioner.Moment, run string) activate.Tasks {
	return activate.Tasks{Moment: moment, Run: run, Known: d.known, Note: d.note}
}

func (d *diary) known(phase string, id ownership.ID) (activate.TaskReport, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	report, ok := d.reports[phase+" "+id.String()]
	return report, ok
}

func (d *diary) note(_ context.Context, reports []activate.TaskReport) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reports == nil {
		d.reports = map[string]activate.TaskReport{}
	}
	d.notes++
	for _, report := range reports {
		d.reports[report.Phase+" "+report.ID.String()] = report
	}
	return nil
}

// begin has the engine run tasks of a moment from now on, as a run of their own.
func (s *stage) begin(moment provisioner.Moment, run string) *diary {
	d := &diary{}
	s.options.Tasks = d.tasks(moment, run)
	s.engine = activate.New(activate.Config{Observed: fresh{s.admin}, Patience: 150 * time.Millisecond})
	return d
}

func (s *stage) applyPhases(phases ...provisioner.Phase) activate.Result {
	s.Helper()
	return s.engine.Apply(s.Context(), s.admin, s.owner, phases, s.options)
}

func tasks(name string, objects ...*unstructured.Unstructured) provisioner.Phase {
	return provisioner.Phase{Name: name, On: []provisioner.Moment{provisioner.OnInstall}, Objects: objects}
}

func state(name string, objects ...*unstructured.Unstructured) provisioner.Phase {
	return provisioner.Phase{Name: name, Objects: objects}
}

// pod is a task that runs until the test says how it ends.
func pod(t testing.TB, name string, policy ...string) *unstructured.Unstructured {
	object := parse(t, "{apiVersion: v1, kind: Pod, metadata: {name: "+name+"}, spec: {restartPolicy: Never, containers: [{name: main, image: example.com/app:1}]}}")
	if len(policy) > 0 {
		object.SetAnnotations(map[string]string{provisioner.AnnotationDeleteTask: strings.Join(policy, ",")})
	}
	return object
}

// end makes the Pod of a task end as a kubelet would.
func (s *stage) end(like *unstructured.Unstructured, phase corev1.PodPhase, words string) {
	s.Helper()
	live := &corev1.Pod{}
	if err := s.admin.Get(s.Context(), types.NamespacedName{Namespace: s.namespace, Name: like.GetName()}, live); err != nil {
		s.Fatal(err)
	}
	code := int32(0)
	if phase == corev1.PodFailed {
		code = 3
	}
	live.Status.Phase = phase
	live.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: words},
	}}}
	if err := s.admin.Status().Update(s.Context(), live); err != nil {
		s.Fatal(err)
	}
}

// account waits for what a Pod needs.
func (s *stage) account() {
	eventually(s, "the default service account", func() bool {
		return s.admin.Get(s.Context(), types.NamespacedName{Namespace: s.namespace, Name: "default"}, &corev1.ServiceAccount{}) == nil
	})
}

// wants fails unless the result tells this of the named objects, as "Action name", in order.
func (s *stage) wants(result activate.Result, complete bool, want ...string) {
	s.Helper()
	var got []string
	for _, object := range result.Objects {
		got = append(got, string(object.Action)+" "+object.ID.Name)
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") || result.Complete != complete {
		s.Fatalf("got %v, complete %v, want %v, complete %v: %s", got, result.Complete, want, complete, result)
	}
}

func TestTasksRunAtTheirPlaceAndOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.account()
	d := s.begin(provisioner.OnInstall, "run-1")
	first, last := pod(t, "first"), pod(t, "last")
	phases := []provisioner.Phase{
		tasks("before", first),
		state("configuration", configMap(t, "config", "{a: b}")),
		tasks("after", last),
		{Name: "upgrades", On: []provisioner.Moment{provisioner.OnUpgrade, provisioner.OnTest}, Objects: objects(configMap(t, "never", "{}"))},
	}
	s.wants(s.applyPhases(phases...), false, "Waiting first")
	if live := s.live(first); live.GetAnnotations()[activate.AnnotationRun] != "run-1/Install/before" ||
		live.GetLabels()[ownership.LabelInstanceUID] != string(s.owner.UID) {
		t.Errorf("the object of the task has %v and %v", live.GetAnnotations(), live.GetLabels())
	}
	s.end(first, corev1.PodSucceeded, "")
	s.wants(s.applyPhases(phases...), false, "Ran first", "Created config", "Waiting last")
	s.end(last, corev1.PodSucceeded, "")
	s.delete(first) // as somebody may who tidies up
	s.wants(s.applyPhases(phases...), true, "Ran first", "Intact config", "Ran last")
	notes := d.notes
	result := s.applyPhases(phases...)
	s.wants(result, true, "Ran first", "Intact config", "Ran last")
	if result.Writes != 0 || d.notes != notes {
		t.Errorf("again: %d writes and %d notes", result.Writes, d.notes-notes)
	}
	if !s.gone(first) {
		t.Error("what has ended was run again")
	}

	s.options.Tasks = activate.Tasks{}
	s.wants(s.applyPhases(phases...), true, "Intact config")
	if result := s.engine.Prune(t.Context(), s.admin, s.owner, phases, s.options); result.Count(activate.Deleted) != 1 || s.gone(last) {
		t.Errorf("prune took a task: %s", result)
	}
}

func TestOneTaskInSeveralPhasesRunsInEach(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.begin(provisioner.OnInstall, "run-1")
	account := configMap(t, "helper", "{}")
	account.SetAnnotations(map[string]string{provisioner.AnnotationDeleteTask: "BeforeRun, Succeeded"})
	phases := []provisioner.Phase{tasks("before", account), state("configuration", configMap(t, "config", "{a: b}")), tasks("after", account)}
	s.wants(s.applyPhases(phases...), true, "Ran helper", "Created config", "Ran helper")
	if !s.gone(account) {
		t.Error("it is still there")
	}
}

// Helm deletes hooks that succeeded only after the last one of the event: those between use what they made.
func TestObjectsOfTasksGoTogetherAlsoWhenALaterOneFails(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.account()
	s.begin(provisioner.OnInstall, "run-1")
	helper := configMap(t, "helper", "{}")
	helper.SetAnnotations(map[string]string{provisioner.AnnotationDeleteTask: "Succeeded"})
	first, second, stays := pod(t, "first", "BeforeRun", "Succeeded"), pod(t, "second", "Failed"), pod(t, "stays", "BeforeRun")
	phases := []provisioner.Phase{
		tasks("one", helper), tasks("two", first, stays), tasks("three", second),
		state("configuration", configMap(t, "config", "{a: b}")),
	}
	s.wants(s.applyPhases(phases...), false, "Ran helper", "Waiting first", "Waiting stays")
	s.end(first, corev1.PodSucceeded, "")
	s.end(stays, corev1.PodSucceeded, "")
	s.wants(s.applyPhases(phases...), false, "Ran helper", "Ran first", "Ran stays", "Waiting second")
	if s.gone(helper) || s.gone(first) {
		t.Error("what succeeded is gone, though a task after it may need it")
	}
	s.end(second, corev1.PodFailed, "no\nsuch table")
	result := s.applyPhases(phases...)
	s.wants(result, false, "Ran helper", "Ran first", "Ran stays", "Failed second")
	if result.Reason() != activate.TaskFailedReason || result.Skipped != 1 ||
		!strings.Contains(result.Err().Error(), "the task of phase three failed: it says not why: container main of Pod second exited with code 3: no such table") {
		t.Errorf("got %s", result)
	}
	if !s.gone(helper) || !s.gone(first) || !s.gone(second) || s.gone(stays) || !s.gone(configMap(t, "config", "{}")) {
		t.Errorf("gone: helper %v, first %v, second %v, stays %v", s.gone(helper), s.gone(first), s.gone(second), s.gone(stays))
	}
	again := s.applyPhases(phases...)
	s.wants(again, false, "Ran helper", "Ran first", "Ran stays", "Failed second")
	if again.Writes != 0 || again.Err().Error() != result.Err().Error() {
		t.Errorf("again: %d writes, %s", again.Writes, again)
	}
}

func TestObjectOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	earlier := func(s *stage, x *unstructured.Unstructured) {
		s.begin(provisioner.OnInstall, "run-0")
		s.applyPhases(tasks("p", x))
	}
	tests := map[string]struct {
		policy []string
		before func(s *stage, x *unstructured.Unstructured)
		action activate.Action
		anew   bool
		says   string
	}{
		"ItGoesFirst":       {before: earlier, action: activate.Ran, anew: true},
		"ItGoesFirstAsSaid": {policy: []string{"Failed", "BeforeRun"}, before: earlier, action: activate.Ran, anew: true},
		"ItIsInTheWay": {
			policy: []string{"Failed"}, before: earlier, action: activate.Failed,
			says: "the one of an earlier run is there: delete it, or have the annotation rukpak.io/delete-task of the task say BeforeRun",
		},
		"NoSuchPolicy": {policy: []string{"OnTuesdays"}, before: earlier, action: activate.Failed, says: `"OnTuesdays" is none of BeforeRun, Succeeded and Failed`},
		"OfAStranger": {
			before: func(s *stage, x *unstructured.Unstructured) { s.stranger(x) }, action: activate.Collision,
			says: "it exists and carries no mark of an instance; a task never takes what is somebody else's: delete it, or rename one of the two",
		},
		"OfAnotherInstance": {
			before: func(s *stage, x *unstructured.Unstructured) {
				mine := s.owner
				s.owner = ownership.Owner{UID: "uid-other", Namespace: s.namespace, Name: "other"}
				earlier(s, x)
				s.owner = mine
			},
			action: activate.Collision, says: "belongs to BundleInstance NAMESPACE/other",
		},
		"ThatWasState": {
			before: func(s *stage, x *unstructured.Unstructured) { s.mustApply(x) }, action: activate.Ran, anew: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			x := configMap(t, "x", "{a: b}")
			tc.before(s, x)
			if tc.policy != nil {
				x.SetAnnotations(map[string]string{provisioner.AnnotationDeleteTask: strings.Join(tc.policy, ",")})
			}
			uid := s.live(x).GetUID()
			s.begin(provisioner.OnInstall, "run-1")
			s.options.Adoption = ownership.AdoptForce // also then a task takes nothing from others
			got := only(t, s.applyPhases(tasks("p", x)))
			if got.Action != tc.action || (s.live(x).GetUID() != uid) != tc.anew {
				t.Errorf("got %s, made anew %v", got, s.live(x).GetUID() != uid)
			}
			if want := strings.ReplaceAll(tc.says, "NAMESPACE", s.namespace); want != "" && !strings.Contains(got.String(), want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestWhatHoldsDataIsNotMadeAnew(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	claim := parse(t, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`)
	s.begin(provisioner.OnInstall, "run-1")
	s.wants(s.applyPhases(tasks("p", claim)), true, "Ran data")
	uid := s.live(claim).GetUID()
	s.begin(provisioner.OnInstall, "run-2")
	s.wants(s.applyPhases(tasks("p", claim)), true, "Ran data")
	if s.live(claim).GetUID() != uid {
		t.Error("the claim was deleted, and its data with it")
	}
}

func TestJobIsWaitedForAndFailsWithWhatItSays(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	job := parse(t, `
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  managedBy: example.com/test # so that the test says how it ends, not the controller
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.com/app:1}]}}
`)
	conditions := map[string]string{
		"Succeeded": `{"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T00:00:01Z","succeeded":1,"uncountedTerminatedPods":{},"conditions":[
			{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":"2026-01-01T00:00:01Z","lastProbeTime":null},
			{"type":"Complete","status":"True","lastTransitionTime":"2026-01-01T00:00:01Z","lastProbeTime":null}]}`,
		"Failed": `{"startTime":"2026-01-01T00:00:00Z","failed":1,"uncountedTerminatedPods":{},"conditions":[
			{"type":"FailureTarget","status":"True","reason":"BackoffLimitExceeded","message":"too often","lastTransitionTime":"2026-01-01T00:00:01Z","lastProbeTime":null},
			{"type":"Failed","status":"True","reason":"BackoffLimitExceeded","message":"too often","lastTransitionTime":"2026-01-01T00:00:01Z","lastProbeTime":null}]}`,
	}
	for _, want := range []string{"Failed", "Succeeded"} {
		s.begin(provisioner.OnInstall, "run-"+want)
		var result activate.Result
		eventually(t, "the Job of the earlier run is gone", func() bool {
			result = s.applyPhases(tasks("p", job))
			return !strings.Contains(result.String(), "earlier run")
		})
		if got := only(t, result); got.Wait != "it runs" {
			t.Fatalf("got %s", got)
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":`+conditions[want]+`}`))
		if err := s.admin.Status().Patch(t.Context(), s.inNamespace(job), patch); err != nil {
			t.Fatal(err)
		}
		got := only(t, s.applyPhases(tasks("p", job)))
		if want == "Succeeded" && got.Action != activate.Ran || want == "Failed" &&
			(got.Action != activate.Failed || !strings.Contains(got.String(), "Job.batch "+s.namespace+"/migrate: the task of phase p failed: BackoffLimitExceeded: too often")) {
			t.Errorf("%s: got %s", want, got)
		}
	}
}

func TestTaskThatIsTakenAwayOrTakesTooLongFails(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		disturb func(s *stage, x *unstructured.Unstructured)
		says    string
	}{
		"Deleted": {func(s *stage, x *unstructured.Unstructured) { s.delete(x) }, "its object was deleted before its end was seen"},
		"Replaced": {
			func(s *stage, x *unstructured.Unstructured) { s.delete(x); s.stranger(x) },
			"its object was deleted, and another took its name, before its end was seen",
		},
		"TooLate": {
			func(s *stage, _ *unstructured.Unstructured) { s.options.Tasks.Deadline = time.Nanosecond }, "it has not ended within 1ns: it runs",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.account()
			s.begin(provisioner.OnInstall, "run-1")
			x := pod(t, "x")
			s.wants(s.applyPhases(tasks("p", x)), false, "Waiting x")
			tc.disturb(s, x)
			for range 2 { // it is not run again
				got := only(t, s.applyPhases(tasks("p", x)))
				if got.Action != activate.Failed || !strings.Contains(got.String(), "the task of phase p failed: "+tc.says) {
					t.Errorf("got %s", got)
				}
			}
		})
	}
}
