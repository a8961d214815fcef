// SPDX-License-Identifier: Apache-2.0

package crdsafety_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/testenv/realinput"
)

var update = flag.Bool("update", false, "write the golden files anew")

const cases = "crd-upgrade/operator-controller-cases/head/"

// realDefinitions are the definitions in a file of YAML or JSON, by name.
func realDefinitions(t testing.TB, name string) map[string]*definition {
	t.Helper()
	content, err := os.ReadFile(realinput.Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*definition{}
	for _, document := range strings.Split(string(content), "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		crd, err := crdsafety.Definition(&object)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[crd.Name] = crd
	}
	return all
}

func realDefinition(t testing.TB, name string) *definition {
	t.Helper()
	for _, crd := range realDefinitions(t, name) {
		return crd
	}
	t.Fatalf("%s: no definition in it", name)
	return nil
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), to be written with -update:\n%s", path, diff)
	}
}

func TestCasesOfOperatorController(t *testing.T) {
	for _, pair := range [][2]string{
		{"old-crd", "crd-valid-upgrade"}, {"old-crd", "crd-invalid-upgrade"}, {"old-crd", "crd-field-removed"},
		{"old-crd", "crd-description-changed"}, {"crd-conversion-webhook-old", "crd-conversion-webhook"},
		{"crd-conversion-webhook-old", "crd-conversion-no-webhook"}, {"crd-conversion-no-webhook", "crd-conversion-no-webhook"},
		{"crd-conversion-no-webhook", "crd-conversion-no-webhook-extra-issue"}, {"crd-unhandled-old", "crd-unhandled-new"},
		{"crd-oneof-removed-old", "crd-oneof-removed-new"}, {"crd-oneof-safe-addition-old", "crd-oneof-safe-addition-new"},
		{"crd-optional-field-old", "crd-optional-field-new"}, {"crd-complex-breaking-changes-old", "crd-complex-breaking-changes-new"},
	} {
		t.Run(pair[1], func(t *testing.T) {
			before, after := realDefinition(t, cases+pair[0]+".json"), realDefinition(t, cases+pair[1]+".json")
			var out strings.Builder
			for _, finding := range crdsafety.Check(before, after, nil) {
				fmt.Fprintln(&out, finding)
			}
			golden(t, strings.TrimPrefix(pair[0], "crd-")+"_"+strings.TrimPrefix(pair[1], "crd-"), out.String())
		})
	}
}

func TestAFileThatIsNoDefinitionIsNamed(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"an old API", `{apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, metadata: {name: a.b.c}}`,
			`CustomResourceDefinition "a.b.c": it is of apiextensions.k8s.io/v1beta1`},
		{"a number that is none", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b.c}, spec: {versions: [{schema: {openAPIV3Schema: {maxLength: x}}}]}}`,
			`CustomResourceDefinition "a.b.c": `},
		{"versions that are none", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b.c}, spec: {versions: true}}`,
			`CustomResourceDefinition "a.b.c": `},
	} {
		t.Run(test.name, func(t *testing.T) {
			var object unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(test.text), &object.Object); err != nil {
				t.Fatal(err)
			}
			if _, err := crdsafety.Definition(&object); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// gatewayAPI are pairs of the same definition in two releases.
func gatewayAPI(t testing.TB) (names []string, old, new map[string]*definition) {
	old, new = map[string]*definition{}, map[string]*definition{}
	for version, all := range map[string]map[string]*definition{"v1.0.0": old, "v1.1.1": new} {
		files, err := filepath.Glob(filepath.Join(realinput.Path(t, "plain/gateway-api-experimental/"+version), "gateway*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			maps.Copy(all, realDefinitions(t, "plain/gateway-api-experimental/"+version+"/"+filepath.Base(file)))
		}
	}
	for name := range old {
		if new[name] != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, old, new
}

// TestGatewayAPI counts what its releases change: the texts are not ours to keep here.
func TestGatewayAPI(t *testing.T) {
	names, old, new := gatewayAPI(t)
	if len(names) < 9 {
		t.Fatalf("only %v are in both releases", names)
	}
	var out strings.Builder
	for _, direction := range []struct {
		name          string
		before, after map[string]*definition
	}{{"v1.0.0 to v1.1.1", old, new}, {"v1.1.1 to v1.0.0", new, old}} {
		for _, name := range names {
			counts := map[string]int{}
			for _, finding := range crdsafety.Check(direction.before[name], direction.after[name], nil) {
				counts[finding.Version+" "+string(finding.Rule)]++
			}
			for _, key := range slices.Sorted(maps.Keys(counts)) {
				fmt.Fprintf(&out, "%s: %s: %s: %d\n", direction.name, name, key, counts[key])
			}
		}
	}
	golden(t, "gateway-api", out.String())
}

func TestTheSameDefinitionIsSafe(t *testing.T) {
	names, old, new := gatewayAPI(t)
	all := []*definition{}
	for _, name := range names {
		all = append(all, old[name], new[name])
	}
	for _, crd := range realDefinitions(t, "plain/prometheus-operator-bundle/v0.55.0/bundle.yaml") {
		all = append(all, crd)
	}
	files, err := filepath.Glob(filepath.Join(realinput.Path(t, cases), "*crd*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if crds := realDefinitions(t, cases+filepath.Base(file)); len(crds) > 0 {
			all = append(all, realDefinition(t, cases+filepath.Base(file)))
		}
	}
	for _, crd := range all {
		if got := crdsafety.Check(crd, crd.DeepCopy(), everything); len(got) > 0 {
			t.Errorf("%s: %v", crd.Name, got)
		}
	}
}

func TestCheckIsAlwaysTheSameAndChangesNothing(t *testing.T) {
	names, old, new := gatewayAPI(t)
	for _, name := range names {
		before, after := old[name].DeepCopy(), new[name].DeepCopy()
		first := crdsafety.Check(before, after, everything)
		for range 20 {
			if again := crdsafety.Check(before, after, everything); !slices.Equal(first, again) {
				t.Fatalf("%s: findings differ from run to run:\n%s", name, cmp.Diff(first, again))
			}
		}
		if !reflect.DeepEqual(old[name], before) || !reflect.DeepEqual(new[name], after) {
			t.Errorf("%s: a definition was changed", name)
		}
	}
}
