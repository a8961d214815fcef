// SPDX-License-Identifier: Apache-2.0

package registryconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/registry"
	"rukpak.io/rukpak/internal/registry/reach"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/oci"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
	"rukpak.io/rukpak/internal/testenv/pki"
)

var cluster = testenv.Shared{CRDs: true}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

// running is a controller at work on the cluster.
type running struct {
	client.Client
	config    *reach.Config
	namespace string
	files     string // folder of the node's files
}

func start(t *testing.T) *running {
	t.Helper()
	env := cluster.Env(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mgr, err := ctrl.NewManager(env.Config(), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, // one after another, in one process
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{Client: mgr.GetClient(), config: reach.New(nil), namespace: env.NewNamespace(t), files: t.TempDir()}
	write(t, filepath.Join(r.files, "registries.conf"), "[[registry]]\nlocation = \"node.example.com\"\nblocked = true\n[[registry]]\nlocation = \"both.example.com\"\nblocked = true\n")
	files, err := OpenFiles(t.Context(), "containers="+r.files)
	if err != nil {
		t.Fatal(err)
	}
	files.interval = 20 * time.Millisecond
	c := &Controller{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Config: r.config, Namespace: r.namespace, Files: files}
	if err := c.Register(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *running) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := r.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Delete(context.Background(), object) })
}

func (r *running) apply(t *testing.T, name, rulesYAML string) *v1alpha1.RegistryConfig {
	t.Helper()
	config := &v1alpha1.RegistryConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(rulesYAML), &config.Spec.Rules); err != nil {
		t.Fatal(err)
	}
	r.create(t, config)
	return config
}

// eventually waits until a check passes.
func eventually(t *testing.T, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 15*time.Second, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatal(last)
	}
}

// ready checks the condition of an object: "" for True, else a part of the message.
func (r *running) ready(name, reason, part string) func(context.Context) error {
	return func(ctx context.Context) error {
		config := &v1alpha1.RegistryConfig{}
		if err := r.Get(ctx, client.ObjectKey{Name: name}, config); err != nil {
			return err
		}
		found := meta.FindStatusCondition(config.Status.Conditions, v1alpha1.ConditionReady)
		switch {
		case found == nil:
			return errors.New("no condition yet")
		case found.Reason != reason || !strings.Contains(found.Message, part) || (found.Status == metav1.ConditionTrue) != (reason == v1alpha1.ReasonInForce):
			return fmt.Errorf("the condition is %s %s: %s", found.Status, found.Reason, found.Message)
		case config.Status.ObservedGeneration != config.Generation:
			return errors.New("the status is old")
		}
		return nil
	}
}

// primary gives the last endpoint of a reference.
func (r *running) primary(ctx context.Context, ref string) (*rules.Endpoint, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return nil, err
	}
	_, found, err := r.config.Resolve(ctx, parsed)
	if err != nil {
		return nil, err
	}
	return &found.Endpoints[len(found.Endpoints)-1], nil
}

