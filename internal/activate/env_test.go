// SPDX-License-Identifier: Apache-2.0

package activate_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/provisioner"
)

var cluster = testenv.Shared{Options: testenv.Options{Controllers: true}}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

// stage is one instance in a namespace of its own, with an engine for it.
type stage struct {
	*testing.T
	env       *testenv.Env
	namespace string
	owner     ownership.Owner
	admin     client.Client // somebody else
	engine    *activate.Engine
	options   activate.Options
	bare      bool // the object that is taken over has no managers
}

func newStage(t *testing.T) *stage {
	t.Helper()
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	admin := newClient(t, env.Config())
	return &stage{
		T: t, env: env, namespace: namespace, admin: admin,
		owner:   ownership.Owner{UID: types.UID("uid-" + namespace), Namespace: namespace, Name: "shop"},
		engine:  activate.New(activate.Config{Observed: fresh{admin}, Patience: 2 * time.Second, Served: served(t, env)}),
		options: activate.Options{DefaultNamespace: namespace},
	}
}

func served(t testing.TB, env *testenv.Env) activate.Served {
	t.Helper()
	found, err := discovery.NewDiscoveryClientForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	return activate.ServedBy(found)
}

func newClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fresh is a cache of the watch that has always just heard the news.
type fresh struct{ client client.Client }

func (f fresh) Get(id ownership.ID) (*metav1.PartialObjectMetadata, bool) {
	mapping, err := f.client.RESTMapper().RESTMapping(id.GroupKind())
	if err != nil {
		return nil, false
	}
	seen := &metav1.PartialObjectMetadata{}
	seen.SetGroupVersionKind(mapping.GroupVersionKind)
	err = f.client.Get(context.Background(), types.NamespacedName{Namespace: id.Namespace, Name: id.Name}, seen)
	_, marked := seen.GetLabels()[ownership.LabelInstanceUID]
	return seen, err == nil && marked
}

// apply applies objects, in phases by their kind.
func (s *stage) apply(objects ...*unstructured.Unstructured) activate.Result {
	s.Helper()
	return s.engine.Apply(s.Context(), s.admin, s.owner, provisioner.ByKind(objects), s.options)
}

// mustApply applies until all objects stand.
func (s *stage) mustApply(objects ...*unstructured.Unstructured) activate.Result {
	s.Helper()
	result := s.apply(objects...)
	for range 20 {
		if result.Complete || len(result.Waiting()) == 0 {
			break
		}
		result = s.apply(objects...)
	}
	if !result.Complete {
		s.Fatalf("not complete: %s", result)
	}
	return result
}

func (s *stage) teardown(objects ...*unstructured.Unstructured) activate.Result {
	s.Helper()
	return s.engine.Teardown(s.Context(), s.admin, s.owner, provisioner.ByKind(objects), s.options)
}

// earlier makes the engine know what earlier revisions had.
func (s *stage) earlier(objects ...*unstructured.Unstructured) {
	s.options.Earlier = func(id ownership.ID) []*unstructured.Unstructured {
		var found []*unstructured.Unstructured
		for _, object := range objects {
			other := ownership.IDOf(object)
			if other.Namespace = id.Namespace; other == id {
				found = append(found, object)
			}
		}
		return found
	}
}

// live reads an object as it is now.
func (s *stage) live(like *unstructured.Unstructured) *unstructured.Unstructured {
	s.Helper()
	live, err := s.look(like)
	if err != nil {
		s.Fatal(err)
	}
	return live
}

func (s *stage) look(like *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(like.GroupVersionKind())
	namespace := like.GetNamespace()
	if namespace == "" {
		namespace = s.namespace
	}
	return live, s.admin.Get(s.Context(), types.NamespacedName{Namespace: namespace, Name: like.GetName()}, live)
}

func (s *stage) gone(like *unstructured.Unstructured) bool {
	s.Helper()
	_, err := s.look(like)
	if err != nil && !apierrors.IsNotFound(err) {
		s.Fatal(err)
	}
	return err != nil
}

// inNamespace gives an object the test's namespace.
func (s *stage) inNamespace(object *unstructured.Unstructured) *unstructured.Unstructured {
	out := object.DeepCopy()
	out.SetNamespace(s.namespace)
	return out
}

// stranger makes an object without any mark.
func (s *stage) stranger(object *unstructured.Unstructured) {
	s.Helper()
	if err := s.admin.Create(s.Context(), s.inNamespace(object), client.FieldOwner("somebody")); err != nil {
		s.Fatal(err)
	}
}

// edit changes a live object by a merge patch, as somebody else.
func (s *stage) edit(like *unstructured.Unstructured, patch string) {
	s.Helper()
	s.patch(like, types.MergePatchType, patch)
}

