// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/provisioners/helm"
	"rukpak.io/rukpak/internal/provisioners/kustomize"
	"rukpak.io/rukpak/internal/provisioners/plain"
	"rukpak.io/rukpak/internal/provisioners/registryv1"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/internal/testenv/realinput"
	"rukpak.io/rukpak/provisioner"
)

// bundles are folders of the real input, by who renders them. Those that are missing need kinds that no test cluster has, or
// are there to be refused.
var bundles = []struct {
	provisioner provisioner.Provisioner
	folder      string
	parameters  string
}{
	{plain.New(), "plain/prometheus-operator-bundle/v0.55.0", ""},
	{plain.New(), "plain/gateway-api-experimental/v1.0.0", ""},
	{plain.New(), "plain/gateway-api-experimental/v1.1.1", ""},
	{plain.New(), "kops/addons/authentication.kope.io", ""},
	{plain.New(), "kops/addons/kubelet-api.rbac.addons.k8s.io", ""},
	{plain.New(), "kops/addons/limit-range.addons.k8s.io", ""},
	{plain.New(), "kops/addons/metadata-proxy.addons.k8s.io", ""},
	{plain.New(), "kops/addons/networking.kope.io", ""},
	{kustomize.New(), "kustomize/podinfo/6.5.4", ""},
	{kustomize.New(), "kustomize/podinfo/6.7.1", ""},
	{kustomize.New(), "kustomize/metrics-server/0.8.1", `{"path": "overlays/release"}`},
	{kustomize.New(), "kustomize/source-controller/head", `{"path": "default"}`},
	{kustomize.New(), "kustomize/coredns-operator/head", `{"path": "rbac"}`},
	{kustomize.New(), "kustomize/flux2/head", `{"path": "rbac"}`},
	{helm.New(), "helm/podinfo/6.5.4", ""},
	{helm.New(), "helm/podinfo/6.11.2", ""},
	{helm.New(), "helm/ingress-nginx/4.15.1", ""},
	{helm.New(), "helm/metrics-server/3.13.1", ""},
	{helm.New(), "helm/alertmanager/head", ""},
	{helm.New(), "helm/crds-dir/v2", ""},
	{registryv1.New(), "olm/webhook-operator/0.0.5", ""},
}

// stage is a namespace with an account that may do nothing yet.
type stage struct {
	*testing.T
	env       *testenv.Env
	admin     client.Client
	namespace string
}

const account = "installer"

func newStage(t *testing.T) *stage {
	log.SetLogger(logr.Discard())
	env := cluster.Env(t)
	return &stage{T: t, env: env, namespace: env.NewNamespace(t), admin: clientOf(t, env.Config())}
}

func clientOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *stage) scope(kind schema.GroupVersionKind) (namespaced, known bool, err error) {
	mapping, err := s.admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, false, nil
	}
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace, err == nil, err
}

// least makes the account with the least rights for the phases, checks that all of them are needed, and gives the account's client.
func (s *stage) least(phases []provisioner.Phase) client.Client {
	s.Helper()
	needs, err := Needed(phases, s.admin.RESTMapper(), nil)
	if err != nil {
		s.Fatal(err)
	}
	exists := func(namespace string) bool {
		return s.admin.Get(s.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{}) == nil
	}
	granted := needs.LeastRBAC(s.namespace, account, exists)
	s.check(needs, granted)
	for _, object := range granted {
		object := object.(client.Object)
		if err := s.admin.Create(s.Context(), object); err != nil {
			s.Fatal(err)
		}
		if object.GetNamespace() == "" || object.GetNamespace() != s.namespace {
			s.Cleanup(func() { _ = s.admin.Delete(context.Background(), object) })
		}
	}
	config := s.env.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: testenv.Account(s.namespace, account)}
	return clientOf(s.T, config)
}

