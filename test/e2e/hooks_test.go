// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

// hook is a Job of a chart. Its Pod succeeds, or is "failed" or "not-ready" for ever.
func hook(name, on, policy, play string) string {
	annotation := ""
	if play != "" {
		annotation = "\n      annotations: {testenv.rukpak.io/pod: " + play + "}"
	}
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: %s
  annotations: {helm.sh/hook: "%s", helm.sh/hook-delete-policy: "%s"}
spec:
  backoffLimit: 0
  template:
    metadata:%s
      labels: {hook: %s}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.k8s.io/pause:3.10"}]
`, name, on, policy, annotation, name)
}

func chartFiles(templates map[string]string) map[string]string {
	files := map[string]string{"Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n"}
	for name, text := range templates {
		files["templates/"+name] = text
	}
	return files
}

// charts makes a tenant whose class renders charts.
func charts(t *testing.T) *tenant {
	t.Helper()
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.class += "-helm"
	a.create(&v1alpha1.ProvisionerClass{
		ObjectMeta: metav1.ObjectMeta{Name: a.class},
		Spec:       v1alpha1.ProvisionerClassSpec{Provisioner: "helm.rukpak.io", Approval: v1alpha1.ApprovalPolicy{Mode: v1alpha1.ApprovalAutomatic}},
	})
	return a
}

// job gives the UID of a Job, "" if there is none.
func (a *tenant) job(name string) types.UID {
	a.t.Helper()
	found := &batchv1.Job{}
	err := a.client.Get(a.t.Context(), client.ObjectKey{Namespace: a.namespace, Name: name}, found)
	if client.IgnoreNotFound(err) != nil {
		a.t.Fatal(err)
	}
	return found.UID
}

func (a *tenant) told(revision string) string {
	var all []string
	for _, task := range a.revision(revision).Status.Tasks {
		all = append(all, fmt.Sprintf("%s %s %s", task.Moment, task.Object[strings.LastIndex(task.Object, "/")+1:], task.State))
	}
	return strings.Join(all, ", ")
}

func TestHooksOfAChartRunThroughItsLife(t *testing.T) {
	t.Parallel()
	a := charts(t)
	a.instance("shop", a.push("v1", chartFiles(map[string]string{
		"config.yaml":  configMap("one", "1"),
		"install.yaml": hook("install", "pre-install", "hook-succeeded", ""),
		"migrate.yaml": hook("migrate", "pre-upgrade", "before-hook-creation", ""),
		"bye.yaml":     hook("bye", "pre-delete", "hook-succeeded", ""),
	})))
	a.ready("shop")
	if got := a.told("shop-1"); got != "Install install Succeeded" {
		t.Errorf("tasks at install: %s", got)
	}
	if got := a.revision("shop-1").Status.Plan; got.Tasks != 1 || got.Added != 1 {
		t.Errorf("the plan: %+v", got)
	}
	if a.job("install") != "" {
		t.Error("the hook that succeeded is still there, though its policy says otherwise")
	}

	// The next version has a hook that fails: what is active stays, and nothing of the next is there.
	ref := a.push("v2", chartFiles(map[string]string{
		"config.yaml":  configMap("one", "2"),
		"before.yaml":  hook("before", "pre-upgrade", "hook-succeeded", ""),
		"migrate.yaml": strings.Replace(hook("migrate", "pre-upgrade", "before-hook-creation", "failed"), "annotations: {", "annotations: {helm.sh/hook-weight: \"5\", ", 1),
		"bye.yaml":     hook("bye", "pre-delete", "hook-succeeded", ""),
	}))
	a.update("shop", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(ref) })
	a.condition("shop", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonTaskFailed)
	if got := a.told("shop-2"); got != "Upgrade before Succeeded, Upgrade migrate Failed" {
		t.Errorf("tasks at upgrade: %s", got)
	}
	a.value("one", "1")
	if a.job("before") != "" || a.job("migrate") == "" {
		t.Errorf("before %q, migrate %q: want the one that succeeded gone, and the one that failed there", a.job("before"), a.job("migrate"))
	}
	if got := a.get("shop").Status.Active; got == nil || got.Number != 1 {
		t.Errorf("active is %+v", got)
	}

	good := a.push("v3", chartFiles(map[string]string{
		"config.yaml":  configMap("one", "3"),
		"migrate.yaml": hook("migrate", "pre-upgrade", "before-hook-creation", ""),
		"bye.yaml":     hook("bye", "pre-delete", "hook-succeeded", ""),
	}))
	failed := a.job("migrate")
	a.update("shop", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(good) })
	a.ready("shop")
	a.value("one", "3")
	if now := a.job("migrate"); now == "" || now == failed {
		t.Errorf("the Job of the run before is still there: %q", now)
	}

	instance := a.get("shop")
	if err := a.client.Delete(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	a.gone(instance)
	if a.job("migrate") != "" || a.job("bye") != "" {
		t.Error("hooks are left behind")
	}
}

func TestAHookThatFailsLeadsBack(t *testing.T) {
	a := charts(t)
	a.instance("shop", a.push("v1", chartFiles(map[string]string{
		"config.yaml": configMap("one", "1"), "back.yaml": hook("back", "pre-rollback", "before-hook-creation", ""),
	})), func(i *v1alpha1.BundleInstance) { i.Spec.Strategy.OnFailure = v1alpha1.OnFailureRollback })
	a.ready("shop")
	ref := a.push("v2", chartFiles(map[string]string{"config.yaml": configMap("one", "2"), "check.yaml": hook("check", "post-upgrade", "before-hook-creation", "failed")}))
	a.update("shop", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(ref) })
	a.condition("shop", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRolledBack)
	a.value("one", "1")
	if got := a.message("shop", v1alpha1.ConditionReady); !strings.Contains(got, "because revision 2 failed: TaskFailed: Job.batch "+a.namespace+"/check") {
		t.Errorf("Ready says %q", got)
	}
	if got := a.told("shop-3"); got != "Rollback back Succeeded" {
		t.Errorf("tasks at rollback: %s", got)
	}
}

// A manager that is killed while a hook runs is replaced by one that waits for the same Job.
func TestAManagerKilledWhileAHookRunsWaitsForIt(t *testing.T) {
	a := charts(t)
	a.instance("shop", a.push("v1", chartFiles(map[string]string{"config.yaml": configMap("one", "1"), "install.yaml": hook("install", "pre-install", "before-hook-creation", "not-ready")})))
	a.waitFor(moment{step: "the hook runs", reached: func(a *tenant) bool { return a.peek("shop-1") != nil && a.told("shop-1") == "Install install Running" }})
	uid := a.job("install")
	env.StopManager(0)
	a.startManager()
	a.eventually("the Pod of the hook ends", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := a.client.List(ctx, &pods, client.InNamespace(a.namespace), client.MatchingLabels{"hook": "install"}); err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].Status.Phase == corev1.PodPending {
			return fmt.Errorf("%d Pods", len(pods.Items))
		}
		pod := &pods.Items[0]
		pod.Status.Phase = corev1.PodSucceeded
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}}
		if err := a.client.Status().Update(ctx, pod); !apierrors.IsConflict(err) {
			return err
		}
		return fmt.Errorf("it changed meanwhile")
	})
	a.ready("shop")
	if got := a.job("install"); got != uid {
		t.Errorf("the hook ran again: %q, before %q", got, uid)
	}
}
