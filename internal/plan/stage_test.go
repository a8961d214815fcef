// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/identity"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/plan"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/provisioner"
)

var cluster = testenv.Shared{Options: testenv.Options{Controllers: true}}

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// stage is one instance in a namespace of its own.
type stage struct {
	*testing.T
	env       *testenv.Env
	namespace string
	account   string // "" for an administrator
	admin     client.Client
	engine    *activate.Engine
	owner     ownership.Owner
	options   activate.Options
	crds      crdsafety.Policy
	tasks     []provisioner.Phase // besides those of the objects
	moment    provisioner.Moment
	sent      recorder
}

func newStage(t *testing.T) *stage {
	t.Helper()
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	return &stage{
		T: t, env: env, namespace: namespace, admin: newClient(t, env.Config()),
		owner:   ownership.Owner{UID: types.UID("uid-" + namespace), Namespace: namespace, Name: "shop"},
		engine:  activate.New(activate.Config{}),
		options: activate.Options{DefaultNamespace: namespace},
	}
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

// recorder notes what is sent.
type recorder struct {
	mu     sync.Mutex
	reads  int
	dry    int
	writes []string
}

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		dry := slices.Equal(request.URL.Query()["dryRun"], []string{"All"})
		if request.Method == http.MethodDelete { // there it is in the body
			body, err := io.ReadAll(request.Body)
			if err != nil {
				return nil, err
			}
			request.Body = io.NopCloser(bytes.NewReader(body))
			dry = bytes.Contains(body, []byte(`"dryRun":["All"]`))
		}
		r.mu.Lock()
		switch {
		case request.Method == http.MethodGet:
			r.reads++
		case dry:
			r.dry++
		default:
			r.writes = append(r.writes, request.Method+" "+request.URL.String())
		}
		r.mu.Unlock()
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// in gives the objects the namespace of the stage, as manifest.Namespaced does.
func (s *stage) in(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, object := range objects {
		object = object.DeepCopy()
		if namespaced, err := s.admin.IsObjectNamespaced(object); (err != nil || namespaced) && object.GetNamespace() == "" {
			object.SetNamespace(s.namespace)
		}
		out = append(out, object)
	}
	return out
}

func (s *stage) activate(objects ...*unstructured.Unstructured) {
	s.Helper()
	result := s.engine.Apply(s.Context(), s.admin, s.owner, provisioner.ByKind(s.in(objects)), s.options)
	for range 10 {
		if result.Complete {
			return
		}
		result = s.engine.Apply(s.Context(), s.admin, s.owner, provisioner.ByKind(s.in(objects)), s.options)
	}
	s.Fatalf("not complete: %s", result)
}

type objects = []*unstructured.Unstructured

// plan computes the plan from old to new objects, and checks that it writes nothing.
func (s *stage) plan(old, new objects) *plan.Plan {
	s.Helper()
	p, err := s.compute(s.Context(), old, new)
	if err != nil {
		s.Fatal(err)
	}
	if len(s.sent.writes) > 0 {
		s.Errorf("a plan has written: %v", s.sent.writes)
	}
	return p
}

func (s *stage) compute(ctx context.Context, old, new objects) (*plan.Plan, error) {
	s.Helper()
	config := s.env.Config()
	if s.account != "" {
		config.Impersonate.UserName = identity.User(s.namespace, s.account)
		config.Impersonate.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + s.namespace, "system:authenticated"}
	}
	config.Wrap(s.sent.wrap)
	in := plan.Input{
		Client: newClient(s, config), Engine: s.engine, Owner: s.owner, Options: s.options, Prune: true, CRDs: s.crds,
		Phases: append(provisioner.ByKind(s.in(new)), s.tasks...), Older: provisioner.ByKind(s.in(old)), Moment: s.moment,
	}
	if s.account != "" {
		in.Reviewer = plan.Account{Reviewer: identity.NewReviewer(s.admin), Mapper: s.admin.RESTMapper(), Namespace: s.namespace, Name: s.account}
	}
	return plan.Compute(ctx, in)
}

// change finds what is planned for an object.
func (s *stage) change(p *plan.Plan, kind, name string) plan.Change {
	s.Helper()
	for _, change := range p.Changes {
		if change.Kind == kind && change.Name == name {
			return change
		}
	}
	s.Fatalf("nothing is planned for %s %s in %+v", kind, name, p.Changes)
	return plan.Change{}
}

// told are the fields of a change in words.
func told(change plan.Change) []string {
	var lines []string
	for _, field := range change.Fields {
		old, now := "none", "none"
		if field.Old != nil {
			old = string(field.Old)
		}
		if field.New != nil {
			now = string(field.New)
		}
		lines = append(lines, field.Path+": "+old+" -> "+now)
	}
	return lines
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

func deployment(t testing.TB, name, image string) *unstructured.Unstructured {
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
      initContainers: [{name: init, image: "example.com/init:1"}]
      containers:
      - name: main
        image: `+image+`
        args: [a, b]
        ports: [{containerPort: 80}, {containerPort: 81, name: other}]
        env: [{name: A, value: a}, {name: B, value: b}]
`)
}

func set(object *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	out := object.DeepCopy()
	if err := unstructured.SetNestedField(out.Object, value, path...); err != nil {
		panic(err)
	}
	return out
}

func without(object *unstructured.Unstructured, path ...string) *unstructured.Unstructured {
	out := object.DeepCopy()
	unstructured.RemoveNestedField(out.Object, path...)
	return out
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
`)
}

func widget(t testing.TB, namespace, name string) *unstructured.Unstructured {
	return parse(t, "{apiVersion: "+namespace+".example.com/v1, kind: Widget, metadata: {name: "+name+"}, spec: {size: 1}}")
}
