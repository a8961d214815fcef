// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/internal/identity"
	"rukpak.io/rukpak/internal/permission"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/provisioner"
)

var cluster = testenv.Shared{}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

func admin(t *testing.T) (*testenv.Env, client.Client) {
	t.Helper()
	env := cluster.Env(t)
	c, err := env.NewClient(scheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	return env, c
}

func TestClientActsAsTheServiceAccountOnly(t *testing.T) {
	t.Parallel()
	env, c := admin(t)
	namespace := env.NewNamespace(t)
	account := env.ServiceAccount(t, namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}})
	clients, err := identity.NewClients(env.Config(), scheme.Scheme, c.RESTMapper())
	if err != nil {
		t.Fatal(err)
	}
	actor, err := clients.Client(namespace, account)
	if err != nil {
		t.Fatal(err)
	}
	if err := actor.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}}); err != nil {
		t.Errorf("what it may do: %v", err)
	}
	err = actor.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "x"}, &corev1.ConfigMap{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), identity.User(namespace, account)) {
		t.Errorf("what it may not: %v", err)
	}
	for _, name := range []string{"", account} {
		if _, err := clients.Client(map[bool]string{true: namespace}[name == ""], name); err == nil {
			t.Errorf("a client without namespace or account (%q)", name)
		}
	}
}

func TestManyAccountsShareConnections(t *testing.T) {
	t.Parallel()
	env, c := admin(t)
	var dialled atomic.Int64
	config := env.Config()
	dialer := &net.Dialer{}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Add(1)
		return dialer.DialContext(ctx, network, address)
	}
	clients, err := identity.NewClients(config, scheme.Scheme, c.RESTMapper())
	if err != nil {
		t.Fatal(err)
	}
	call := func(account string) {
		actor, err := clients.Client("default", account)
		if err != nil {
			t.Error(err)
			return
		}
		if err := actor.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "x"}, &corev1.ConfigMap{}); !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
	}
	const accounts = 60
	for i := range accounts { // one after the other: how many are dialled in vain at the same time is no matter
		call(fmt.Sprintf("account-%d", i))
	}
	if n := dialled.Load(); n > 3 {
		t.Errorf("%d connections for %d accounts", n, accounts)
	}
}

func TestAccountThatDoesNotExistIsToldBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	env, c := admin(t)
	namespace := env.NewNamespace(t)
	account := env.ServiceAccount(t, namespace)
	if err := identity.Exists(t.Context(), c, namespace, account); err != nil {
		t.Errorf("it exists: %v", err)
	}
	err := identity.Exists(t.Context(), c, namespace, "nobody")
	var missing *identity.MissingServiceAccountError
	if !errors.As(err, &missing) || missing.Name != "nobody" || !strings.Contains(err.Error(), namespace) {
		t.Errorf("got %v", err)
	}
}

const content = `
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: NS}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: NS}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader, namespace: NS}, rules: [{apiGroups: [""], resources: [secrets], resourceNames: [one], verbs: [get]}]}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: reader, namespace: NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: viewer, namespace: NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: metrics}, rules: [{nonResourceURLs: [/metrics], verbs: [get]}]}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NS}}
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: widgets.example.com}
  spec: {group: example.com, names: {kind: Widget, plural: widgets}, scope: Namespaced}
- {apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: NS}}
`

func parse(t *testing.T, text string) []provisioner.Phase {
	t.Helper()
	var all []map[string]any
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, object := range all {
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}
	return provisioner.ByKind(objects)
}

// needs is all that the content needs.
func needs(t *testing.T, c client.Client, namespace string) permission.Needs {
	t.Helper()
	needed, err := permission.Needed(parse(t, strings.ReplaceAll(content, "NS", namespace)), c.RESTMapper(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return needed
}

// lacks asks for all that the content needs.
func lacks(t *testing.T, c client.Client, namespace, account string) []permission.Access {
	t.Helper()
	missing, err := identity.NewReviewer(c).Missing(t.Context(), namespace, account, needs(t, c, namespace))
	if err != nil {
		t.Fatal(err)
	}
	return missing
}

func TestAllThatIsMissingIsToldAtOnceAndWhatIsGrantedThenSuffices(t *testing.T) {
	t.Parallel()
	env, c := admin(t)
	namespace := env.NewNamespace(t)
	account := env.ServiceAccount(t, namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"a", "b"}, Verbs: []string{"patch", "delete"}})
	missing := lacks(t, c, namespace, account)
	want := strings.Split(strings.ReplaceAll(strings.TrimSpace(`
get /metrics
create,delete,get,patch customresourcedefinitions.apiextensions.k8s.io
list widgets.example.com
create,delete,get,patch clusterroles.rbac.authorization.k8s.io
get secrets "one" in namespace "NS"
create,delete,get,patch deployments.apps in namespace "NS"
create,delete,get,patch widgets.example.com in namespace "NS"
bind clusterroles.rbac.authorization.k8s.io "view" in namespace "NS"
create,delete,get,patch rolebindings.rbac.authorization.k8s.io in namespace "NS"
create,delete,get,patch roles.rbac.authorization.k8s.io in namespace "NS"`), "NS", namespace), "\n")
	if diff := cmp.Diff(want, permission.Lines(missing)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, object := range needs(t, c, namespace).LeastRBAC(namespace, account, nil) {
		object, ok := object.(client.Object)
		if !ok || object.GetObjectKind().GroupVersionKind().Kind == "ServiceAccount" {
			continue // it is there
		}
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(context.Background(), object) })
	}
	if still := permission.Lines(lacks(t, c, namespace, account)); len(still) > 0 {
		t.Errorf("after it was granted: %q", still)
	}
}
