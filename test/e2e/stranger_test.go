// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/testenv/assets"
	"rukpak.io/rukpak/internal/testenv/process"
)

const (
	strangerClass     = "jsonnet"
	strangerNamespace = "jsonnet-provisioner"
)

// stranger is the example of a provisioner that is not part of RukPak: a program of another module, which runs with the
// rights that its own manifests give it.
type stranger struct {
	a          *tenant
	example    string // folder of its module
	dir        string
	kubeconfig string
	running    *process.Process
}

func newStranger(a *tenant) *stranger {
	t := a.t
	t.Helper()
	root, err := assets.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	example := filepath.Join(root, "examples", "jsonnet")
	s := &stranger{a: a, example: example, dir: t.TempDir()}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(s.dir, "jsonnet"), ".")
	build.Dir = example
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build examples/jsonnet: %v\n%s", err, out)
	}
	for _, file := range []string{"rights.yaml", "class.yaml"} {
		s.kubectl("apply", "-f", filepath.Join(example, "deploy", file))
	}
	s.kubectl("apply", "--dry-run=server", "-f", filepath.Join(example, "deploy", "deployment.yaml"))
	s.kubeconfig = s.login()
	t.Cleanup(s.stop)
	return s
}

func (s *stranger) kubectl(args ...string) string {
	s.a.t.Helper()
	out, err := env.Cluster.Kubectl(s.a.t.Context(), args...)
	if err != nil {
		s.a.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// login writes a kubeconfig of the provisioner's service account.
func (s *stranger) login() string {
	s.a.t.Helper()
	token := s.kubectl("create", "token", "jsonnet-provisioner", "-n", strangerNamespace)
	admin := env.Cluster.Config()
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData, CertificateAuthority: admin.CAFile}
	config.AuthInfos["stranger"] = &clientcmdapi.AuthInfo{Token: strings.TrimSpace(token)}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: "stranger"}
	config.CurrentContext = "local"
	path := filepath.Join(s.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		s.a.t.Fatal(err)
	}
	return path
}

func (s *stranger) start() {
	s.a.t.Helper()
	var err error
	s.running, err = process.Start(process.Spec{
		Name: "jsonnet", Path: filepath.Join(s.dir, "jsonnet"), Dir: s.dir,
		Args: []string{"--kubeconfig=" + s.kubeconfig, "--health-address=0", "--log-text", "--workers=2"},
	})
	if err != nil {
		s.a.t.Fatal(err)
	}
}

// stop kills it.
func (s *stranger) stop() {
	if s.running == nil {
		return
	}
	s.running.Stop(0)
	if s.a.t.Failed() {
		s.a.t.Log("the provisioner: " + s.running.Tail(30))
	}
	s.running = nil
}

// class waits for a condition of the class.
func (s *stranger) class(reason string) {
	s.a.t.Helper()
	s.a.eventually("ProvisionerClass "+strangerClass+" says "+reason, func(ctx context.Context) error {
		class := &v1alpha1.ProvisionerClass{}
		if err := s.a.client.Get(ctx, client.ObjectKey{Name: strangerClass}, class); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(class.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Reason != reason {
			return fmt.Errorf("it says %+v", ready)
		}
		return nil
	})
}

func (s *stranger) configure(name, config string) {
	s.a.t.Helper()
	s.a.update(name, func(i *v1alpha1.BundleInstance) { i.Spec.Config = &runtime.RawExtension{Raw: json.RawMessage(config)} })
}

// A provisioner that is not part of RukPak goes the whole way. While nobody serves it, who waits for it says so, and who
// does not is left alone; when somebody does again, all go on.
func TestAStrangersProvisionerGoesTheWholeWay(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalManual)
	s := newStranger(a)
	a.class = strangerClass
	s.class(v1alpha1.ReasonProvisionerNotFound)
	s.start()
	s.class(v1alpha1.ReasonServed)

	ref := a.pushDir("v1", filepath.Join(s.example, "testdata", "web"))
	a.instance("web", ref, func(i *v1alpha1.BundleInstance) {
		i.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"name": "shop"}`)}
	})
	a.condition("web", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	if got := a.revision("web-1").Status.Plan.Added; got != 2 {
		t.Errorf("the plan adds %d objects, want a Deployment and a Service", got)
	}
	a.approve("web-1", v1alpha1.DecisionApprove)
	a.ready("web")
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "shop"}}
	if err := a.client.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
		t.Fatal(err)
	}

	t.Log("a mistake in the configuration is told with the words of the provisioner")
	s.configure("web", `{"nam": "shop"}`)
	a.condition("web", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidConfig)
	s.configure("web", `{"name": "shop"}`)
	a.ready("web")

	s.stop()
	s.class(v1alpha1.ReasonProvisionerNotFound)
	a.ready("web") // it waits for nothing
	s.configure("web", `{"name": "shop", "replicas": 3}`)
	a.condition("web", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonProvisionerNotFound)
	ready := meta.FindStatusCondition(a.get("web").Status.Conditions, v1alpha1.ConditionReady)
	for _, word := range []string{`ProvisionerClass "jsonnet"`, `nobody serves the provisioner "jsonnet.example.com"`} {
		if !strings.Contains(ready.Message, word) {
			t.Errorf("the condition says %q, and not %q", ready.Message, word)
		}
	}
	if active := a.get("web").Status.Active; active == nil || active.Name != "web-1" {
		t.Errorf("active is %+v, want web-1 as before", active)
	}

	s.start()
	s.class(v1alpha1.ReasonServed)
	a.condition("web", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	plan := a.revision("web-2").Status.Plan
	if plan.Added != 1 || plan.Changed != 1 {
		t.Errorf("the plan is %+v, want a PodDisruptionBudget added and the Deployment changed", plan)
	}
	a.approve("web-2", v1alpha1.DecisionApprove)
	a.ready("web")

	t.Log("a manager that is started again finds the provisioner")
	env.StopManager(10 * time.Second)
	if err := env.StartManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.configure("web", `{"name": "shop", "replicas": 2}`)
	a.eventually("revision 3", func(ctx context.Context) error {
		return a.client.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: "web-3"}, &v1alpha1.InstanceRevision{})
	})
	s.class(v1alpha1.ReasonServed)
	s.mayNothingElse()
}

// mayNothingElse tries what the account of the provisioner could do with its rights, were they too wide.
func (s *stranger) mayNothingElse() {
	s.a.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		s.a.t.Fatal(err)
	}
	as, err := client.New(config, client.Options{})
	if err != nil {
		s.a.t.Fatal(err)
	}
	if err := as.List(s.a.t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		s.a.t.Errorf("it lists Secrets: %v", err)
	}
	for _, path := range []string{"plain.rukpak.io/work", "other.example.com/work", "jsonnet.example.com/read/x"} {
		out, err := exec.CommandContext(s.a.t.Context(), env.Cluster.KubectlPath(), "--kubeconfig", s.kubeconfig, "create", "--raw", //nolint:gosec // a test's own command
			"/apis/content.rukpak.io/v1alpha1/provisioners/"+path, "-f", os.DevNull).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "orbidden") {
			s.a.t.Errorf("%s: %v, %s", path, err, out)
		}
	}
}

// The example is a module of its own, which `go test ./...` does not reach.
func TestTheExampleOfAProvisionerPassesItsOwnTests(t *testing.T) {
	root, err := assets.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	test := exec.CommandContext(t.Context(), "go", "test", "./...")
	test.Dir = filepath.Join(root, "examples", "jsonnet")
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