func TestRulesOfObjectsComeIntoForceAndGo(t *testing.T) {
	r := start(t)
	config := r.apply(t, "come-and-go", `[{prefix: come.example.com, rewrite: elsewhere.example.com/x}]`)
	eventually(t, r.ready("come-and-go", v1alpha1.ReasonInForce, "rules in force: 1"))
	at := func(want string) func(context.Context) error {
		return func(ctx context.Context) error {
			e, err := r.primary(ctx, "come.example.com/app:1")
			if err != nil || e.Reference.Name() != want {
				return fmt.Errorf("got %v, %w", e, err)
			}
			return nil
		}
	}
	eventually(t, at("elsewhere.example.com/x/app:1"))
	before := config.DeepCopy()
	config.Spec.Rules[0].Rewrite = "changed.example.com"
	if err := r.Patch(t.Context(), config, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	eventually(t, at("changed.example.com/app:1"))
	if err := r.Delete(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	eventually(t, at("come.example.com/app:1"))
}

func TestSecretsAreFollowed(t *testing.T) {
	r := start(t)
	authority, err := pki.New("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Client("user")
	if err != nil {
		t.Fatal(err)
	}
	r.apply(t, "follows", `
- prefix: follow.example.com
  ca: {configMap: {name: authority}}
  clientCertificate: {name: client}
  credentials: {name: login}
  proxy: {url: "http://proxy.example.com:3128", credentials: {name: proxy-login}}
`)
	eventually(t, r.ready("follows", v1alpha1.ReasonInvalidRule, `rule "follow.example.com": ca: ConfigMap `+r.namespace+`/authority does not exist`))
	eventually(t, func(ctx context.Context) error {
		e, err := r.primary(ctx, "follow.example.com/app:1")
		if err != nil || e.Problem == nil {
			return fmt.Errorf("the endpoint is used all the same: %v, %w", e, err)
		}
		return nil
	})
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: r.namespace, Name: name} }
	basic := func(name, password string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: in(name), Type: corev1.SecretTypeBasicAuth, StringData: map[string]string{"username": "u", "password": password}}
	}
	login := basic("login", "old")
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: in("authority"), Data: map[string]string{"ca.crt": string(authority.PEM)}},
		&corev1.Secret{ObjectMeta: in("client"), Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key}},
		login, basic("proxy-login", "p"),
	} {
		r.create(t, object)
	}
	eventually(t, r.ready("follows", v1alpha1.ReasonInForce, ""))
	password := func(want string) func(context.Context) error {
		return func(ctx context.Context) error {
			e, err := r.primary(ctx, "follow.example.com/app:1")
			if err != nil || e.Problem != nil || len(e.Logins) != 1 || e.Logins[0].Password != want {
				return fmt.Errorf("got %+v, %w", e, err)
			}
			if e.CA == nil || e.Certificate == nil || e.Proxy == nil || e.Proxy.Password != "p" {
				return fmt.Errorf("something is missing: %+v", e)
			}
			return nil
		}
	}
	eventually(t, password("old"))
	login.StringData = map[string]string{"password": "new"}
	if err := r.Update(t.Context(), login); err != nil {
		t.Fatal(err)
	}
	eventually(t, password("new"))
}

func TestProblemsNameRuleAndField(t *testing.T) {
	r := start(t)
	r.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "opaque"}, StringData: map[string]string{"ca.crt": "hunter2"}})
	r.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "other-host"}, Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{".dockerconfigjson": `{"auths":{"other.example.com":{"auth":"dTpodW50ZXIy"}}}`}})
	for field, tc := range map[string]struct{ access, want string }{
		"ca":           {`ca: {secret: {name: opaque}}`, "ca: the CA holds no certificate in PEM"},
		"key":          {`ca: {secret: {name: opaque, key: none}}`, `has no key "none"`},
		"certificate":  {`clientCertificate: {name: opaque}`, `clientCertificate: Secret ` + r.namespace + `/opaque is of the type "Opaque"`},
		"credentials":  {`credentials: {name: opaque}`, `credentials: pull secret ` + r.namespace + `/opaque: its type is "Opaque"`},
		"other-host":   {`credentials: {name: other-host}`, `credentials: Secret ` + r.namespace + `/other-host has no credentials for bad.example.com`},
		"proxy":        {`proxy: {url: "http://p:1", credentials: {name: opaque}}`, `proxy: Secret ` + r.namespace + `/opaque is of the type "Opaque"`},
		"pem":          {`ca: {pem: "-----BEGIN CERTIFICATE-----"}`, "ca: the CA holds no certificate in PEM"},
		"mirror-first": {`mirrors: [{location: m.example.com, credentials: {name: none}}]`, `mirrors[0].credentials: Secret ` + r.namespace + `/none does not exist`},
	} {
		t.Run(field, func(t *testing.T) {
			object := r.apply(t, "bad-"+strings.ToLower(field), "- prefix: bad.example.com\n  "+tc.access+"\n")
			eventually(t, r.ready(object.Name, v1alpha1.ReasonInvalidRule, `rule "bad.example.com": `))
			eventually(t, r.ready(object.Name, v1alpha1.ReasonInvalidRule, tc.want))
			if err := r.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestTwoRulesWithOnePrefix(t *testing.T) {
	r := start(t)
	r.apply(t, "a-first", `[{prefix: tie.example.com, rewrite: first.example.com}, {prefix: alone.example.com, blocked: true}]`)
	eventually(t, r.ready("a-first", v1alpha1.ReasonInForce, "2"))
	time.Sleep(time.Second) // ages are told in seconds
	r.apply(t, "0-second", `[{prefix: tie.example.com, rewrite: second.example.com}]`)
	eventually(t, r.ready("a-first", v1alpha1.ReasonPrefixConflict, `RegistryConfig 0-second has one with the same prefix, which is not`))
	eventually(t, r.ready("0-second", v1alpha1.ReasonPrefixConflict, `rule "tie.example.com" is not in force: RegistryConfig a-first is older`))
	e, err := r.primary(t.Context(), "tie.example.com/x:1")
	if err != nil || e.Host() != "first.example.com" {
		t.Errorf("got %v, %v", e, err)
	}
}

func TestObjectsOverrideFilesOfTheNode(t *testing.T) {
	r := start(t)
	r.apply(t, "overrides", `[{prefix: both.example.com, rewrite: allowed.example.com}]`)
	eventually(t, func(ctx context.Context) error {
		_, err := r.primary(ctx, "both.example.com/x:1")
		return err
	})
	blocked := func(ref string, want bool) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := r.primary(ctx, ref)
			if _, is := errors.AsType[*rules.BlockedError](err); is != want {
				return fmt.Errorf("%s: got %w", ref, err)
			}
			return nil
		}
	}
	eventually(t, blocked("node.example.com/x:1", true))

	// A change that does not parse changes nothing.
	conf := filepath.Join(r.files, "registries.conf")
	write(t, conf, "[[registry]]\nlocation = \"late.example.com\"\nblocked = 1\n")
	time.Sleep(100 * time.Millisecond)
	eventually(t, blocked("node.example.com/x:1", true))
	write(t, conf, "[[registry]]\nlocation = \"late.example.com\"\nblocked = true\n")
	eventually(t, blocked("late.example.com/x:1", true))
	eventually(t, blocked("node.example.com/x:1", false))
}

func TestFilesThatDoNotParseAreRefusedAtTheStart(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "registries.conf"), "[[registry]]\nlocation = \"a.example.com\"\nblocked = yes\n")
	_, err := OpenFiles(t.Context(), "containers="+dir)
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "registries.conf")+":3: ") {
		t.Errorf("file and line are not named: %v", err)
	}
	for _, place := range []string{"containers", "podman=/etc", "containers=", "containers=" + filepath.Join(dir, "none")} {
		if _, err := OpenFiles(t.Context(), place); err == nil {
			t.Errorf("%q is taken", place)
		}
	}
}

