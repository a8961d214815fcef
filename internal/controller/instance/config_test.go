// SPDX-License-Identifier: Apache-2.0

package instance_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/provisioners/plain"
	"rukpak.io/rukpak/provisioner"
)

// echo renders a ConfigMap that holds the configuration, and what is served if it is asked to.
type echo struct {
	rendered int
	served   bool
}

func (*echo) ID() string { return plain.New().ID() }

func (*echo) Validate(context.Context, fs.FS, json.RawMessage) error { return nil }

func (e *echo) Render(_ context.Context, req provisioner.Request) (provisioner.Result, error) {
	e.rendered++
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "echo"}}}
	data := map[string]any{"config": string(req.Config)}
	if e.served {
		data["apis"] = strings.Join(req.Cluster.APIs, " ")
	}
	object.Object["data"] = data
	return provisioner.Result{Phases: provisioner.ByKind([]*unstructured.Unstructured{object}), Varies: []string{"the number of calls"}}, nil
}

// change changes the instance, app.
func (s *stage) change(how func(*v1alpha1.BundleInstance)) {
	s.Helper()
	app := s.app()
	how(app)
	s.must(s.client.Update(s.Context(), app))
}

func (s *stage) app() *v1alpha1.BundleInstance {
	s.Helper()
	app := &v1alpha1.BundleInstance{}
	s.must(s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: "app"}, app))
	return app
}

// held reconciles an instance that cannot go on, and gives the reason and message of its Ready condition.
func (s *stage) held() (reason, message string) {
	s.Helper()
	_, _ = s.control.Reconcile(s.Context(), s.app())
	ready := meta.FindStatusCondition(s.app().Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		s.Fatal("no condition Ready")
	}
	return ready.Reason, ready.Message
}

// mayRead lets the account of the instance read ConfigMaps and Secrets.
func (s *stage) mayRead() {
	s.Helper()
	s.must(s.client.Create(s.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "config"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"get"}}},
	}))
	s.must(s.client.Create(s.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "config"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "config"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: "installer"}},
	}))
}

