// SPDX-License-Identifier: Apache-2.0

package offline_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"rukpak.io/rukpak/internal/cluster"
	"rukpak.io/rukpak/internal/cluster/offline"
	"rukpak.io/rukpak/internal/testenv"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// The API server is of the version that the clients are of, so what is read off the clients is to be what it serves.
func TestWhatIsAssumedIsWhatAnAPIServerServes(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(shared.Env(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	real, err := cluster.NewFacts(client).Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	assumed := offline.New().Cluster(offline.Version)
	if minor := func(version string) string { return strings.Join(strings.Split(version, ".")[:2], ".") }; minor(real.Version) != minor(assumed.Version) {
		t.Fatalf("the API server is %s, and %s is assumed", real.Version, assumed.Version)
	}
	var more, less []string
	for _, api := range assumed.APIs {
		if !real.Serves(api) {
			more = append(more, api)
		}
	}
	for _, api := range real.APIs {
		if !assumed.Serves(api) && !strings.Contains(api, "rukpak.io/") {
			less = append(less, api)
		}
	}
	if diff := cmp.Diff([]string(nil), more); diff != "" {
		t.Errorf("assumed, but not served (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string(nil), less); diff != "" {
		t.Errorf("served, but not assumed (-want +got):\n%s", diff)
	}
}

func TestScopesAreThoseOfTheAPIServer(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(shared.Env(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	facts, checked := offline.New(), 0
	for _, list := range lists {
		for _, resource := range list.APIResources {
			kind := schema.FromAPIVersionAndKind(list.GroupVersion, resource.Kind)
			namespaced, known, _ := facts.Scope(kind)
			if !known || strings.Contains(resource.Name, "/") {
				continue
			}
			checked++
			if namespaced != resource.Namespaced {
				t.Errorf("%s: namespaced is taken as %t, and it is %t", kind, namespaced, resource.Namespaced)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d kinds were compared", checked)
	}
}

func TestDefinitionsAddKinds(t *testing.T) {
	definition := func(scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "shop.example.com", Scope: scope, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Cart"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1", Served: true}, {Name: "v1alpha1"}},
		}}
	}
	facts := offline.New(definition(apiextensionsv1.ClusterScoped))
	served := facts.Cluster("v1.33.0", "named.example.com/v1")
	for _, api := range []string{"shop.example.com/v1beta1", "shop.example.com/v1beta1/Cart", "named.example.com/v1", "apps/v1/Deployment"} {
		if !served.Serves(api) {
			t.Errorf("%s is not served", api)
		}
	}
	if served.Serves("shop.example.com/v1alpha1") || served.Version != "v1.33.0" || !slices.IsSorted(served.APIs) {
		t.Errorf("a version that is not served is, or %q is another version, or the APIs are not sorted", served.Version)
	}
	cart := schema.GroupVersionKind{Group: "shop.example.com", Version: "v1beta1", Kind: "Cart"}
	if namespaced, known, _ := facts.Scope(cart); namespaced || !known {
		t.Error("the scope of a definition was not taken")
	}
	if namespaced, known, _ := offline.New(definition(apiextensionsv1.NamespaceScoped)).Scope(cart); !namespaced || !known {
		t.Error("the scope of a definition was not taken")
	}
	if _, known, _ := offline.New().Scope(cart); known {
		t.Error("a definition is known to others")
	}
}
