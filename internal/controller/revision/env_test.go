// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/opencontainers/go-digest"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/controller/revision"
	"rukpak.io/rukpak/internal/identity"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/metrics"
	"rukpak.io/rukpak/internal/plan"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/internal/watch"
	"rukpak.io/rukpak/provisioner"
)

var cluster = testenv.Shared{Options: testenv.Options{Controllers: true, Nodes: 1}, CRDs: true}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

func scheme() *runtime.Scheme {
	all := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(all))
	utilruntime.Must(v1alpha1.AddToScheme(all))
	return all
}

// stage is one instance in a namespace of its own, and a controller for it that acts when the test says so.
type stage struct {
	*testing.T
	env       *testenv.Env
	client    client.Client
	namespace string
	account   string
	installer *v1alpha1.AccountReference // of revisions that are made
	deaf      *atomic.Bool               // Secrets cannot be read
	control   *revision.Controller
	counters  *prometheus.Registry
	watcher   *watch.Watcher
}

func newStage(t *testing.T) *stage {
	t.Helper()
	env := cluster.Env(t)
	c, err := env.NewClient(scheme())
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, env: env, client: c, namespace: env.NewNamespace(t), deaf: &atomic.Bool{}}
	s.account = env.ClusterServiceAccount(t, s.namespace, testenv.Everything())
	s.create(&v1alpha1.ProvisionerClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Spec:       v1alpha1.ProvisionerClassSpec{Provisioner: "plain.rukpak.io", Approval: v1alpha1.ApprovalPolicy{Mode: v1alpha1.ApprovalAutomatic}},
	})
	s.restart()
	return s
}

// restart replaces the controller by one that remembers nothing.
func (s *stage) restart() {
	s.Helper()
	config := s.env.Config()
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	s.must(err)
	objects, err := metadata.NewForConfig(config)
	s.must(err)
	accounts, err := identity.NewClients(config, scheme(), s.client.RESTMapper())
	s.must(err)
	s.counters = prometheus.NewRegistry()
	counters, err := metrics.New(s.counters)
	s.must(err)
	watcher := watch.New(watch.Config{Client: objects, Mapper: s.client.RESTMapper()})
	s.Cleanup(watcher.Stop)
	s.watcher = watcher
	s.control = &revision.Controller{
		Client: s.client, Live: s.client, Recorder: &events.FakeRecorder{}, Accounts: accounts,
		Reviewer:  reviewer{identity.NewReviewer(s.client), s.client.RESTMapper()},
		Engine:    activate.New(activate.Config{Observed: watcher, Served: activate.ServedBy(kinds)}),
		Watcher:   watcher,
		Manifests: revision.NewManifests(secrets{s.client, s.deaf}),
		Finder:    &revision.Finder{Discovery: kinds, Metadata: objects},
		Metrics:   counters,
	}
}

type reviewer struct {
	reviews *identity.Reviewer
	mapper  meta.RESTMapper
}

func (r reviewer) Missing(ctx context.Context, namespace, account string, phases []provisioner.Phase) ([]string, error) {
	return plan.Account{Reviewer: r.reviews, Mapper: r.mapper, Namespace: namespace, Name: account}.Lacks(ctx, phases, nil)
}

// secrets is a reader that an API server in trouble does not always answer.
type secrets struct {
	client.Reader
	deaf *atomic.Bool
}

func (s secrets) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if s.deaf.Load() {
		return apierrors.NewServiceUnavailable("etcd has no leader")
	}
	return s.Reader.Get(ctx, key, object, options...)
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) create(object client.Object) {
	s.Helper()
	s.must(s.client.Create(s.Context(), object))
}

// instance makes an instance of a bundle that is of no matter here.
func (s *stage) instance(name string) *v1alpha1.BundleInstance {
	s.Helper()
	instance := &v1alpha1.BundleInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: v1alpha1.BundleInstanceSpec{
			Bundle: &v1alpha1.BundleSpec{
				ProvisionerClassName: s.namespace,
				Sources:              []v1alpha1.BundleSource{{OCI: &v1alpha1.OCISource{Ref: "registry.example/app:v1"}}},
			},
			ServiceAccountName: s.account,
		},
	}
	s.create(instance)
	return instance
}

