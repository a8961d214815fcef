// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/outbound"
	"rukpak.io/rukpak/internal/source/web"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/internal/testenv/assets"
	"rukpak.io/rukpak/internal/unpack"
)

// fluxStage has Flux's real kinds, and a file server in place of source-controller.
type fluxStage struct {
	client client.Client
	opener *Opener
	store  *content.Disk
	server *httptest.Server
	files  map[string][]byte // by path
}

func newFluxStage(t *testing.T) *fluxStage {
	t.Helper()
	env := cluster.Env(t)
	installFlux(t, env)
	admin, err := env.NewClient(runtime.NewScheme())
	if err != nil {
		t.Fatal(err)
	}
	store, err := content.OpenDisk(t.Context(), t.TempDir(), content.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := &fluxStage{client: admin, store: store, files: map[string][]byte{}}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := s.files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.server.Close)
	s.opener = &Opener{Live: admin, HTTP: web.New(web.NewClient(web.Options{Transports: &outbound.Transports{}}))}
	return s
}

// installFlux brings the definitions of source-controller, as they are published.
func installFlux(t *testing.T, env *testenv.Env) {
	t.Helper()
	data := os.Getenv("RUKPAK_SHARED_DATA")
	if data == "" {
		root, err := assets.ModuleRoot()
		if err != nil {
			t.Fatal(err)
		}
		data = filepath.Join(root, "..", "shared", "data")
	}
	bases := filepath.Join(data, "kustomize", "source-controller", "head", "crd", "bases")
	if _, err := os.Stat(bases); err != nil {
		t.Skipf("SKIPPED: the definitions of Flux's kinds are not there: %v", err)
	}
	if err := env.InstallCRDs(t.Context(), bases); err != nil {
		t.Fatal(err)
	}
}

// artifact packs files as source-controller does.
func artifact(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	packer := gzip.NewWriter(&out)
	writer := tar.NewWriter(packer)
	for name, text := range files {
		if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		_, _ = writer.Write([]byte(text))
	}
	_, _ = writer.Close(), packer.Close()
	return out.Bytes()
}

// specs that the real definitions accept.
var fluxSpecs = map[string]string{
	"GitRepository":    `{interval: 1m, url: "https://git.example.com/app"}`,
	"OCIRepository":    `{interval: 1m, url: "oci://registry.example.com/app"}`,
	"Bucket":           `{interval: 1m, bucketName: app, endpoint: s3.example.com}`,
	"HelmChart":        `{interval: 1m, chart: app, sourceRef: {kind: HelmRepository, name: charts}}`,
	"ExternalArtifact": `{}`,
}

// object makes an object of Flux; body is served as its artifact, nil for none.
func (s *fluxStage) object(t *testing.T, namespace, kind, name string, body []byte) *unstructured.Unstructured {
	t.Helper()
	made := &unstructured.Unstructured{}
	text := "{apiVersion: source.toolkit.fluxcd.io/v1, kind: " + kind + ", metadata: {namespace: " + namespace + ", name: " + name + "}, spec: " + fluxSpecs[kind] + "}"
	if err := yaml.Unmarshal([]byte(text), made); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if body != nil {
		s.publish(t, made, "main@sha1:0123", body, digest.FromBytes(body).String())
	}
	return made
}

func (s *fluxStage) publish(t *testing.T, made *unstructured.Unstructured, revision string, body []byte, sum string) {
	t.Helper()
	path := "/" + strings.ToLower(made.GetKind()) + "/" + made.GetNamespace() + "/" + made.GetName() + "/" + strings.NewReplacer("@", "-", ":", "-").Replace(revision) + ".tar.gz"
	s.files[path] = body
	made.Object["status"] = map[string]any{"artifact": map[string]any{
		"url": s.server.URL + path, "path": strings.TrimPrefix(path, "/"), "revision": revision, "digest": sum,
		"size": int64(len(body)), "lastUpdateTime": "2026-01-01T00:00:00Z",
	}}
	if err := s.client.Status().Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
}

// get resolves and fetches as the controller does, and gives the files.
func (s *fluxStage) get(t *testing.T, namespace string, from v1alpha1.FluxSource, pinned *source.Pinned) (source.Pinned, map[string]string, error) {
	t.Helper()
	session, err := s.store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	to := source.Destination{Session: session, Budget: unpack.NewBudget(unpack.Limits{})}
	opened, kind, err := s.opener.Open(t.Context(), v1alpha1.BundleSource{Flux: &from}, Place{Namespace: namespace, Bundle: "b", Field: "spec.sources[0]"})
	if err != nil {
		return source.Pinned{}, nil, err
	}
	if kind != "flux" {
		t.Errorf("the kind of source is %q", kind)
	}
	if pinned == nil {
		found, err := opened.Resolve(t.Context(), to)
		if err != nil {
			return found, nil, err
		}
		pinned = &found
	}
	layers, _, err := opened.Fetch(t.Context(), *pinned, to)
	if err != nil {
		return *pinned, nil, err
	}
	tree, err := session.PutTree(layers)
	if err != nil {
		t.Fatal(err)
	}
	view, err := s.store.Open(t.Context(), tree.Digest)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	_ = fs.WalkDir(view, ".", func(name string, entry fs.DirEntry, _ error) error {
		if !entry.IsDir() {
			text, _ := fs.ReadFile(view, name)
			files[name] = string(text)
		}
		return nil
	})
	return *pinned, files, nil
}

