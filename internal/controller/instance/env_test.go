// SPDX-License-Identifier: Apache-2.0

package instance_test

import (
	"context"
	"io/fs"
	"os"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/go-logr/logr"
	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/instance"
	"rukpak.io/rukpak/internal/identity"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/provisioners/plain"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/provisioner"
)

var cluster = testenv.Shared{CRDs: true}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

// stage is one instance of content that is unpacked already, and a controller that acts when the test says so.
type stage struct {
	*testing.T
	client    client.Client
	namespace string
	control   *instance.Controller
	lagging   *atomic.Bool // the cache of the controller has no revisions yet
	facts     *facts
}

func newStage(t *testing.T) *stage {
	t.Helper()
	env := cluster.Env(t)
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	c, err := env.NewClient(scheme)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, client: c, namespace: env.NewNamespace(t), lagging: &atomic.Bool{}, facts: &facts{}}
	accounts, err := identity.NewClients(env.Config(), scheme, c.RESTMapper())
	if err != nil {
		t.Fatal(err)
	}
	s.control = &instance.Controller{
		Client: behind{c, s.lagging}, Live: c, Recorder: &events.FakeRecorder{},
		Provisioners: one{plain.New()},
		Contents:     unpacked{}, Scopes: namespaced{}, Planner: &planner{},
		Accounts: accounts, Facts: s.facts,
	}
	s.prepare()
	return s
}

// one is the only provisioner there is.
type one struct{ provisioner.Provisioner }

func (o one) Find(string) provisioner.Provisioner { return o.Provisioner }

func (one) OnInstance(func(types.NamespacedName)) {}

// serve has one provisioner render everything.
func (s *stage) serve(only provisioner.Provisioner) {
	s.control.Provisioners = one{only}
}

// facts is a cluster that serves what the test says.
type facts struct{ apis []string }

func (f *facts) Cluster(context.Context) (provisioner.Cluster, error) {
	return provisioner.Cluster{Version: "v1.31.0", APIs: f.apis}, nil
}

// manifests are those that a revision keeps.
func (s *stage) manifests(revision *v1alpha1.InstanceRevision) manifest.Set {
	s.Helper()
	encoded, err := manifest.LoadVerified(s.Context(), s.client, revision.Namespace, revision.Name, digest.Digest(revision.Spec.ManifestDigest))
	s.must(err)
	set, err := manifest.Decode(encoded)
	s.must(err)
	return set
}

// behind is a cache to which revisions come late.
type behind struct {
	client.Client
	lagging *atomic.Bool
}

func (b behind) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*v1alpha1.InstanceRevisionList); ok && b.lagging.Load() {
		return nil
	}
	return b.Client.List(ctx, list, options...)
}

// unpacked is a store with one tree.
type unpacked struct{}

func (unpacked) Open(context.Context, digest.Digest) (fs.FS, error) {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	return fstest.MapFS{"a.yaml": {Data: []byte(text)}}, nil
}

func (unpacked) Lost(types.NamespacedName) {}

// namespaced does without discovery: there are only ConfigMaps.
type namespaced struct{}

func (namespaced) Namespaced(_ context.Context, phases []provisioner.Phase, namespace string) error {
	for _, phase := range phases {
		for _, object := range phase.Objects {
			object.SetNamespace(namespace)
		}
	}
	return nil
}

// planner plans that all is added; what a plan says is tested in package plan.
type planner struct{}

func (*planner) Plan(context.Context, *v1alpha1.InstanceRevision, []v1alpha1.InstanceRevision) (*v1alpha1.PlanSummary, error) {
	return &v1alpha1.PlanSummary{Added: 1}, nil
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// prepare makes what an instance needs, and the instance, app.
func (s *stage) prepare() {
	s.Helper()
	class := &v1alpha1.ProvisionerClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Spec:       v1alpha1.ProvisionerClassSpec{Provisioner: plain.New().ID()},
	}
	bundle := &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "content"},
		Spec: v1alpha1.BundleSpec{
			ProvisionerClassName: class.Name,
			Sources:              []v1alpha1.BundleSource{{OCI: &v1alpha1.OCISource{Ref: "registry.example/app:v1"}}},
		},
	}
	app := &v1alpha1.BundleInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "app"},
		Spec:       v1alpha1.BundleInstanceSpec{BundleRef: &v1alpha1.LocalReference{Name: bundle.Name}, ServiceAccountName: "installer"},
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "installer"}}
	for _, object := range []client.Object{class, bundle, app, account} {
		s.must(s.client.Create(s.Context(), object))
	}
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready"}
	meta.SetStatusCondition(&class.Status.Conditions, ready)
	s.must(s.client.Status().Update(s.Context(), class))
	meta.SetStatusCondition(&bundle.Status.Conditions, ready)
	bundle.Status.ProvisionerClassName = class.Name
	bundle.Status.Content = &v1alpha1.BundleContent{Digest: v1alpha1.Digest(digest.FromString("content"))}
	s.must(s.client.Status().Update(s.Context(), bundle))
}

// reconcile lets the controller look once at what the instance is now.
func (s *stage) reconcile() {
	s.Helper()
	app := &v1alpha1.BundleInstance{}
	s.must(s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: "app"}, app))
	_, err := s.control.Reconcile(s.Context(), app)
	s.must(err)
}

func (s *stage) revisions() []v1alpha1.InstanceRevision {
	s.Helper()
	var list v1alpha1.InstanceRevisionList
	s.must(s.client.List(s.Context(), &list, client.InNamespace(s.namespace)))
	return list.Items
}