// revise makes a planned revision of an instance, as the instance controller does.
func (s *stage) revise(instance *v1alpha1.BundleInstance, number int64, objects ...string) *v1alpha1.InstanceRevision {
	s.Helper()
	var parsed []*unstructured.Unstructured
	for _, text := range objects {
		parsed = append(parsed, s.parse(text))
	}
	return s.revisePhases(instance, number, provisioner.ByKind(parsed)...)
}

// revisePhases is revise with phases as a provisioner may make them.
func (s *stage) revisePhases(instance *v1alpha1.BundleInstance, number int64, phases ...provisioner.Phase) *v1alpha1.InstanceRevision {
	s.Helper()
	encoded, err := manifest.Set{Phases: phases}.Encode()
	s.must(err)
	any := v1alpha1.Digest(digest.FromString("any"))
	made := &v1alpha1.InstanceRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: fmt.Sprintf("%s-%d", instance.Name, number),
			Labels: map[string]string{v1alpha1.LabelInstance: instance.Name},
		},
		Spec: v1alpha1.InstanceRevisionSpec{
			Instance: v1alpha1.InstanceReference{Name: instance.Name, UID: instance.UID}, Number: number, BundleName: "any",
			ProvisionerClassName: s.namespace, ContentDigest: any, ConfigDigest: any, ManifestDigest: v1alpha1.Digest(manifest.DigestOf(encoded)),
			ServiceAccountName: s.account, Installer: s.installer, Adoption: v1alpha1.AdoptNever, Prune: true,
		},
	}
	s.create(made)
	s.must(manifest.Save(s.Context(), s.client, made, manifest.KindManifest, encoded))
	meta.SetStatusCondition(&made.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPlanned, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPlanned})
	s.must(s.client.Status().Update(s.Context(), made))
	return made
}

func (s *stage) parse(text string) *unstructured.Unstructured {
	s.Helper()
	object := &unstructured.Unstructured{}
	s.must(yaml.Unmarshal([]byte(text), &object.Object))
	if object.GetNamespace() == "" && object.GetKind() != "CustomResourceDefinition" && object.GetKind() != "ClusterRole" {
		object.SetNamespace(s.namespace)
	}
	return object
}

func configMap(name string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}, data: {a: b}}"
}

// reconcile lets the controller look once.
func (s *stage) reconcile(instance *v1alpha1.BundleInstance) error {
	s.Helper()
	fresh := &v1alpha1.BundleInstance{}
	if err := s.client.Get(s.Context(), client.ObjectKeyFromObject(instance), fresh); err != nil {
		return client.IgnoreNotFound(err)
	}
	_, err := s.control.Reconcile(s.Context(), fresh)
	return err
}

// until lets the controller look again and again until something is so.
func (s *stage) until(instance *v1alpha1.BundleInstance, what string, so func() bool) {
	s.Helper()
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = s.reconcile(instance); so() {
			return
		}
	}
	s.Fatalf("not within 30 s: %s; the controller says %v", what, err)
}

// condition of a revision now; the zero value if it has none.
func (s *stage) condition(of *v1alpha1.InstanceRevision, conditionType string) metav1.Condition {
	s.Helper()
	fresh := &v1alpha1.InstanceRevision{}
	s.must(s.client.Get(s.Context(), client.ObjectKeyFromObject(of), fresh))
	if found := meta.FindStatusCondition(fresh.Status.Conditions, conditionType); found != nil {
		return *found
	}
	return metav1.Condition{}
}

func (s *stage) is(of *v1alpha1.InstanceRevision, conditionType, reason string) func() bool {
	return func() bool {
		found := s.condition(of, conditionType)
		return found.Status == metav1.ConditionTrue && (reason == "" || found.Reason == reason)
	}
}

func (s *stage) exists(name string) bool {
	s.Helper()
	err := s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, &corev1.ConfigMap{})
	if client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	return err == nil
}

// lose deletes the stored manifests of a revision, as a tenant might.
func (s *stage) lose(of *v1alpha1.InstanceRevision) {
	s.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: manifest.SecretName(of.Name, manifest.KindManifest, 0)}}
	s.must(s.client.Delete(s.Context(), secret))
}

// cleanup is for what is done after the test, whose own context has ended by then.
var cleanup = context.Background()

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