func TestWhatFluxHasFetchedIsContent(t *testing.T) {
	s := newFluxStage(t)
	namespace := cluster.Env(t).NewNamespace(t)
	for kind := range fluxSpecs {
		t.Run(kind, func(t *testing.T) {
			files := map[string]string{"deploy/app.yaml": "kind: " + kind + "\n", "README.md": "read me\n"}
			if kind == "HelmChart" {
				files = map[string]string{"app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n", "app/values.yaml": "a: b\n"}
			}
			body := artifact(t, files)
			s.object(t, namespace, kind, "app", body)
			pinned, found, err := s.get(t, namespace, v1alpha1.FluxSource{Kind: v1alpha1.FluxKind(kind), Name: "app"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if pinned.Digest != digest.FromBytes(body) || pinned.Version != "main@sha1:0123" || pinned.Ref != "flux/"+kind+"/"+namespace+"/app@"+pinned.Digest.String() {
				t.Errorf("pinned as %+v", pinned)
			}
			if len(found) != 2 || kind != "HelmChart" && found["deploy/app.yaml"] != files["deploy/app.yaml"] {
				t.Errorf("the content is %v", found)
			}
		})
	}
	_, found, err := s.get(t, namespace, v1alpha1.FluxSource{Kind: "GitRepository", Name: "app", SubPath: "deploy"}, nil)
	if err != nil || len(found) != 1 || found["app.yaml"] == "" {
		t.Errorf("of a folder: %v, %v", found, err)
	}
}

func TestTheDigestOfFluxIsHeldTo(t *testing.T) {
	s := newFluxStage(t)
	namespace := cluster.Env(t).NewNamespace(t)
	body := artifact(t, map[string]string{"a": "b"})
	made := s.object(t, namespace, "GitRepository", "forged", nil)
	s.publish(t, made, "v1", body, digest.FromString("something else").String())
	_, _, err := s.get(t, namespace, v1alpha1.FluxSource{Kind: "GitRepository", Name: "forged"}, nil)
	if source.ReasonOf(err) != source.ReasonContentMismatch {
		t.Errorf("other bytes than those of the digest: %v", err)
	}
}

func TestANewerArtifactIsNotTakenForThePinnedOne(t *testing.T) {
	s := newFluxStage(t)
	namespace := cluster.Env(t).NewNamespace(t)
	first := artifact(t, map[string]string{"a": "first"})
	made := s.object(t, namespace, "OCIRepository", "moving", first)
	from := v1alpha1.FluxSource{Kind: "OCIRepository", Name: "moving"}
	pinned, _, err := s.get(t, namespace, from, nil)
	if err != nil {
		t.Fatal(err)
	}
	second := artifact(t, map[string]string{"a": "second"})
	s.publish(t, made, "v2", second, digest.FromBytes(second).String())
	_, found, err := s.get(t, namespace, from, &pinned)
	if err != nil || found["a"] != "first" {
		t.Errorf("what the store has is used: %v, %v", found, err)
	}
	lost := source.Pinned{Ref: pinned.Ref, Digest: digest.FromString("lost")}
	_, _, err = s.get(t, namespace, from, &lost)
	if source.ReasonOf(err) != source.ReasonContentMismatch || !strings.Contains(err.Error(), `has revision "v2"`) {
		t.Errorf("what is lost: %v", err)
	}
}

func TestWhatFluxDoesNotHaveIsSaid(t *testing.T) {
	s := newFluxStage(t)
	namespace := cluster.Env(t).NewNamespace(t)
	waiting := s.object(t, namespace, "GitRepository", "waiting", nil)
	waiting.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "False", "reason": "GitOperationFailed", "message": "authentication required\nmore", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}}
	if err := s.client.Status().Update(t.Context(), waiting); err != nil {
		t.Fatal(err)
	}
	odd := s.object(t, namespace, "GitRepository", "odd", nil)
	s.publish(t, odd, "v1", []byte("x"), "sha512:"+strings.Repeat("0", 128))
	s.object(t, namespace, "GitRepository", "gone", artifact(t, map[string]string{"a": "b"}))
	clear(s.files)
	for name, want := range map[string]string{
		"absent":  `spec.sources[0]: GitRepository "absent" does not exist in namespace`,
		"waiting": `has no artifact yet: GitOperationFailed: authentication required`,
		"odd":     `only sha256 digests can be held to`,
		"gone":    `404`,
	} {
		_, _, err := s.get(t, namespace, v1alpha1.FluxSource{Kind: "GitRepository", Name: name}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || source.KindOf(err) == source.Terminal || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