func (s *stage) patch(like *unstructured.Unstructured, kind types.PatchType, patch string) {
	s.Helper()
	object := s.inNamespace(like)
	if err := s.admin.Patch(s.Context(), object, client.RawPatch(kind, []byte(patch)), client.FieldOwner("somebody")); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) scale(like *unstructured.Unstructured, replicas int64) {
	s.Helper()
	scale := parse(s, "{apiVersion: autoscaling/v1, kind: Scale, spec: {}}")
	scale.Object["spec"] = map[string]any{"replicas": replicas}
	if err := s.admin.SubResource("scale").Update(s.Context(), s.inNamespace(like), client.WithSubResourceBody(scale)); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) delete(like *unstructured.Unstructured) {
	s.Helper()
	if err := s.admin.Delete(s.Context(), s.inNamespace(like)); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) kubectl(input string, args ...string) {
	s.Helper()
	if _, err := s.env.KubectlInput(s.Context(), input, append([]string{"-n", s.namespace}, args...)...); err != nil {
		s.Fatal(err)
	}
}

// only returns the one result for an object.
func only(t testing.TB, result activate.Result) activate.ObjectResult {
	t.Helper()
	if len(result.Objects) != 1 {
		t.Fatalf("want one object: %s", result)
	}
	return result.Objects[0]
}

func field(object *unstructured.Unstructured, path string) any {
	found, _, _ := unstructured.NestedFieldNoCopy(object.Object, strings.Split(path, ".")...)
	return found
}

func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return object
}

func configMap(t testing.TB, name, data string) *unstructured.Unstructured {
	return parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}, data: "+data+"}")
}

func deployment(t testing.TB, name string) *unstructured.Unstructured {
	return parse(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: `+name+`, labels: {app: `+name+`}}
spec:
  replicas: 2
  selector: {matchLabels: {app: `+name+`}}
  template:
    metadata: {labels: {app: `+name+`}}
    spec:
      containers:
      - name: main
        image: example.com/app:1
        ports: [{containerPort: 80}, {containerPort: 81, name: other}]
        env: [{name: A, value: a}, {name: B, value: b}]
        resources: {requests: {cpu: 1000m}}
`)
}

func service(t testing.TB, name string) *unstructured.Unstructured {
	return parse(t, `
apiVersion: v1
kind: Service
metadata: {name: `+name+`}
spec: {selector: {app: `+name+`}, ports: [{port: 80, name: http}]}
`)
}

// set returns a copy with a field changed.
func set(object *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	out := object.DeepCopy()
	if err := unstructured.SetNestedField(out.Object, value, path...); err != nil {
		panic(err)
	}
	return out
}

// without returns a copy without a field.
func without(object *unstructured.Unstructured, path ...string) *unstructured.Unstructured {
	out := object.DeepCopy()
	unstructured.RemoveNestedField(out.Object, path...)
	return out
}

var crdGVK = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// frozen is a cache that does not hear of an object any more.
type frozen struct {
	fresh
	state *metav1.PartialObjectMetadata
}

func (f *frozen) freeze(id ownership.ID) { f.state, _ = f.fresh.Get(id) }

func (f *frozen) Get(id ownership.ID) (*metav1.PartialObjectMetadata, bool) {
	if f.state != nil {
		return f.state, true
	}
	return f.fresh.Get(id)
}

// widgets is a CustomResourceDefinition of a group of the test's own.
func widgets(t testing.TB, namespace string) *unstructured.Unstructured {
	group := namespace + ".example.com"
	return parse(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.`+group+`}
spec:
  group: `+group+`
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: fixed stays as it is}]}
`)
}

func widget(t testing.TB, namespace, name string) *unstructured.Unstructured {
	return parse(t, "{apiVersion: "+namespace+".example.com/v1, kind: Widget, metadata: {name: "+name+"}, spec: {size: 1, fixed: a}}")
}

func (s *stage) deleteCRD(crd *unstructured.Unstructured) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(crdGVK)
	object.SetName(crd.GetName())
	_ = s.admin.Delete(context.Background(), object) // to leave nothing behind; it may be gone
}

func objects(all ...*unstructured.Unstructured) []*unstructured.Unstructured { return all }

func yamlOf(t testing.TB, object *unstructured.Unstructured) []byte {
	t.Helper()
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// release takes away the finalizers of an object after the test.
func (s *stage) release(like *unstructured.Unstructured) {
	object := s.inNamespace(like)
	_ = s.admin.Patch(context.Background(), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
}

// cleanup is for what is done after the test, whose own context has ended by then.
var cleanup = context.Background()

const mergePatch = types.MergePatchType

func eventually(t testing.TB, what string, look func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !look(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 60 s: %s", what)
		}
	}
}
