// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/devenv"
	"rukpak.io/rukpak/internal/wire"
)

// patience is how long a state is waited for. It bounds a failure; a success
// takes as long as it takes.
const patience = 90 * time.Second

var env *devenv.Env

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	started, err := devenv.Start(context.Background(), devenv.Options{Nodes: 1, Progress: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	env = started
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// tenant is a namespace with a service account that may do everything, and a
// class of its own.
type tenant struct {
	t         *testing.T
	client    client.Client
	namespace string
	class     string
	patience  time.Duration // how long a state is waited for
}

const account = "installer"

func newTenant(t *testing.T, mode v1alpha1.ApprovalMode) *tenant {
	t.Helper()
	c, err := client.New(env.Cluster.Config(), client.Options{Scheme: wire.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	a := &tenant{t: t, client: c, namespace: env.Cluster.NewNamespace(t), patience: patience}
	a.class = a.namespace
	a.create(&v1alpha1.ProvisionerClass{
		ObjectMeta: metav1.ObjectMeta{Name: a.class},
		Spec:       v1alpha1.ProvisionerClassSpec{Provisioner: "plain.rukpak.io", Approval: v1alpha1.ApprovalPolicy{Mode: mode}},
	})
	a.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: account}})
	a.grant("cluster-admin")
	t.Cleanup(func() { a.dumpIfFailed() })
	return a
}

func (a *tenant) grant(role string) {
	a.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: a.namespace + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: a.namespace, Name: account}},
	})
}

func (a *tenant) create(object client.Object) {
	a.t.Helper()
	if err := a.client.Create(a.t.Context(), object); err != nil {
		a.t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

// push publishes files as an artifact with the command line, and gives its reference.
func (a *tenant) push(tag string, files map[string]string) string {
	a.t.Helper()
	return a.pushDir(tag, a.folder(files))
}

// folder is a new folder with files.
func (a *tenant) folder(files map[string]string) string {
	a.t.Helper()
	dir := a.t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			a.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return dir
}

func (a *tenant) pushDir(tag, dir string) string {
	a.t.Helper()
	ref := env.Registry.Host() + "/" + a.namespace + "/app:" + tag
	if out, err := exec.CommandContext(a.t.Context(), env.CLI(), "push", dir, ref, "--insecure").CombinedOutput(); err != nil {
		a.t.Fatalf("push: %v\n%s", err, out)
	}
	return ref
}

// instance creates an instance of the artifact.
func (a *tenant) instance(name, ref string, mods ...func(*v1alpha1.BundleInstance)) {
	a.t.Helper()
	instance := &v1alpha1.BundleInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name},
		Spec: v1alpha1.BundleInstanceSpec{
			Bundle:             a.bundle(ref),
			ServiceAccountName: account,
		},
	}
	for _, mod := range mods {
		mod(instance)
	}
	a.create(instance)
}

func (a *tenant) bundle(ref string) *v1alpha1.BundleSpec {
	return &v1alpha1.BundleSpec{
		ProvisionerClassName: a.class,
		Sources:              []v1alpha1.BundleSource{{OCI: &v1alpha1.OCISource{Ref: ref, Insecure: true}}},
	}
}

// update changes an instance, again if somebody else was faster.
func (a *tenant) update(name string, change func(*v1alpha1.BundleInstance)) {
	a.t.Helper()
	a.eventually("update of "+name, func(ctx context.Context) error {
		instance := a.get(name)
		change(instance)
		return a.client.Update(ctx, instance)
	})
}

func (a *tenant) get(name string) *v1alpha1.BundleInstance {
	a.t.Helper()
	instance := &v1alpha1.BundleInstance{}
	if err := a.client.Get(a.t.Context(), types.NamespacedName{Namespace: a.namespace, Name: name}, instance); err != nil {
		a.t.Fatal(err)
	}
	return instance
}

func (a *tenant) revision(name string) *v1alpha1.InstanceRevision {
	a.t.Helper()
	revision := &v1alpha1.InstanceRevision{}
	if err := a.client.Get(a.t.Context(), types.NamespacedName{Namespace: a.namespace, Name: name}, revision); err != nil {
		a.t.Fatal(err)
	}
	return revision
}

// approve decides on a revision as the admin that the tests are.
func (a *tenant) approve(name string, decision v1alpha1.ApprovalDecision) {
	a.t.Helper()
	a.create(a.approval(name, decision, a.user()))
}

// approval is a decision on a revision as it is now.
func (a *tenant) approval(name string, decision v1alpha1.ApprovalDecision, approver string, groups ...string) *v1alpha1.Approval {
	a.t.Helper()
	revision := a.revision(name)
	return &v1alpha1.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, GenerateName: name + "-"},
		Spec: v1alpha1.ApprovalSpec{
			Revision: name, ManifestDigest: revision.Spec.ManifestDigest, ProvisionerClassName: revision.Spec.ProvisionerClassName,
			Decision: decision, Approver: approver, Groups: groups,
		},
	}
}

func (a *tenant) user() string {
	a.t.Helper()
	name, err := env.Cluster.Kubectl(a.t.Context(), "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	if err != nil {
		a.t.Fatal(err)
	}
	return strings.TrimSpace(name)
}

// eventually repeats a check until it gives no error.
func (a *tenant) eventually(what string, check func(context.Context) error) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), a.patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			a.t.Fatalf("%s: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ready waits until the newest revision of an instance is active and healthy,
// for the spec as it is now.
func (a *tenant) ready(name string) *v1alpha1.BundleInstance {
	a.t.Helper()
	a.condition(name, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	return a.get(name)
}

// condition waits for a condition of an instance, at the present generation.
func (a *tenant) condition(name, conditionType string, status metav1.ConditionStatus, reason string) {
	a.t.Helper()
	a.eventually(fmt.Sprintf("%s of %s", conditionType, name), func(context.Context) error {
		instance := a.get(name)
		found := meta.FindStatusCondition(instance.Status.Conditions, conditionType)
		switch {
		case instance.Status.ObservedGeneration != instance.Generation || found == nil:
			return fmt.Errorf("not observed yet: %+v", instance.Status.Conditions)
		case found.Status != status || reason != "" && found.Reason != reason:
			return fmt.Errorf("is %s, %s: %s", found.Status, found.Reason, found.Message)
		}
		return nil
	})
}

func (a *tenant) dumpIfFailed() {
	if !a.t.Failed() {
		return
	}
	ctx := context.WithoutCancel(a.t.Context())
	for _, args := range [][]string{
		{"get", "rukpak", "-n", a.namespace, "-o", "wide"},
		{"get", "bundleinstances,instancerevisions,bundles", "-n", a.namespace, "-o", "yaml"},
	} {
		out, _ := env.Cluster.Kubectl(ctx, args...)
		a.t.Log(out)
	}
	log, _ := os.ReadFile(env.ManagerLog())
	lines := strings.Split(string(log), "\n")
	a.t.Log("manager: " + strings.Join(lines[max(0, len(lines)-40):], "\n"))
}
