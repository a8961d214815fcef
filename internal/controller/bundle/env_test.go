// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/controller/bundle"
	"rukpak.io/rukpak/internal/controller/origin"
	"rukpak.io/rukpak/internal/source/oci"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
	"rukpak.io/rukpak/internal/testenv/signing"
)

var cluster = testenv.Shared{CRDs: true}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

// stage is a real registry, store and API server, and a controller that acts when the test says so.
type stage struct {
	*testing.T
	client    client.Client
	namespace string
	own       string // the namespace of the manager
	control   *bundle.Controller
	registry  *ociregistry.Registry
	place     signing.Place
	content   digest.Digest // of the image in place, with the tag 1
}

type noMetrics struct{}

func (noMetrics) Fetched(string, int64, error) {}

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
	store, err := content.OpenDisk(t.Context(), t.TempDir(), content.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := &stage{T: t, client: c, namespace: env.NewNamespace(t), own: env.NewNamespace(t), registry: ociregistry.New(t, ociregistry.Options{})}
	s.control = &bundle.Controller{
		Client: c, Recorder: &events.FakeRecorder{}, Contents: store, Metrics: noMetrics{},
		Sources: &origin.Opener{Live: c, Namespace: s.own, OCI: oci.New(store, oci.Options{})},
	}
	s.place = signing.Place{Repository: s.registry.Host() + "/team/app"}
	s.content = s.push(s.place.Repository + ":1")
	s.class(nil)
	return s
}

// push pushes an image with one file.
func (s *stage) push(text string) digest.Digest {
	s.Helper()
	ref, err := name.ParseReference(text, name.Insecure)
	if err != nil {
		s.Fatal(err)
	}
	file := mutate.Addendum{
		Layer:       static.NewLayer([]byte("kind: "+s.namespace), "text/plain"),
		Annotations: map[string]string{"org.opencontainers.image.title": "a.yaml"}, MediaType: "text/plain",
	}
	image, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), file)
	if err == nil {
		err = remote.Write(ref, image)
	}
	if err != nil {
		s.Fatal(err)
	}
	sum, err := image.Digest()
	if err != nil {
		s.Fatal(err)
	}
	return digest.Digest(sum.String())
}

// class makes the class of the test, or changes what it asks for.
func (s *stage) class(asked *v1alpha1.ClassVerification) {
	s.Helper()
	class := &v1alpha1.ProvisionerClass{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	err := s.client.Get(s.Context(), client.ObjectKeyFromObject(class), class)
	if err == nil {
		class.Spec.Verification = asked
		err = s.client.Update(s.Context(), class)
	} else {
		class.Spec = v1alpha1.ProvisionerClassSpec{Provisioner: "plain.rukpak.io", Verification: asked}
		err = s.client.Create(s.Context(), class)
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) create(object client.Object) {
	s.Helper()
	if err := s.client.Create(s.Context(), object); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) configMap(namespace, object, key, text string) {
	s.Helper()
	s.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: object}, Data: map[string]string{key: text}})
}

// bundle makes a Bundle of the image, whose source asks for something or not.
func (s *stage) bundle(asked *v1alpha1.Verification) *v1alpha1.Bundle {
	s.Helper()
	return s.of(v1alpha1.BundleSource{OCI: &v1alpha1.OCISource{Ref: s.place.Repository + ":1", Insecure: true, Verify: asked}})
}

func (s *stage) of(sources ...v1alpha1.BundleSource) *v1alpha1.Bundle {
	s.Helper()
	made := &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "b-"},
		Spec:       v1alpha1.BundleSpec{ProvisionerClassName: s.namespace, Sources: sources},
	}
	s.create(made)
	return made
}

// act lets the controller act once and reads what it wrote.
func (s *stage) act(b *v1alpha1.Bundle) (retry bool) {
	s.Helper()
	if err := s.client.Get(s.Context(), client.ObjectKeyFromObject(b), b); err != nil {
		s.Fatal(err)
	}
	result, err := s.control.Reconcile(s.Context(), b.DeepCopy())
	if getErr := s.client.Get(s.Context(), client.ObjectKeyFromObject(b), b); getErr != nil {
		s.Fatal(getErr)
	}
	return err != nil || result.RequeueAfter > 0
}

// refused checks that a bundle is not taken, and nothing of it unpacked.
func (s *stage) refused(b *v1alpha1.Bundle, reason, says string) {
	s.Helper()
	for _, kind := range []string{v1alpha1.ConditionVerified, v1alpha1.ConditionReady} {
		found := meta.FindStatusCondition(b.Status.Conditions, kind)
		if found == nil || found.Status != metav1.ConditionFalse || found.Reason != reason || !strings.Contains(found.Message, says) {
			s.Errorf("%s: %+v, want %s: ...%s...", kind, found, reason, says)
		}
	}
	if b.Status.Verification != nil {
		s.Errorf("there is a verdict: %+v", b.Status.Verification)
	}
	if b.Status.Content != nil {
		s.Errorf("there is content: %+v", b.Status.Content)
	}
}

// taken checks that a bundle is ready, with so many verdicts.
func (s *stage) taken(b *v1alpha1.Bundle, verdicts int) {
	s.Helper()
	if !meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.ConditionReady) {
		s.Fatalf("not ready: %+v", b.Status.Conditions)
	}
	if got := meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.ConditionVerified); got != (verdicts > 0) {
		s.Errorf("Verified is %v: %+v", got, b.Status.Conditions)
	}
	if verdicts > 0 && (b.Status.Verification == nil || len(b.Status.Verification.Verdicts) != verdicts) {
		s.Errorf("verdicts: %+v, want %d", b.Status.Verification, verdicts)
	}
}
