// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/opencontainers/go-digest"
	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/metrics"
	"rukpak.io/rukpak/internal/provisioners/remote"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/internal/testenv/assets"
	"rukpak.io/rukpak/internal/testenv/process"
	"rukpak.io/rukpak/internal/unpack"
)

// cluster is a real API server; the content API of these tests is a real one
// behind it, served by this process.
var cluster = testenv.Shared{}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // clients of controller-runtime complain without one
	code := cluster.Main(m)
	if served.stop != nil {
		served.stop()
	}
	os.Exit(code)
}

// harness is the running server.
type harness struct {
	once sync.Once
	err  error
	stop func()

	env     *testenv.Env
	store   *content.Disk
	dir     string // of the store
	client  client.Client
	server  *Server
	jobs    *remote.Broker
	address string // to reach the server directly

	mu   sync.Mutex
	lost func(types.NamespacedName)
}

var served harness

func start(t *testing.T) *harness {
	t.Helper()
	env := cluster.Env(t)
	served.once.Do(func() { served.err = served.run(env) })
	if served.err != nil {
		t.Fatal(served.err)
	}
	return &served
}

const uploadLimit = 1 << 20

func (h *harness) run(env *testenv.Env) (err error) {
	h.env = env
	if h.dir, err = os.MkdirTemp("", "rukpak-contentapi-"); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = func() {
		cancel()
		_ = os.RemoveAll(h.dir)
	}
	if h.store, err = content.OpenDisk(ctx, h.dir, content.Options{}); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	_, _ = clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)
	if h.client, err = env.NewClient(scheme); err != nil {
		return err
	}
	port, err := process.ReservePort()
	if err != nil {
		return err
	}
	h.address = port.Address()
	if err := h.install(ctx, port.Number); err != nil {
		return err
	}
	counted, err := metrics.New(prometheus.NewRegistry())
	if err != nil {
		return err
	}
	h.jobs = remote.New(remote.Options{Own: []string{"plain.rukpak.io"}, Log: logr.Discard()})
	go func() { _ = h.jobs.Start(ctx) }()
	h.server, err = New(Config{
		Address: h.address, API: kubernetes.NewForConfigOrDie(env.Config()), Client: h.client, Live: h.client,
		Contents: h.store, Lost: h.tellLost, Metrics: counted, Log: logr.Discard(),
		Jobs: h.jobs, Limits: unpack.Limits{CompressedBytes: uploadLimit},
	})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- h.server.Start(ctx) }()
	return h.await(ended)
}

// install is config/contentapi, but for where the server is.
func (h *harness) install(ctx context.Context, port int) error {
	root, err := assets.ModuleRoot()
	if err != nil {
		return err
	}
	bases := filepath.Join(root, "config", "crd", "bases")
	if err := h.env.InstallCRDs(ctx, filepath.Join(bases, "rukpak.io_bundles.yaml"), filepath.Join(bases, "rukpak.io_instancerevisions.yaml")); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "config", "contentapi", "apiservice.yaml"))
	if err != nil {
		return err
	}
	for _, object := range []string{
		`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "rukpak-system"}}`,
		`{"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "rukpak-system", "name": "rukpak-content"},
			"spec": {"type": "ExternalName", "externalName": "localhost"}}`,
		strings.Replace(string(text), "port: 443", fmt.Sprintf("port: %d", port), 1),
	} {
		if _, err := h.env.KubectlInput(ctx, object, "apply", "-f", "-"); err != nil {
			return err
		}
	}
	return nil
}

