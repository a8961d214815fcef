// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/provisioner"
)

// job is a task that the cluster's own controller runs. Its Pod succeeds, or is "failed" or "not-ready" for ever.
func job(name, play string, annotations ...string) string {
	text := "{apiVersion: batch/v1, kind: Job, metadata: {name: " + name
	if len(annotations) > 0 {
		text += ", annotations: {" + strings.Join(annotations, ", ") + "}"
	}
	text += "}, spec: {backoffLimit: 0, template: {metadata: {annotations: {"
	if play != "" {
		text += "testenv.rukpak.io/pod: " + play
	}
	return text + "}}, spec: {restartPolicy: Never, containers: [{name: main, image: example.com/app:1}]}}}}"
}

func (s *stage) tasks(name string, on []provisioner.Moment, objects ...string) provisioner.Phase {
	s.Helper()
	phase := s.state(name, objects...)
	phase.On = on
	return phase
}

func (s *stage) state(name string, objects ...string) provisioner.Phase {
	s.Helper()
	phase := provisioner.Phase{Name: name}
	for _, text := range objects {
		phase.Objects = append(phase.Objects, s.parse(text))
	}
	return phase
}

func at(moments ...provisioner.Moment) []provisioner.Moment { return moments }

func (s *stage) jobUID(name string) types.UID {
	s.Helper()
	found := &batchv1.Job{}
	err := s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, found)
	if client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	return found.UID
}

func (s *stage) annotate(instance *v1alpha1.BundleInstance, name, value string) {
	s.Helper()
	fresh := &v1alpha1.BundleInstance{}
	s.must(s.client.Get(s.Context(), client.ObjectKeyFromObject(instance), fresh))
	before := fresh.DeepCopy()
	metav1.SetMetaDataAnnotation(&fresh.ObjectMeta, name, value)
	s.must(s.client.Patch(s.Context(), fresh, client.MergeFrom(before)))
}

func (s *stage) fresh(of *v1alpha1.InstanceRevision) *v1alpha1.InstanceRevision {
	s.Helper()
	found := &v1alpha1.InstanceRevision{}
	s.must(s.client.Get(s.Context(), client.ObjectKeyFromObject(of), found))
	return found
}

// told gives what the status says of the tasks, as "moment phase state".
func (s *stage) told(of *v1alpha1.InstanceRevision) string {
	s.Helper()
	var all []string
	for _, task := range s.fresh(of).Status.Tasks {
		all = append(all, task.Moment+" "+task.Phase+" "+string(task.State))
	}
	return strings.Join(all, ", ")
}

func TestTasksRunAtInstallAndAtUpgradeAndOnlyThen(t *testing.T) {
	s := newStage(t)
	instance := s.instance("app")
	phases := func(data string) []provisioner.Phase {
		return []provisioner.Phase{
			s.tasks("first", at(provisioner.OnInstall), job("install", "")),
			s.tasks("again", at(provisioner.OnUpgrade), job("upgrade", "")),
			s.state("configuration", configMap(data)),
			s.tasks("back", at(provisioner.OnRollback, provisioner.OnTest), configMap("never")),
		}
	}
	one := s.revisePhases(instance, 1, phases("a")...)
	s.until(instance, "active and healthy", s.is(one, v1alpha1.ConditionActive, v1alpha1.ReasonCompleted))
	if got := s.told(one); got != "Install first Succeeded" || s.jobUID("upgrade") != "" {
		t.Errorf("tasks: %s", got)
	}
	if got := s.condition(one, v1alpha1.ConditionActive); got.Message != "the 1 object is applied; 1 task run" {
		t.Errorf("Active says %q", got.Message)
	}
	installed, rest := s.jobUID("install"), s.fresh(one).ResourceVersion

	// Nothing of it is state: its absence is no drift, and a manager that knows nothing does not run it again.
	s.must(s.client.Delete(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "install"}}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	s.restart()
	for range 3 {
		s.must(s.reconcile(instance))
		time.Sleep(50 * time.Millisecond)
	}
	if uid := s.jobUID("install"); uid == installed && installed != "" || uid != "" && uid != installed {
		t.Errorf("the Job has UID %q, before it had %q", uid, installed)
	}
	if got := s.fresh(one).ResourceVersion; got != rest {
		t.Errorf("at rest the revision was written: %+v", s.fresh(one).Status)
	}

	two := s.revisePhases(instance, 2, phases("b")...)
	s.until(instance, "the first is superseded", s.is(one, v1alpha1.ConditionSuperseded, ""))
	if got := s.told(two); got != "Upgrade again Succeeded" || s.jobUID("install") != "" || s.exists("never") {
		t.Errorf("tasks: %s", got)
	}
	upgraded := s.jobUID("upgrade")
	three := s.revise(instance, 3, configMap("b")) // without any task
	s.until(instance, "the second is superseded", s.is(two, v1alpha1.ConditionSuperseded, ""))
	s.until(instance, "the third is healthy", s.is(three, v1alpha1.ConditionActive, v1alpha1.ReasonCompleted))
	if s.jobUID("upgrade") != upgraded {
		t.Error("what a task of an older revision left was pruned")
	}
	// That revision is not kept any more when the instance is deleted.
	s.must(s.client.Delete(t.Context(), two))
	s.must(s.client.Delete(t.Context(), instance))
	s.untilGone(instance)
	if s.jobUID("upgrade") != "" {
		t.Error("what a task left is still there after the instance is deleted")
	}
}

