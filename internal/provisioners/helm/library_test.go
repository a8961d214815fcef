// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	helmaction "helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/provisioner"
)

const (
	sharedDir   = "../../../../shared/data/helm"
	releaseName = "web"
	namespace   = "team-a"
	kubeVersion = "v1.34.2"
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

// templated does what `helm template` does, in the same order.
func templated(dir string, values map[string]any, upgrade bool) (*release.Release, error) {
	loaded, err := loader.Load(dir)
	if err != nil {
		return nil, err
	}
	accessor, err := chart.NewAccessor(loaded)
	if err != nil {
		return nil, err
	}
	if declared := accessor.MetaDependencies(); declared != nil {
		if err := helmaction.CheckDependencies(loaded, declared); err != nil {
			return nil, err
		}
	}
	version, err := common.ParseKubeVersion(kubeVersion)
	if err != nil {
		return nil, err
	}
	install := helmaction.NewInstall(&helmaction.Configuration{})
	install.DryRunStrategy = helmaction.DryRunClient
	install.ReleaseName, install.Namespace, install.IncludeCRDs, install.KubeVersion, install.IsUpgrade = releaseName, namespace, true, version, upgrade
	made, err := install.Run(loaded, values)
	if err != nil {
		return nil, err
	}
	return made.(*release.Release), nil
}

// objectsOf are those of a release, hooks included, each as the text of its JSON, sorted.
func objectsOf(tb testing.TB, made *release.Release) (all []string) {
	tb.Helper()
	texts := []string{made.Manifest}
	for _, hook := range made.Hooks {
		texts = append(texts, hook.Manifest)
	}
	for _, text := range texts {
		for _, document := range releaseutil.SplitManifests(text) {
			all = append(all, textsOfDocument(tb, document)...)
		}
	}
	sort.Strings(all)
	return all
}

func textsOfDocument(tb testing.TB, document string) (all []string) {
	tb.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		tb.Fatal(err)
	}
	var fields map[string]any
	if err := kjson.Unmarshal(encoded, &fields); err != nil {
		tb.Fatal(err)
	}
	if len(fields) == 0 {
		return nil
	}
	objects := []map[string]any{fields}
	if items, isList := fields["items"].([]any); isList && fields["kind"] == "List" {
		objects = nil
		for _, item := range items {
			objects = append(objects, item.(map[string]any))
		}
	}
	for _, fields := range objects {
		if metadata, _ := fields["metadata"].(map[string]any); metadata["name"] == nil {
			return []string{"no object: " + string(encoded)}
		}
		object := &unstructured.Unstructured{Object: fields}
		provisioner.Tidy(object)
		all = append(all, textOf(tb, object))
	}
	return all
}

// randomName is how podinfo calls the Pods of its tests: another name each time.
var randomName = regexp.MustCompile(`-test-[a-z0-9]{5}"`)

func textOf(tb testing.TB, object *unstructured.Unstructured) string {
	tb.Helper()
	encoded, err := json.Marshal(object.Object)
	if err != nil {
		tb.Fatal(err)
	}
	return randomName.ReplaceAllString(string(encoded), `-test-random"`)
}

// ours are the objects of a result, each once, without what RukPak adds for its activation.
func ours(tb testing.TB, result provisioner.Result) (all []string) {
	tb.Helper()
	seen := map[string]bool{}
	for _, phase := range result.Phases {
		for _, object := range phase.Objects {
			object = object.DeepCopy()
			annotations := object.GetAnnotations()
			delete(annotations, provisioner.AnnotationPrune)
			delete(annotations, provisioner.AnnotationDeleteTask)
			if object.SetAnnotations(annotations); len(annotations) == 0 {
				unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
			}
			if text := textOf(tb, object); !seen[text] || len(phase.On) == 0 {
				seen[text] = true
				all = append(all, text)
			}
		}
	}
	sort.Strings(all)
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

// differences compares what is rendered, whose order differs.
func differences(want, got []string) string {
	var text strings.Builder
	count := map[string]int{}
	for _, one := range want {
		count[one]++
	}
	for _, one := range got {
		count[one]--
	}
	for _, one := range append(append([]string{}, want...), got...) {
		switch {
		case count[one] > 0:
			fmt.Fprintf(&text, "helm only: %s\n", one)
		case count[one] < 0:
			fmt.Fprintf(&text, "rukpak only: %s\n", one)
		}
		count[one] = 0
	}
	return text.String()
}