func TestConfigurationIsMergedFromWhatTheAccountMayRead(t *testing.T) {
	s := newStage(t)
	provisioner := &echo{}
	s.serve(provisioner)
	s.change(func(app *v1alpha1.BundleInstance) {
		app.Spec.ConfigFrom = []v1alpha1.ConfigReference{
			{Kind: "ConfigMap", Name: "values"},
			{Kind: "Secret", Name: "password", Key: "password", TargetPath: "auth.password"},
			{Kind: "ConfigMap", Name: "absent", Optional: true},
		}
		app.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"replicas":3}`)}
	})
	if reason, message := s.held(); reason != v1alpha1.ReasonConfigNotFound || !strings.Contains(message, `ServiceAccount "installer": let it "get" configmaps`) {
		t.Errorf("without the right: %s: %s", reason, message)
	}
	s.mayRead()
	if reason, message := s.held(); reason != v1alpha1.ReasonConfigNotFound || !strings.Contains(message, `spec.configFrom[0]: ConfigMap "values" does not exist`) {
		t.Errorf("without the ConfigMap: %s: %s", reason, message)
	}
	values := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "values"}, Data: map[string]string{"values.yaml": "replicas: 1\nimage: {tag: v1}\n"}}
	s.must(s.client.Create(t.Context(), values))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "password"}, StringData: map[string]string{"passwort": "x"}}
	s.must(s.client.Create(t.Context(), secret))
	if reason, message := s.held(); reason != v1alpha1.ReasonConfigNotFound || !strings.Contains(message, `spec.configFrom[1]: Secret "password" has no key "password"`) {
		t.Errorf("without the key: %s: %s", reason, message)
	}
	secret.StringData = map[string]string{"password": "hunter2\n"}
	s.must(s.client.Update(t.Context(), secret))
	s.reconcile()
	if want := `{"auth":{"password":"hunter2"},"image":{"tag":"v1"},"replicas":3}`; s.config() != want {
		t.Errorf("rendered with %s, want %s", s.config(), want)
	}
	s.reconcile()
	s.reconcile()
	if len(s.revisions()) != 1 || provisioner.rendered != 1 {
		t.Errorf("%d revisions, rendered %d times; nothing changed", len(s.revisions()), provisioner.rendered)
	}
	values.Data["values.yaml"] = "image: {tag: v2}\n"
	s.must(s.client.Update(t.Context(), values))
	s.reconcile()
	if revisions := s.revisions(); len(revisions) != 2 || !strings.Contains(s.config(), `"tag":"v2"`) {
		t.Errorf("%d revisions after the ConfigMap changed, the last with %s", len(revisions), s.config())
	}
	values.Data["values.yaml"] = "- v2\n"
	s.must(s.client.Update(t.Context(), values))
	if reason, message := s.held(); reason != v1alpha1.ReasonInvalidConfig || !strings.Contains(message, `ConfigMap "values", key "values.yaml": it is no mapping`) {
		t.Errorf("a list: %s: %s", reason, message)
	}
}

func TestWhatWasRenderedBeforeADependencyWasReadyIsRenderedAgainIfMoreIsServed(t *testing.T) {
	s := newStage(t)
	provisioner := &echo{served: true}
	s.serve(provisioner)
	s.facts.apis = []string{"v1"}
	s.change(func(app *v1alpha1.BundleInstance) { app.Spec.DependsOn = []v1alpha1.LocalReference{{Name: "crds"}} })
	s.reconcile()
	s.reconcile()
	first := s.revisions()
	if len(first) != 1 || provisioner.rendered != 1 || first[0].Status.ProvisionalFor == "" {
		t.Fatalf("%d revisions, rendered %d times, provisional for %q", len(first), provisioner.rendered, first[0].Status.ProvisionalFor)
	}
	if diff := strings.Join(first[0].Status.Varies, "; "); diff != "the number of calls" {
		t.Errorf("varies: %s", diff)
	}
	s.facts.apis = []string{"example.org/v1", "v1"}
	s.reconcile()
	if provisioner.rendered != 1 {
		t.Error("it is rendered again before what it depends on is ready")
	}
	crds := s.readyInstance("crds")
	s.reconcile()
	s.reconcile()
	if second := s.revisions(); len(second) != 2 || second[1].Status.ProvisionalFor != "" || second[1].Spec.ManifestDigest == second[0].Spec.ManifestDigest {
		t.Errorf("%d revisions after more is served, rendered %d times", len(second), provisioner.rendered)
	}
	s.must(s.client.Delete(t.Context(), crds))
}

func TestWhatWasRenderedBeforeADependencyWasReadyStaysIfTheSameIsServed(t *testing.T) {
	s := newStage(t)
	provisioner := &echo{served: true}
	s.serve(provisioner)
	s.change(func(app *v1alpha1.BundleInstance) { app.Spec.DependsOn = []v1alpha1.LocalReference{{Name: "crds"}} })
	s.reconcile()
	s.readyInstance("crds")
	s.reconcile()
	if got := s.revisions(); len(got) != 1 || got[0].Status.ProvisionalFor != "" || provisioner.rendered != 1 {
		t.Errorf("%d revisions, provisional for %q, rendered %d times", len(got), got[0].Status.ProvisionalFor, provisioner.rendered)
	}
}

// readyInstance makes another instance that is ready.
func (s *stage) readyInstance(name string) *v1alpha1.BundleInstance {
	s.Helper()
	made := &v1alpha1.BundleInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       v1alpha1.BundleInstanceSpec{BundleRef: &v1alpha1.LocalReference{Name: "content"}},
	}
	s.must(s.client.Create(s.Context(), made))
	meta.SetStatusCondition(&made.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: made.Generation,
	})
	s.must(s.client.Status().Update(s.Context(), made))
	return made
}

// config is what the newest revision was rendered with.
func (s *stage) config() string {
	s.Helper()
	revisions := s.revisions()
	set := s.manifests(&revisions[len(revisions)-1])
	text, _, _ := unstructured.NestedString(set.Objects()[0].Object, "data", "config")
	return text
}

// numbered renders the number of the revision, so that it comes out differently for another.
type numbered struct{ echo }

func (n *numbered) Render(ctx context.Context, req provisioner.Request) (provisioner.Result, error) {
	result, err := n.echo.Render(ctx, req)
	if err == nil {
		result.Phases[0].Objects[0].SetLabels(map[string]string{"revision": strconv.FormatInt(req.Revision, 10)})
	}
	return result, err
}

func TestWhatOthersWriteWhileARevisionIsMadeMakesNoOther(t *testing.T) {
	s := newStage(t)
	rendering := &numbered{}
	s.serve(rendering)
	s.control.Client = meddling{s.control.Client, s.client}
	s.reconcile()
	s.reconcile()
	if got := s.revisions(); len(got) != 1 || rendering.rendered != 1 {
		t.Errorf("%d revisions, rendered %d times", len(got), rendering.rendered)
	}
}

// meddling is a client beside which somebody writes into the status of each revision as soon as it is made.
type meddling struct {
	client.Client
	other client.Client
}

func (m meddling) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if err := m.Client.Create(ctx, object, options...); err != nil {
		return err
	}
	revision, ok := object.(*v1alpha1.InstanceRevision)
	if !ok {
		return nil
	}
	fresh := revision.DeepCopy()
	meta.SetStatusCondition(&fresh.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionApproved, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPlanning})
	return m.other.Status().Update(ctx, fresh)
}