// TestAFetchGoesWhereTheObjectsSay is the whole way: objects and Secrets in the
// API server, real registries, and content that comes from the mirror.
func TestAFetchGoesWhereTheObjectsSay(t *testing.T) {
	r := start(t)
	mirror := ociregistry.New(t, ociregistry.Options{TLS: true, User: "m", Password: "of-the-mirror"})
	store, err := content.OpenDisk(t.Context(), t.TempDir(), content.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	login := registry.Login{}
	login.Username, login.Password = "m", "of-the-mirror"
	pusher := oci.New(nil, oci.Options{Transport: mirror.Transport()})
	files := fstest.MapFS{"a.yaml": {Data: []byte("a: 1\n")}}
	if _, err := pusher.Push(t.Context(), oci.Source{Ref: mirror.Host() + "/cache/team/app:1", Credentials: registry.NewKeychain([]registry.Login{login})}, files); err != nil {
		t.Fatal(err)
	}
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: r.namespace, Name: name} }
	r.create(t, &corev1.Secret{ObjectMeta: in("login"), Type: corev1.SecretTypeBasicAuth, StringData: map[string]string{"username": "m", "password": "of-the-mirror"}})
	r.create(t, &corev1.ConfigMap{ObjectMeta: in("authority"), Data: map[string]string{"ca.crt": string(mirror.CA())}})
	r.apply(t, "whole", fmt.Sprintf(`
- prefix: nowhere.example.com
  mirrorOnly: true
  mirrors: [{location: "%s/cache", credentials: {name: login}}]
- prefix: "%s"
  ca: {configMap: {name: authority}}
`, mirror.Host(), mirror.Host()))
	eventually(t, r.ready("whole", v1alpha1.ReasonInForce, "2"))

	fetcher := oci.New(store, oci.Options{Registries: r.config})
	src := oci.Source{Ref: "nowhere.example.com/team/app:1"}
	var pinned source.Pinned
	eventually(t, func(ctx context.Context) (err error) {
		pinned, err = fetcher.Resolve(ctx, src)
		return err
	})
	if !strings.HasPrefix(pinned.Ref, "nowhere.example.com/team/app@sha256:") {
		t.Errorf("the name is not that of the user: %s", pinned.Ref)
	}
	tree, _, err := fetcher.Fetch(t.Context(), src, pinned)
	if err != nil || tree.Files != 1 {
		t.Errorf("got %d files, %v", tree.Files, err)
	}
}
