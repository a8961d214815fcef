// SPDX-License-Identifier: Apache-2.0

package rendered

import (
	"slices"

	helmaction "helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// What charts are rendered for.
const (
	ReleaseName = "web"
	Namespace   = "team-a"
	KubeVersion = "v1.34.2"
)

// Helm does what `helm template` does, in the same order.
func Helm(dir string, values map[string]any, upgrade bool) (*release.Release, error) {
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
	version, err := common.ParseKubeVersion(KubeVersion)
	if err != nil {
		return nil, err
	}
	install := helmaction.NewInstall(&helmaction.Configuration{})
	install.DryRunStrategy = helmaction.DryRunClient
	install.ReleaseName, install.Namespace, install.IncludeCRDs, install.KubeVersion, install.IsUpgrade = ReleaseName, Namespace, true, version, upgrade
	made, err := install.Run(loaded, values)
	if err != nil {
		return nil, err
	}
	return made.(*release.Release), nil
}

// OfHelm are the objects of a release, hooks included, as texts of JSON, sorted.
func OfHelm(made *release.Release) (all []string, err error) {
	manifests := []string{made.Manifest}
	for _, hook := range made.Hooks {
		manifests = append(manifests, hook.Manifest)
	}
	for _, manifest := range manifests {
		for _, document := range releaseutil.SplitManifests(manifest) {
			objects, err := ofDocument(document)
			if err != nil {
				return nil, err
			}
			all = append(all, objects...)
		}
	}
	slices.Sort(all)
	return all, nil
}

func ofDocument(document string) (all []string, err error) {
	encoded, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := kjson.Unmarshal(encoded, &fields); err != nil || len(fields) == 0 {
		return nil, err
	}
	objects := []any{fields}
	if items, isList := fields["items"].([]any); isList && fields["kind"] == "List" {
		objects = items
	}
	for _, one := range objects {
		fields, _ := one.(map[string]any)
		if metadata, _ := fields["metadata"].(map[string]any); metadata["name"] == nil {
			return []string{"no object: " + string(encoded)}, nil
		}
		written, err := tidied(&unstructured.Unstructured{Object: fields})
		if err != nil {
			return nil, err
		}
		all = append(all, written)
	}
	return all, nil
}
