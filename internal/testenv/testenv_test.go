// SPDX-License-Identifier: Apache-2.0

package testenv_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"rukpak.io/rukpak/internal/testenv"
)

var cluster = testenv.Shared{Options: testenv.Options{Nodes: 2, Progress: os.Stderr}}

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

func TestDeploymentBecomesAvailable(t *testing.T) {
	env := cluster.Env(t)
	client := clientset(t, env.Config())
	namespace := env.NewNamespace(t)
	makeDeployment(t, client, namespace, "web", nil)
	eventually(t, "the Deployment is available", func(ctx context.Context) (bool, error) {
		live, err := client.AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
		return err == nil && live.Status.AvailableReplicas == 2, err
	})
}

func TestPodStaysNotReadyWhenItsAnnotationSaysSo(t *testing.T) {
	env := cluster.Env(t)
	client := clientset(t, env.Config())
	namespace := env.NewNamespace(t)
	makeDeployment(t, client, namespace, "web", map[string]string{"testenv.rukpak.io/pod": "not-ready"})
	eventually(t, "the Pods run without being ready", func(ctx context.Context) (bool, error) {
		live, err := client.AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		return err == nil && len(pods.Items) == 2 && live.Status.UnavailableReplicas == 2, err
	})
}

func TestJobCompletes(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	kubectl(t, env, "create", "job", "once", "--image=example.com/once", "-n", namespace)
	kubectl(t, env, "wait", "--for=condition=complete", "job/once", "-n", namespace, "--timeout=60s")
}

const otherWorkloads = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {hostNetwork: true, containers: [{name: main, image: example.com/agent}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  serviceName: store
  replicas: 2
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      initContainers: [{name: first, image: example.com/first}]
      containers: [{name: main, image: example.com/store}]
`

func TestOtherWorkloadsRollOut(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	if _, err := env.KubectlInput(t.Context(), otherWorkloads, "apply", "-n", namespace, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	for _, workload := range []string{"daemonset/agent", "statefulset/store"} {
		kubectl(t, env, "rollout", "status", workload, "-n", namespace, "--timeout=60s")
	}
}

const failingJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: fails}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {testenv.rukpak.io/pod: failed}}
    spec: {restartPolicy: Never, containers: [{name: main, image: example.com/fails}]}
`

func TestJobFailsWhenTheAnnotationOfItsPodSaysSo(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	if _, err := env.KubectlInput(t.Context(), failingJob, "apply", "-n", namespace, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	kubectl(t, env, "wait", "--for=condition=failed", "job/fails", "-n", namespace, "--timeout=60s")
}

func TestNamespaceIsGoneAfterItsDeletion(t *testing.T) {
	env := cluster.Env(t)
	client := clientset(t, env.Config())
	namespace := env.NewNamespace(t)
	makeDeployment(t, client, namespace, "web", nil)
	if err := client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

func TestServiceAccountMayDoWhatItsRulesSayAndNoMore(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	rules := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}
	name := env.ServiceAccount(t, namespace, rules)

	config := env.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: testenv.Account(namespace, name)}
	client := clientset(t, config)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}
	if _, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), settings, metav1.CreateOptions{}); err != nil {
		t.Errorf("create a ConfigMap in its own namespace: %v", err)
	}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), settings, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("create a ConfigMap in another namespace: got %v, want forbidden", err)
	}
	if _, err := client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list Secrets: got %v, want forbidden", err)
	}
}

func TestClusterServiceAccountReachesAllNamespaces(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	name := env.ClusterServiceAccount(t, namespace, testenv.Everything())
	config := env.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: testenv.Account(namespace, name)}
	if _, err := clientset(t, config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

func TestKubectlErrorSaysWhatKubectlSaid(t *testing.T) {
	env := cluster.Env(t)
	if got := kubectl(t, env, "get", "nodes", "-o", "name"); got != "node/node-1\nnode/node-2\n" {
		t.Errorf("nodes: got %q", got)
	}
	_, err := env.Kubectl(t.Context(), "get", "pod", "absent")
	if err == nil || !strings.Contains(err.Error(), `pods "absent" not found`) {
		t.Errorf("got error %v, want what kubectl printed", err)
	}
}

func TestKindsOfRukPakAreServedOnceInstalled(t *testing.T) {
	env := cluster.Env(t)
	for range 2 { // a second time changes nothing
		if err := env.InstallCRDs(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got := kubectl(t, env, "api-resources", "--api-group=rukpak.io", "-o", "name")
	if !strings.Contains(got, "bundleinstances.rukpak.io\n") {
		t.Errorf("served: %q", got)
	}
}

func TestInstallOfCRDsThatAreNotThereFails(t *testing.T) {
	env := cluster.Env(t)
	if err := env.InstallCRDs(t.Context(), "testdata/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the folder does not exist", err)
	}
}

func TestKubectlReadsItsInput(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	input := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: piped}\n"
	got, err := env.KubectlInput(t.Context(), input, "apply", "-n", namespace, "-f", "-")
	if err != nil || got != "configmap/piped created\n" {
		t.Errorf("got %q and error %v", got, err)
	}
}

// Not parallel, as nothing else is: the API server is gone for everybody.
func TestAPIServerComesBackWithItsData(t *testing.T) {
	env := cluster.Env(t)
	client := clientset(t, env.Config())
	namespace := env.NewNamespace(t)
	for name, stop := range map[string]func(){"stopped": env.StopAPIServer, "killed": env.KillAPIServer} {
		begun := time.Now()
		stop()
		t.Logf("%s after %s", name, time.Since(begun))
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err == nil {
			t.Errorf("%s API server answers", name)
		}
		begun = time.Now()
		if err := env.StartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("started again after %s", time.Since(begun))
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err != nil {
			t.Errorf("after %s and start: %v", name, err)
		}
	}
	makeDeployment(t, client, namespace, "web", nil)
	eventually(t, "controllers work with the new API server", func(ctx context.Context) (bool, error) {
		live, err := client.AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
		return err == nil && live.Status.AvailableReplicas == 2, err
	})
}

func makeDeployment(t *testing.T, client kubernetes.Interface, namespace, name string, annotations map[string]string) {
	t.Helper()
	labels, replicas := map[string]string{"app": name}, int32(2)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/web"}}},
			},
		},
	}
	if _, err := client.AppsV1().Deployments(namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func clientset(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func kubectl(t *testing.T, env *testenv.Env, args ...string) string {
	t.Helper()
	output, err := env.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func eventually(t *testing.T, what string, look func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, look); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
