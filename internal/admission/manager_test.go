// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// The namespace enforces the Pod Security Standard "restricted", so its API server is the judge.
func TestManagersPodMayRunUnderTheRestrictedStandard(t *testing.T) {
	env := cluster.Env(t)
	api, err := kubernetes.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	deployment := managerDeployment(t)
	create := func(change func(*corev1.PodSpec)) error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "manager-", Labels: deployment.Spec.Template.Labels},
			Spec:       *deployment.Spec.Template.Spec.DeepCopy(),
		}
		change(&pod.Spec)
		_, err := api.CoreV1().Pods(deployment.Namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := create(func(*corev1.PodSpec) {}); err != nil {
		t.Error(err)
	}
	err = create(func(spec *corev1.PodSpec) { spec.HostNetwork = true })
	if err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
		t.Errorf("a Pod in the host's network is not refused, so the test shows nothing: %v", err)
	}
}

func TestManagerWritesOnlyWhereItHasAVolume(t *testing.T) {
	container := managerDeployment(t).Spec.Template.Spec.Containers[0]
	if readOnly := container.SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
		t.Error("the root file system can be written")
	}
	mounted := map[string]bool{}
	for _, mount := range container.VolumeMounts {
		mounted[mount.MountPath] = true
	}
	for _, arg := range container.Args {
		if folder, ok := strings.CutPrefix(arg, "--store="); ok && !mounted[folder] {
			t.Errorf("the content store %s is on no volume", folder)
		}
	}
}

func TestManagerKnowsTheFlagsThatItsDeploymentGives(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(filepath.Dir(mustDir(t)), "cmd", "manager", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, arg := range managerDeployment(t).Spec.Template.Spec.Containers[0].Args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !strings.Contains(string(source), `"`+name+`"`) {
			t.Errorf("cmd/manager has no flag --%s", name)
		}
	}
}

func managerDeployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	text, err := os.ReadFile(mustDir(t, "manager", "deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict(text, deployment); err != nil {
		t.Fatal(err)
	}
	return deployment
}
