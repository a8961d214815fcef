// SPDX-License-Identifier: Apache-2.0

package certificate_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/opencontainers/go-digest"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/certificate"
	controller "rukpak.io/rukpak/internal/controller/certificate"
	"rukpak.io/rukpak/internal/identity"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/internal/watch"
	"rukpak.io/rukpak/provisioner"
)

var cluster = testenv.Shared{CRDs: true}

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

// stage is an instance with a revision that is being activated, and the parts that act for it.
type stage struct {
	*testing.T
	client    client.Client
	namespace string
	account   string
	accounts  *identity.Clients
	engine    *activate.Engine
	owner     ownership.Owner
	instance  *v1alpha1.BundleInstance
	phases    []provisioner.Phase // of the revision
	told      chan string
	control   *controller.Controller
}

// Phases are those of any revision.
func (s *stage) Phases(context.Context, *v1alpha1.InstanceRevision) ([]provisioner.Phase, error) {
	return s.phases, nil
}

func newStage(t *testing.T) *stage {
	t.Helper()
	env := cluster.Env(t)
	c, err := env.NewClient(scheme())
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, client: c, namespace: env.NewNamespace(t)}
	s.account = env.ClusterServiceAccount(t, s.namespace, testenv.Everything())
	kinds, err := discovery.NewDiscoveryClientForConfig(env.Config())
	s.must(err)
	objects, err := metadata.NewForConfig(env.Config())
	s.must(err)
	s.accounts, err = identity.NewClients(env.Config(), scheme(), c.RESTMapper())
	s.must(err)
	watcher := watch.New(watch.Config{Client: objects, Mapper: c.RESTMapper()})
	t.Cleanup(watcher.Stop)
	s.engine = activate.New(activate.Config{Observed: watcher, Served: activate.ServedBy(kinds)})
	s.instance = &v1alpha1.BundleInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "app"},
		Spec: v1alpha1.BundleInstanceSpec{
			Bundle:             &v1alpha1.BundleSpec{Sources: []v1alpha1.BundleSource{{OCI: &v1alpha1.OCISource{Ref: "registry.example/app:v1"}}}},
			ServiceAccountName: s.account,
		},
	}
	s.must(c.Create(t.Context(), s.instance))
	s.owner = ownership.Owner{UID: s.instance.UID, Namespace: s.namespace, Name: "app"}
	s.revision()
	s.restart(0)
	return s
}

func (s *stage) revision() {
	s.Helper()
	any, now := v1alpha1.Digest(digest.FromString("any")), metav1.Now()
	made := &v1alpha1.InstanceRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "app-1", Labels: map[string]string{v1alpha1.LabelInstance: "app"}},
		Spec: v1alpha1.InstanceRevisionSpec{
			Instance: v1alpha1.InstanceReference{Name: "app", UID: s.instance.UID}, Number: 1, BundleName: "any", ProvisionerClassName: "any",
			ContentDigest: any, ConfigDigest: any, ManifestDigest: any, ServiceAccountName: s.account, Adoption: v1alpha1.AdoptNever,
		},
	}
	s.must(s.client.Create(s.Context(), made))
	made.Status.ActivatedAt = &now
	s.must(s.client.Status().Update(s.Context(), made))
}

// restart replaces the controller by one that remembers nothing and whose clock is off by so much.
func (s *stage) restart(off time.Duration) {
	recorder := events.NewFakeRecorder(100)
	s.told = recorder.Events
	s.control = &controller.Controller{
		Client: s.client, Recorder: recorder, Accounts: s.accounts, Manifests: s, Now: func() time.Time { return time.Now().Add(off) },
	}
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) reconcile() (ctrl.Result, error) {
	s.Helper()
	return s.control.Reconcile(s.Context(), s.instance)
}

// objects makes the objects of the revision.
func (s *stage) objects(texts ...string) {
	s.Helper()
	var all []*unstructured.Unstructured
	for _, text := range texts {
		object := &unstructured.Unstructured{}
		s.must(yaml.Unmarshal([]byte(strings.ReplaceAll(text, "NS", s.namespace)), &object.Object))
		all = append(all, object)
	}
	s.phases = provisioner.ByKind(all)
	s.Cleanup(func() { // what has no namespace outlives it
		for _, object := range all {
			_ = s.client.Delete(context.Background(), object)
		}
	})
}

