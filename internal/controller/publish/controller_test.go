// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/opencontainers/go-digest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/contentapi"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/internal/testenv/assets"
	"rukpak.io/rukpak/internal/unpack"
)

var cluster = testenv.Shared{}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // clients of controller-runtime complain without one
	os.Exit(cluster.Main(m))
}

// stage is a controller, the server of its archives, and a store.
type stage struct {
	namespace  string
	client     client.Client
	controller *Controller
	artifacts  *contentapi.Artifacts
	store      *content.Disk
	told       *events.FakeRecorder
}

func newStage(t *testing.T) *stage {
	t.Helper()
	env := cluster.Env(t)
	install(t, env)
	scheme := runtime.NewScheme()
	_, _ = clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)
	admin, err := env.NewClient(scheme)
	if err != nil {
		t.Fatal(err)
	}
	store, err := content.OpenDisk(t.Context(), t.TempDir(), content.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := &stage{namespace: env.NewNamespace(t), client: admin, store: store, told: events.NewFakeRecorder(10)}
	s.artifacts = &contentapi.Artifacts{Client: admin, Contents: store, Lost: func(types.NamespacedName) {}}
	server := httptest.NewServer(s.artifacts)
	t.Cleanup(server.Close)
	s.artifacts.BaseURL = server.URL
	s.controller = &Controller{Client: admin, Live: admin, Recorder: s.told, Artifacts: s.artifacts}
	return s
}

// install brings our Bundle and Flux's real kinds.
func install(t *testing.T, env *testenv.Env) {
	t.Helper()
	root, err := assets.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	data := os.Getenv("RUKPAK_SHARED_DATA")
	if data == "" {
		data = filepath.Join(root, "..", "shared", "data")
	}
	kind := filepath.Join(data, "kustomize", "source-controller", "head", "crd", "bases", "source.toolkit.fluxcd.io_externalartifacts.yaml")
	if _, err := os.Stat(kind); err != nil {
		t.Skipf("SKIPPED: the definition of Flux's ExternalArtifact is not there: %v", err)
	}
	if err := env.InstallCRDs(t.Context(), kind, filepath.Join(root, "config", "crd", "bases", "rukpak.io_bundles.yaml")); err != nil {
		t.Fatal(err)
	}
}

