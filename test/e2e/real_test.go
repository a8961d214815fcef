// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/file"
	"oras.land/oras-go/v2/registry/remote"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/testenv/assets"
)

// data gives a path below the shared test data, which is not part of this
// repository, or skips the test.
func data(t *testing.T, path string) string {
	t.Helper()
	root := os.Getenv("RUKPAK_SHARED_DATA")
	if root == "" {
		module, err := assets.ModuleRoot()
		if err != nil {
			t.Fatal(err)
		}
		root = filepath.Join(module, "..", "shared", "data")
	}
	full := filepath.Join(root, path)
	if _, err := os.Stat(full); err != nil {
		t.Skipf("SKIPPED: real input %s is not there; set RUKPAK_SHARED_DATA to the folder that holds it", full)
	}
	return full
}

// build gives a folder with what kustomize makes of another.
func build(t *testing.T, dir string) string {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "all.yaml"), encoded, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// warnOfCRDs lets the class warn of what new definitions would break.
func (a *tenant) warnOfCRDs() {
	a.t.Helper()
	class := &v1alpha1.ProvisionerClass{}
	if err := a.client.Get(a.t.Context(), types.NamespacedName{Name: a.get("app").Spec.Bundle.ProvisionerClassName}, class); err != nil {
		a.t.Fatal(err)
	}
	class.Spec.CRDUpgrade = &v1alpha1.CRDUpgradePolicy{Default: v1alpha1.CRDWarn}
	if err := a.client.Update(a.t.Context(), class); err != nil {
		a.t.Fatal(err)
	}
}

// pushWithORAS publishes the files of a folder as an ORAS user would: one layer
// a file, named by its title.
func (a *tenant) pushWithORAS(tag, dir string) string {
	a.t.Helper()
	ctx := a.t.Context()
	store, err := file.New(a.t.TempDir())
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	entries, err := os.ReadDir(dir)
	if err != nil {
		a.t.Fatal(err)
	}
	options := oras.PackManifestOptions{}
	for _, entry := range entries {
		layer, err := store.Add(ctx, entry.Name(), "", filepath.Join(dir, entry.Name()))
		if err != nil {
			a.t.Fatal(err)
		}
		options.Layers = append(options.Layers, layer)
	}
	manifest, err := oras.PackManifest(ctx, store, oras.PackManifestVersion1_1, "application/vnd.example.manifests", options)
	if err != nil {
		a.t.Fatal(err)
	}
	if err := store.Tag(ctx, manifest, tag); err != nil {
		a.t.Fatal(err)
	}
	ref := env.Registry.Host() + "/" + a.namespace + "/oras"
	repository, err := remote.NewRepository(ref)
	if err != nil {
		a.t.Fatal(err)
	}
	repository.PlainHTTP = true
	if _, err := oras.Copy(ctx, store, tag, repository, tag, oras.DefaultCopyOptions); err != nil {
		a.t.Fatal(err)
	}
	return ref + ":" + tag
}

func (a *tenant) exists(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	a.t.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(gvk)
	a.eventually(fmt.Sprintf("%s %s/%s exists", gvk.Kind, namespace, name), func(ctx context.Context) error {
		return a.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, found)
	})
	return found
}

var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// TestRealBundlesLiveTheirWholeLife activates real content, and where there are
// two versions of it also pivots and rolls back, and deletes it.
func TestRealBundlesLiveTheirWholeLife(t *testing.T) {
	tests := []struct {
		name          string
		first, second string // below the shared data
		kustomize     bool
		objects       int64  // of the first version
		refused       string // what the API server does not let the second version do
	}{
		{name: "prometheus-operator", first: "plain/prometheus-operator-bundle/v0.55.0", objects: 13},
		{name: "gateway-api", first: "plain/gateway-api-experimental/v1.0.0", second: "plain/gateway-api-experimental/v1.1.1", objects: 9,
			refused: "backendtlspolicies.gateway.networking.k8s.io"},
		{name: "limit-range", first: "kops/addons/limit-range.addons.k8s.io/head", objects: 1},
		{name: "kubelet-api", first: "kops/addons/kubelet-api.rbac.addons.k8s.io/head", objects: 1},
		{name: "podinfo", first: "kustomize/podinfo/6.5.4", second: "kustomize/podinfo/6.7.1", kustomize: true, objects: 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			folder := func(path string) string {
				path = data(t, path)
				if test.kustomize {
					return build(t, path)
				}
				return path
			}
			first := folder(test.first)
			a := newTenant(t, v1alpha1.ApprovalAutomatic)
			a.instance("app", a.pushDir("v1", first), func(i *v1alpha1.BundleInstance) {
				i.Spec.Strategy.Adoption = v1alpha1.AdoptUnowned
			})
			instance := a.ready("app")
			if got := instance.Status.Objects.Total; got != test.objects {
				t.Errorf("%d objects, want %d", got, test.objects)
			}
			if test.second != "" {
				ref := a.pushWithORAS("v2", folder(test.second))
				a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(ref) })
				if test.refused != "" {
					a.blocked("app", test.refused)
					// An API server keeps a version that it once stored, so the definition has to be made anew, which
					// costs nothing while it has no custom resources.
					a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Strategy.RecreateImmutable = true })
					// Other definitions get rules that live custom resources could break, which the class has to allow.
					a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonUnsafeCRDUpgrade)
					a.warnOfCRDs()
				}
				a.ready("app")
				one := int64(1)
				a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.RollbackTo = &one })
				if got := a.ready("app").Status.Objects.Total; got != instance.Status.Objects.Total {
					t.Errorf("%d objects after the rollback, want %d", got, instance.Status.Objects.Total)
				}
			}
			instance = a.get("app")
			if err := a.client.Delete(t.Context(), instance); err != nil {
				t.Fatal(err)
			}
			a.gone(instance)
		})
	}
}

// blocked waits until an instance says that the API server refuses an object.
func (a *tenant) blocked(name, object string) {
	a.t.Helper()
	a.eventually(name+" is blocked by "+object, func(context.Context) error {
		if message := a.message(name, v1alpha1.ConditionReady); !strings.Contains(message, object) {
			return fmt.Errorf("the message is %q", message)
		}
		return nil
	})
}

func TestLargeDefinitionsCarryNoAnnotationOfTheirOwnSize(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.instance("app", a.pushDir("v1", data(t, "plain/prometheus-operator-bundle/v0.55.0")))
	a.ready("app")
	crd := a.exists(crdKind, "", "prometheuses.monitoring.coreos.com")
	if _, found := crd.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"]; found {
		t.Error("the definition carries its own configuration in an annotation")
	}
	instance := a.get("app")
	if err := a.client.Delete(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	a.gone(instance)
}
