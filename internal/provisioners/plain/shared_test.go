// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"rukpak.io/rukpak/internal/testenv/realinput"
)

// count renders a tree and counts the objects of each phase.
func count(t testing.TB, content fs.FS) (phases map[string]int, notes string) {
	t.Helper()
	result, err := New().Render(t.Context(), request(content))
	if err != nil {
		t.Fatal(err)
	}
	phases = map[string]int{}
	for _, phase := range result.Phases {
		phases[phase.Name] = len(phase.Objects)
	}
	return phases, result.Notes
}

func TestRealInput(t *testing.T) {
	for name, test := range map[string]struct {
		want  map[string]int
		notes string
	}{
		"plain/prometheus-operator-bundle/v0.55.0": {
			map[string]int{"identity": 1, "crds": 8, "roles": 1, "bindings": 1, "services": 1, "workloads": 1}, "",
		},
		"plain/gateway-api-experimental/v1.0.0":      {map[string]int{"crds": 9}, "Not applied, since a Kustomization is no object: kustomization.yaml."},
		"plain/gateway-api-experimental/v1.1.1":      {map[string]int{"crds": 10}, "Not applied, since a Kustomization is no object: kustomization.yaml."},
		"kops/addons/limit-range.addons.k8s.io":      {map[string]int{"policies": 1}, ""},
		"kops/addons/kubelet-api.rbac.addons.k8s.io": {map[string]int{"bindings": 1}, ""},
		"kops/addons/authentication.kope.io":         {map[string]int{"namespaces": 1, "identity": 1, "roles": 1, "bindings": 3, "services": 1, "workloads": 1, "admission": 2}, ""},
		"kops/addons/networking.kope.io":             {map[string]int{"identity": 1, "roles": 1, "bindings": 1, "workloads": 1}, ""},
		"kops/addons/metadata-proxy.addons.k8s.io":   {map[string]int{"identity": 1, "workloads": 1}, "A key is set twice, to the same value: head/v0.1.12.yaml:46."},
	} {
		t.Run(name, func(t *testing.T) {
			phases, notes := count(t, os.DirFS(realinput.Path(t, name)))
			if diff := cmp.Diff(test.want, phases); diff != "" {
				t.Errorf("objects by phase (-want +got):\n%s", diff)
			}
			if notes != test.notes {
				t.Errorf("notes are %q, want %q", notes, test.notes)
			}
		})
	}
}

func TestBuiltKustomizations(t *testing.T) {
	for _, version := range []string{"6.5.4", "6.7.1"} {
		t.Run(version, func(t *testing.T) {
			folder := realinput.Path(t, "kustomize/podinfo/"+version)
			built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
			if err != nil {
				t.Fatal(err)
			}
			text, err := built.AsYaml()
			if err != nil {
				t.Fatal(err)
			}
			phases, _ := count(t, fstest.MapFS{"podinfo.yaml": {Data: text}})
			if diff := cmp.Diff(map[string]int{"services": 1, "workloads": 1, "scaling": 1}, phases); diff != "" {
				t.Errorf("objects by phase (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBigBundleIsRenderedFast holds the largest real input to a bound that a loaded machine keeps.
func TestBigBundleIsRenderedFast(t *testing.T) {
	content := os.DirFS(realinput.Path(t, "plain/prometheus-operator-bundle/v0.55.0"))
	started := time.Now()
	count(t, content)
	took := time.Since(started)
	t.Logf("1.6 MB in %s", took)
	if took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}

func BenchmarkRender(b *testing.B) {
	content := os.DirFS(realinput.Path(b, "plain/prometheus-operator-bundle/v0.55.0"))
	b.SetBytes(1612755)
	for b.Loop() {
		count(b, content)
	}
}