// apply activates the objects, as the revision controller does, and gives what was written.
func (s *stage) apply() (written []string) {
	s.Helper()
	actor, err := s.accounts.Client(s.namespace, s.account)
	s.must(err)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		result := s.engine.Apply(s.Context(), actor, s.owner, s.phases, activate.Options{DefaultNamespace: s.namespace})
		for _, object := range result.Objects {
			if object.Action != activate.Intact && object.Action != activate.Waiting {
				written = append(written, fmt.Sprint(object.Action, " ", object.ID, " ", object.Fields))
			}
		}
		if result.Complete {
			return written
		}
		if time.Now().After(deadline) || result.Err() != nil {
			s.Fatal(result.String())
		}
	}
}

func (s *stage) live(kind, name string) *unstructured.Unstructured {
	s.Helper()
	object := &unstructured.Unstructured{}
	version := "admissionregistration.k8s.io/v1"
	switch kind {
	case "Secret", "Service":
		version = "v1"
		object.SetNamespace(s.namespace)
	case "CustomResourceDefinition":
		version = "apiextensions.k8s.io/v1"
	case "APIService":
		version = "apiregistration.k8s.io/v1"
	}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	object.SetName(name)
	s.must(s.client.Get(s.Context(), client.ObjectKeyFromObject(object), object))
	return object
}

const service = `{apiVersion: v1, kind: Service, metadata: {name: hooks, namespace: NS}, spec: {type: ExternalName, externalName: localhost}}`

func configuration(port int, hooks ...string) string {
	text := `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: NS, annotations: {rukpak.io/serving-certificate: cert}}, webhooks: [`
	for _, name := range hooks {
		text += fmt.Sprintf(`{name: %s.hooks.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Fail, timeoutSeconds: 20,
			clientConfig: {service: {name: hooks, namespace: NS, path: /validate, port: %d}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}},
			rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]},`, name, port)
	}
	return text + "]}"
}

func definition(port int) string {
	return fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: cups.NS.example.com, annotations: {rukpak.io/serving-certificate: cert}},
		spec: {group: NS.example.com, scope: Namespaced, names: {kind: Cup, plural: cups, singular: cup, listKind: CupList},
			versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}],
			conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: hooks, namespace: NS, path: /convert, port: %d}}}}}}`, port)
}

// server is a webhook server with a certificate that the test gives it. It refuses whatever is called bad.
type server struct {
	port    int
	pair    atomic.Pointer[tls.Certificate]
	refused atomic.Int64
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{}
	listener, err := tls.Listen("tcp", "localhost:0", &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.pair.Load(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	s.port = listener.Addr().(*net.TCPAddr).Port
	served := &http.Server{Handler: http.HandlerFunc(s.validate), ReadHeaderTimeout: time.Minute, IdleTimeout: time.Millisecond}
	go func() { _ = served.Serve(listener) }()
	t.Cleanup(func() { _ = served.Close() })
	return s
}

func (s *server) validate(w http.ResponseWriter, r *http.Request) {
	if group, ok := strings.CutPrefix(r.URL.Path, "/apis/"); ok { // as an API server that has no resources
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Connection", "close")
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: group})
		return
	}
	review := admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: review.Request.Name != "bad", Result: &metav1.Status{Message: "the server has spoken"}}
	if !review.Response.Allowed {
		s.refused.Add(1)
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Connection", "close") // so that the next call shakes hands anew
	_ = json.NewEncoder(w).Encode(review)
}

// load gives the server what the Secret holds, as the kubelet and the server's own watch do after a while.
func (s *server) load(t *testing.T, secret *unstructured.Unstructured) {
	t.Helper()
	part := func(key string) []byte {
		text, _, _ := unstructured.NestedString(secret.Object, "data", key)
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	pair, err := tls.X509KeyPair(part(certificate.CertificateKey), part(certificate.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	s.pair.Store(&pair)
}

// trusted waits until the API server reaches the webhook and believes it.
func (s *stage) trusted(server *server, when string) {
	s.Helper()
	bad := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "bad"}}
	var err error
	before := server.refused.Load()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if err = s.client.Create(s.Context(), bad.DeepCopy()); err != nil && strings.Contains(err.Error(), "the server has spoken") && server.refused.Load() > before {
			return
		}
	}
	s.Fatalf("%s: the API server does not trust the webhook: %v", when, err)
}