func (h *harness) await(ended <-chan error) error {
	deadline := time.After(time.Minute)
	for {
		_, err := h.env.Kubectl(context.Background(), "get", "--raw", "/apis/content.rukpak.io/v1alpha1")
		if err == nil {
			return nil
		}
		select {
		case ending := <-ended:
			return fmt.Errorf("the server ended: %w", ending)
		case <-deadline:
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (h *harness) tellLost(name types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost != nil {
		h.lost(name)
	}
}

// whenLost calls do when content is told to be lost, until the test ends.
func (h *harness) whenLost(t *testing.T, do func(types.NamespacedName)) {
	t.Helper()
	set := func(to func(types.NamespacedName)) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lost = to
	}
	set(do)
	t.Cleanup(func() { set(nil) })
}

// layer stores files as a layer. A name that ends in "*" is executable, one
// that has " -> " in it a link.
func (h *harness) layer(t *testing.T, session *content.Session, files map[string]string) content.Layer {
	t.Helper()
	layer := content.Layer{Key: content.LayerKey{Digest: digest.FromString(t.Name()), Format: "test " + fmt.Sprint(len(files))}}
	for name, text := range files {
		if link, target, ok := strings.Cut(name, " -> "); ok {
			layer.Entries = append(layer.Entries, content.Entry{Path: link, Kind: content.Link, Target: target})
			continue
		}
		sum, err := session.AddFile(strings.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.TrimSuffix(name, "*")
		layer.Entries = append(layer.Entries, content.Entry{Path: plain, Kind: content.File, Size: int64(len(text)), Sum: sum, Exec: plain != name})
	}
	content.Sort(layer.Entries)
	return layer
}

func (h *harness) put(t *testing.T, files map[string]string) content.Tree {
	t.Helper()
	session, err := h.store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	layer := h.layer(t, session, files)
	if err := session.PutLayer(layer); err != nil {
		t.Fatal(err)
	}
	tree, err := session.PutTree([]content.Layer{layer})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// bundle makes a Bundle that holds a tree, as its controller leaves it.
func (h *harness) bundle(t *testing.T, namespace, name string, tree content.Tree) {
	t.Helper()
	bundle := &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.BundleSpec{Sources: []v1alpha1.BundleSource{{Inline: &v1alpha1.InlineSource{Files: map[string]string{"a": "b"}}}}},
	}
	if err := h.client.Create(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	bundle.Status.Content = &v1alpha1.BundleContent{Digest: v1alpha1.Digest(tree.Digest), Files: int64(tree.Files), Bytes: tree.Bytes}
	if tree.Digest == "" {
		bundle.Status.Content = nil
	}
	if err := h.client.Status().Update(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
}

// as is a user; the zero value is the cluster's administrator.
type as struct {
	user    string
	headers map[string]string
	method  string
	body    io.Reader
}

type answer struct {
	status int
	header http.Header
	body   []byte
	err    error // of reading the body
}

// ask sends a request through the API server.
func (h *harness) ask(t *testing.T, who as, path string) answer {
	t.Helper()
	config := h.env.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: who.user}
	if who.user != "" {
		config.Impersonate.Groups = []string{"system:authenticated"}
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return send(t, transport, who, config.Host+path)
}

func send(t *testing.T, with *http.Client, who as, url string) answer {
	t.Helper()
	method := who.method
	if method == "" {
		method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(t.Context(), method, url, who.body)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range who.headers {
		request.Header.Set(key, value)
	}
	response, err := with.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(response.Body)
	return answer{status: response.StatusCode, header: response.Header, body: body, err: err}
}

func bundlePath(namespace, rest string) string {
	return "/apis/content.rukpak.io/v1alpha1/namespaces/" + namespace + "/bundles/" + rest
}

// grant lets a user do something in a namespace.
func (h *harness) grant(t *testing.T, namespace, user, verb, resource string, names ...string) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "content-"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"content.rukpak.io"}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{verb}}},
	}
	if err := h.client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	if err := h.client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
}

// eventually asks again until the status is as wanted: roles take a moment to
// count, and so do answers that are remembered.
func (h *harness) eventually(t *testing.T, who as, path string, status int) answer {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		got := h.ask(t, who, path)
		if got.status == status {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s as %q: status %d, want %d: %s", path, who.user, got.status, status, got.body)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func want(t *testing.T, got answer, status int, body string) {
	t.Helper()
	if got.status != status || !bytes.Contains(got.body, []byte(body)) {
		t.Errorf("status %d and %.300s, want %d and %q", got.status, got.body, status, body)
	}
}
