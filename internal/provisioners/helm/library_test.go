// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/internal/testenv/rendered"
	"rukpak.io/rukpak/provisioner"
)

const (
	sharedDir   = "../../../../shared/data/helm"
	releaseName = rendered.ReleaseName
	namespace   = rendered.Namespace
	kubeVersion = rendered.KubeVersion
)

// sharedChart is a chart as its project published it, or as Helm tests with it.
func sharedChart(tb testing.TB, name string) string {
	tb.Helper()
	dir := filepath.Join(sharedDir, name)
	if _, err := os.Stat(dir); err != nil {
		tb.Skipf("SKIPPED: %v", err)
	}
	return dir
}

// templated is what Helm's own library makes of a chart.
func templated(dir string, values map[string]any, upgrade bool) (*release.Release, error) {
	return rendered.Helm(dir, values, upgrade)
}

// objectsOf are those of a release, hooks included, each as the text of its JSON, sorted.
func objectsOf(tb testing.TB, made *release.Release) []string {
	tb.Helper()
	all, err := rendered.OfHelm(made)
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// ours are the objects of a result, each once, without what RukPak adds for its activation.
func ours(tb testing.TB, result provisioner.Result) []string {
	tb.Helper()
	all, err := rendered.Ours(result)
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

func request(tb testing.TB, dir string, values map[string]any) provisioner.Request {
	tb.Helper()
	config, err := json.Marshal(values)
	if err != nil {
		tb.Fatal(err)
	}
	return provisioner.Request{
		Instance: types.NamespacedName{Namespace: namespace, Name: releaseName}, Content: os.DirFS(dir),
		Config: config, Revision: 1, Cluster: provisioner.Cluster{Version: kubeVersion},
	}
}

// valuesOf reads values as people write them.
func valuesOf(tb testing.TB, text string) map[string]any {
	tb.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		tb.Fatal(err)
	}
	return values
}