func (s *stage) untilGone(instance *v1alpha1.BundleInstance) {
	s.Helper()
	s.until(instance, "the instance is gone", func() bool {
		return s.client.Get(s.Context(), client.ObjectKeyFromObject(instance), &v1alpha1.BundleInstance{}) != nil
	})
}

func TestTaskThatFailsHoldsTheRevisionUntilItIsRetried(t *testing.T) {
	s := newStage(t)
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"))
	s.until(instance, "active and healthy", s.is(one, v1alpha1.ConditionActive, v1alpha1.ReasonCompleted))
	two := s.revisePhases(instance, 2,
		s.tasks("helpers", at(provisioner.OnUpgrade), configMap("helper")),
		s.tasks("migration", at(provisioner.OnUpgrade), job("migrate", "failed")),
		s.state("configuration", configMap("b")),
	)
	s.until(instance, "the second failed", s.is(two, v1alpha1.ConditionFailed, v1alpha1.ReasonTaskFailed))
	failed := s.condition(two, v1alpha1.ConditionFailed)
	for _, part := range []string{"Job.batch " + s.namespace + "/migrate: the task of phase migration failed: BackoffLimitExceeded", "exited with code 1", "rukpak.io/retry"} {
		if !strings.Contains(failed.Message, part) {
			t.Errorf("Failed says %q, want %q in it", failed.Message, part)
		}
	}
	if s.exists("b") || !s.exists("a") || !s.is(one, v1alpha1.ConditionActive, "")() {
		t.Error("what is active did not stay as it was")
	}
	if got := s.told(two); got != "Upgrade helpers Succeeded, Upgrade migration Failed" {
		t.Errorf("tasks: %s", got)
	}
	uid, rest := s.jobUID("migrate"), s.fresh(two).ResourceVersion
	s.restart()
	for range 3 {
		s.must(s.reconcile(instance)) // no error: it is not tried again
	}
	if s.jobUID("migrate") != uid || s.fresh(two).ResourceVersion != rest {
		t.Error("the task was run again, or the status written")
	}

	s.annotate(instance, v1alpha1.AnnotationRetry, "today")
	s.until(instance, "the task runs again", func() bool { now := s.jobUID("migrate"); return now != "" && now != uid })
	s.until(instance, "the second failed again", s.is(two, v1alpha1.ConditionFailed, v1alpha1.ReasonTaskFailed))
	if got := s.fresh(two).Status; got.Retries != 1 || got.Retry != "today" {
		t.Errorf("%d retries, for %q", got.Retries, got.Retry)
	}
}

func TestTaskIsWaitedForByTheManagerThatComesNext(t *testing.T) {
	s := newStage(t)
	instance := s.instance("app")
	one := s.revisePhases(instance, 1, s.tasks("setup", at(provisioner.OnInstall), job("setup", "not-ready")), s.state("configuration", configMap("a")))
	s.until(instance, "the task runs", func() bool { return s.told(one) == "Install setup Running" })
	uid := s.jobUID("setup")
	s.restart()
	s.must(s.reconcile(instance))
	if got := s.condition(one, v1alpha1.ConditionActive); got.Reason != v1alpha1.ReasonWaitingForObjects || !strings.Contains(got.Message, "setup: it runs") {
		t.Errorf("Active is %+v", got)
	}
	if s.jobUID("setup") != uid || s.exists("a") {
		t.Error("the task was run again, or not waited for")
	}
}