// check says by the model that what is granted suffices, and that it does not without any one rule.
func (s *stage) check(needs Needs, granted []runtime.Object) {
	s.Helper()
	held := func(without *rbacv1.PolicyRule) map[string]*Rules {
		var live Live
		some := func(rules []rbacv1.PolicyRule) (kept []rbacv1.PolicyRule) {
			for i := range rules {
				if &rules[i] != without {
					kept = append(kept, rules[i])
				}
			}
			return kept
		}
		for _, object := range granted {
			switch o := object.(type) {
			case *rbacv1.Role:
				live.Roles = append(live.Roles, &rbacv1.Role{ObjectMeta: o.ObjectMeta, Rules: some(o.Rules)})
			case *rbacv1.ClusterRole:
				live.ClusterRoles = append(live.ClusterRoles, &rbacv1.ClusterRole{ObjectMeta: o.ObjectMeta, Rules: some(o.Rules)})
			case *rbacv1.RoleBinding:
				live.RoleBindings = append(live.RoleBindings, o)
			case *rbacv1.ClusterRoleBinding:
				live.ClusterRoleBindings = append(live.ClusterRoleBindings, o)
			}
		}
		return NewSnapshot(live).Held(AccountSubject(s.namespace, account))
	}
	if lacks := needs.Lacks(held(nil)); len(lacks) > 0 {
		s.Errorf("the least rights lack %q", Lines(lacks))
	}
	for _, object := range granted {
		var rules []rbacv1.PolicyRule
		switch o := object.(type) {
		case *rbacv1.Role:
			rules = o.Rules
		case *rbacv1.ClusterRole:
			rules = o.Rules
		}
		for i := range rules {
			if len(needs.Lacks(held(&rules[i]))) == 0 {
				s.Errorf("not needed: %s", Line(rules[i]))
			}
		}
	}
}

func (s *stage) render(bundle string, by provisioner.Provisioner, parameters string) []provisioner.Phase {
	s.Helper()
	request := provisioner.Request{
		Instance: types.NamespacedName{Namespace: s.namespace, Name: "shop"}, Content: os.DirFS(realinput.Path(s, bundle)), Revision: 1,
		Cluster: provisioner.Cluster{Version: "v1.37.2"},
	}
	if parameters != "" {
		request.Parameters = []byte(parameters)
	}
	result, err := by.Render(s.Context(), request)
	if err != nil {
		s.Fatal(err)
	}
	if err := manifest.Namespaced(result.Phases, s.scope, s.namespace); err != nil {
		s.Fatal(err)
	}
	s.makeNamespaces(result.Phases)
	return activate.At(result.Phases, "") // Pods that never end would be waited for
}

// makeNamespaces makes those that the content takes as given.
func (s *stage) makeNamespaces(phases []provisioner.Phase) {
	s.Helper()
	brought := map[string]bool{}
	for _, object := range (manifest.Set{Phases: phases}).Objects() {
		if object.GetKind() == "Namespace" {
			brought[object.GetName()] = true
		}
	}
	for _, object := range (manifest.Set{Phases: phases}).Objects() {
		name := object.GetNamespace()
		if name == "" || brought[name] {
			continue
		}
		err := s.admin.Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			s.Fatal(err)
		}
		brought[name] = true
	}
}

func TestLeastRightsSufficeToActivateAndRemoveRealBundles(t *testing.T) {
	for _, bundle := range bundles {
		t.Run(strings.ReplaceAll(bundle.folder, "/", "_"), func(t *testing.T) {
			s := newStage(t)
			phases := s.render(bundle.folder, bundle.provisioner, bundle.parameters)
			actor := s.least(phases)
			found, err := discovery.NewDiscoveryClientForConfig(s.env.Config())
			if err != nil {
				t.Fatal(err)
			}
			engine := activate.New(activate.Config{Patience: 5 * time.Second, Served: activate.ServedBy(found)})
			owner := ownership.Owner{UID: types.UID("uid-" + s.namespace), Namespace: s.namespace, Name: "shop"}
			options := activate.Options{DefaultNamespace: s.namespace}
			s.until("activated", func() activate.Result { return engine.Apply(t.Context(), actor, owner, phases, options) })
			s.until("removed", func() activate.Result { return engine.Teardown(t.Context(), actor, owner, phases, options) })
		})
	}
}

// until goes on until all is done. The API server hears of rights some milliseconds after they are stored.
func (s *stage) until(what string, do func() activate.Result) {
	s.Helper()
	var result activate.Result
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if result = do(); result.Complete {
			return
		}
	}
	var all []error
	for _, one := range result.Objects {
		if one.Err != nil {
			all = append(all, one.Err)
		}
	}
	s.Fatalf("not %s: %s: %v", what, result, errors.Join(all...))
}