// bundle makes a Bundle with content, as its controller leaves it.
func (s *stage) bundle(t *testing.T, name, publish string) (*v1alpha1.Bundle, content.Tree) {
	t.Helper()
	session, err := s.store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	text := "of " + name
	sum, err := session.AddFile(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	layer := content.Layer{
		Key:     content.LayerKey{Digest: digest.FromString(name), Format: "test"},
		Entries: []content.Entry{{Path: "deploy/app.yaml", Kind: content.File, Size: int64(len(text)), Sum: sum}},
	}
	if err := session.PutLayer(layer); err != nil {
		t.Fatal(err)
	}
	tree, err := session.PutTree([]content.Layer{layer})
	if err != nil {
		t.Fatal(err)
	}
	bundle := &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Annotations: map[string]string{v1alpha1.AnnotationPublish: publish}},
		Spec:       v1alpha1.BundleSpec{Sources: []v1alpha1.BundleSource{{Inline: &v1alpha1.InlineSource{Files: map[string]string{"a": "b"}}}}},
	}
	if err := s.client.Create(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	bundle.Status.Content = &v1alpha1.BundleContent{Digest: v1alpha1.Digest(tree.Digest), Files: 1, Bytes: int64(len(text))}
	if err := s.client.Status().Update(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	return bundle, tree
}

func (s *stage) reconcile(t *testing.T, bundle *v1alpha1.Bundle) {
	t.Helper()
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(bundle), bundle); err != nil {
		t.Fatal(err)
	}
	if _, err := s.controller.Reconcile(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) artifact(t *testing.T, name string) (*unstructured.Unstructured, error) {
	t.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(Kind)
	return found, s.client.Get(t.Context(), types.NamespacedName{Namespace: s.namespace, Name: name}, found)
}

func fetch(t *testing.T, url string) (int, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

func TestABundleIsPublishedWithTheDigestOfItsArchive(t *testing.T) {
	s := newStage(t)
	bundle, tree := s.bundle(t, "web", v1alpha1.PublishFlux)
	s.reconcile(t, bundle)
	found, err := s.artifact(t, "web")
	if err != nil {
		t.Fatal(err)
	}
	status, _, _ := unstructured.NestedMap(found.Object, "status", "artifact")
	code, body := fetch(t, fmt.Sprint(status["url"]))
	if code != http.StatusOK || digest.FromBytes(body).String() != status["digest"] || int64(len(body)) != status["size"] {
		t.Fatalf("status %d, %d bytes of %s, published as %v", code, len(body), digest.FromBytes(body), status)
	}
	if status["revision"] != "latest@"+tree.Digest.String() || !metav1.IsControlledBy(found, bundle) {
		t.Errorf("published as %v by %v", status, found.GetOwnerReferences())
	}
	session, err := s.store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	layer, err := unpack.Layer(t.Context(), unpack.Packed{}, unpack.Format{Compression: unpack.Gzip}, bytes.NewReader(body), session, unpack.NewBudget(unpack.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := content.Overlay([]content.Layer{layer}); err != nil || content.DigestOf(entries) != tree.Digest {
		t.Errorf("%v: the archive holds something else", err)
	}
	before := found.GetResourceVersion()
	s.reconcile(t, bundle)
	if again, _ := s.artifact(t, "web"); again.GetResourceVersion() != before {
		t.Error("what is as it should be is written again")
	}
}

func TestOnlyWhoHasTheURLGetsAnArchive(t *testing.T) {
	s := newStage(t)
	bundle, _ := s.bundle(t, "web", v1alpha1.PublishFlux)
	silent, _ := s.bundle(t, "silent", "")
	url, path := s.artifacts.URL(bundle)
	hidden, _ := s.artifacts.URL(silent)
	last := map[bool]string{true: "1", false: "0"}[strings.HasSuffix(url, "0.tar.gz")]
	for name, one := range map[string]string{
		"one digit off":           strings.TrimSuffix(url, ".tar.gz")[:len(url)-len(".tar.gz")-1] + last + ".tar.gz",
		"no code":                 s.artifacts.BaseURL + "/flux/" + s.namespace + "/web/.tar.gz",
		"the code of another":     strings.Replace(url, "/web/", "/silent/", 1),
		"one that is not public":  hidden,
		"a bundle that is absent": strings.Replace(url, "/web/", "/absent/", 1),
		"nothing":                 s.artifacts.BaseURL + "/",
	} {
		if code, body := fetch(t, one); code != http.StatusNotFound {
			t.Errorf("%s: status %d, %d bytes", name, code, len(body))
		}
	}
	if code, _ := fetch(t, url); code != http.StatusOK || len(path) < 64 {
		t.Errorf("the URL itself: status %d, path %s", code, path)
	}
	other := &contentapi.Artifacts{BaseURL: s.artifacts.BaseURL}
	if again, _ := other.URL(bundle); again == url {
		t.Error("another manager makes the same URL")
	}
}

func TestWhatIsNotAskedForAnyMoreIsTakenBack(t *testing.T) {
	s := newStage(t)
	bundle, _ := s.bundle(t, "web", v1alpha1.PublishFlux)
	s.reconcile(t, bundle)
	url, _ := s.artifacts.URL(bundle)
	bundle.Annotations = nil
	if err := s.client.Update(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	if code, _ := fetch(t, url); code != http.StatusNotFound {
		t.Errorf("its URL still answers with %d", code)
	}
	s.reconcile(t, bundle)
	if _, err := s.artifact(t, "web"); !apierrors.IsNotFound(err) {
		t.Errorf("the artifact is still there: %v", err)
	}
}

func TestTheArtifactOfSomebodyElseIsLeftAlone(t *testing.T) {
	s := newStage(t)
	bundle, _ := s.bundle(t, "web", v1alpha1.PublishFlux)
	theirs := fresh(bundle)
	theirs.SetOwnerReferences(nil)
	if err := s.client.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	s.reconcile(t, bundle)
	found, _ := s.artifact(t, "web")
	if _, has := found.Object["status"]; has {
		t.Errorf("it was written: %v", found.Object["status"])
	}
	if told := <-s.told.Events; !strings.Contains(told, "NameTaken") {
		t.Errorf("said is %q", told)
	}
	bundle.Annotations = nil
	if err := s.client.Update(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	s.reconcile(t, bundle)
	if _, err := s.artifact(t, "web"); err != nil {
		t.Errorf("it was removed: %v", err)
	}
}

func TestWithoutAServerNothingIsPublished(t *testing.T) {
	s := newStage(t)
	s.controller.Artifacts = nil
	bundle, _ := s.bundle(t, "web", v1alpha1.PublishFlux)
	s.reconcile(t, bundle)
	if told := <-s.told.Events; !strings.Contains(told, "--artifact-bind-address") {
		t.Errorf("said is %q", told)
	}
	if _, err := s.artifact(t, "web"); !apierrors.IsNotFound(err) {
		t.Errorf("%v", err)
	}
}