func TestDeletionRunsItsTasksAndIsHeldByOneThatFails(t *testing.T) {
	s := newStage(t)
	instance := s.instance("app")
	one := s.revisePhases(instance, 1,
		s.tasks("setup", at(provisioner.OnInstall), configMap("left"), strings.Replace(configMap("stays"), "metadata: {", `metadata: {annotations: {rukpak.io/prune: disabled}, `, 1)),
		s.state("configuration", configMap("a")),
		s.tasks("goodbye", at(provisioner.OnTeardown), job("goodbye", "")),
		s.tasks("backup", at(provisioner.OnTeardown), job("backup", "failed")),
		s.tasks("sweep", at(provisioner.OnTeardownFinish), job("sweep", "")),
	)
	s.until(instance, "active and healthy", s.is(one, v1alpha1.ConditionActive, v1alpha1.ReasonCompleted))
	s.must(s.client.Delete(t.Context(), instance))
	ready := func() metav1.Condition { return s.ready(instance) }
	s.until(instance, "the deletion is held", func() bool { return ready().Reason == v1alpha1.ReasonTaskFailed })
	if got := ready().Message; !strings.Contains(got, "/backup: the task of phase backup failed") || !strings.Contains(got, "rukpak.io/teardown-tasks=Skip") {
		t.Errorf("Ready says %q", got)
	}
	if !s.exists("a") || s.jobUID("sweep") != "" {
		t.Error("what comes after the task that failed was done")
	}
	if got := s.told(one); got != "Install setup Succeeded, Install setup Succeeded, Teardown goodbye Succeeded, Teardown backup Failed" {
		t.Errorf("tasks: %s", got)
	}
	uid := s.jobUID("backup")
	s.annotate(instance, v1alpha1.AnnotationRetry, "1")
	s.until(instance, "the task runs again", func() bool { now := s.jobUID("backup"); return now != "" && now != uid })
	s.until(instance, "the deletion is held again", func() bool { return ready().Reason == v1alpha1.ReasonTaskFailed })

	s.annotate(instance, v1alpha1.AnnotationTeardownTasks, v1alpha1.TeardownTasksSkip)
	s.untilGone(instance)
	if s.exists("a") || s.exists("left") || !s.exists("stays") || s.jobUID("backup") != "" || s.jobUID("goodbye") != "" {
		t.Errorf("there is a %v, left %v, stays %v, backup %q", s.exists("a"), s.exists("left"), s.exists("stays"), s.jobUID("backup"))
	}
}

func TestLastTasksOfADeletionComeAfterTheObjects(t *testing.T) {
	s := newStage(t)
	instance := s.instance("app")
	one := s.revisePhases(instance, 1,
		s.state("configuration", configMap("a")),
		s.tasks("goodbye", at(provisioner.OnTeardown), job("goodbye", "")),
		s.tasks("sweep", at(provisioner.OnTeardownFinish), job("sweep", "not-ready")),
	)
	s.until(instance, "active and healthy", s.is(one, v1alpha1.ConditionActive, v1alpha1.ReasonCompleted))
	s.must(s.client.Delete(t.Context(), instance))
	s.until(instance, "the last task runs", func() bool { return s.told(one) == "Teardown goodbye Succeeded, TeardownFinish sweep Running" })
	if s.exists("a") {
		t.Error("the objects are still there")
	}
	uid := s.jobUID("sweep")
	s.restart()
	s.must(s.reconcile(instance))
	if s.jobUID("sweep") != uid {
		t.Error("the task was run again by the next manager")
	}
	s.annotate(instance, v1alpha1.AnnotationTeardownTasks, v1alpha1.TeardownTasksSkip)
	s.untilGone(instance)
	if s.jobUID("sweep") != "" || s.jobUID("goodbye") != "" {
		t.Error("what the tasks left is still there")
	}
}

// ready is the condition Ready of an instance now.
func (s *stage) ready(of *v1alpha1.BundleInstance) metav1.Condition {
	s.Helper()
	fresh := &v1alpha1.BundleInstance{}
	s.must(s.client.Get(s.Context(), client.ObjectKeyFromObject(of), fresh))
	for _, condition := range fresh.Status.Conditions {
		if condition.Type == v1alpha1.ConditionReady {
			return condition
		}
	}
	return metav1.Condition{}
}
