// SPDX-License-Identifier: Apache-2.0

package rendered

import (
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// KustomizeFolders are the folders that are built of real trees, with the number of objects in each.
var KustomizeFolders = map[string]map[string]int{
	"podinfo/6.5.4":          {"kustomize": 3},
	"podinfo/6.7.1":          {"kustomize": 3},
	"metrics-server/0.8.1":   {"manifests/overlays/release": 9, "manifests/overlays/release-ha": 10, "manifests/overlays/release-ha-1.21+": 10, "manifests/overlays/test": 9},
	"source-controller/head": {"config/default": 13, "config/crd": 6},
	"coredns-operator/head":  {"coredns/config/default": 13},
}

// FolderIn finds a folder whose first parts the copy of a tree may lack.
func FolderIn(content fs.FS, folder string) string {
	for rest := folder; ; {
		if info, err := fs.Stat(content, rest); err == nil && info.IsDir() {
			return rest
		}
		_, after, ok := strings.Cut(rest, "/")
		if !ok {
			return "."
		}
		rest = after
	}
}

// Kustomize does what `kustomize build` does of a folder on disk, up to the objects; it would write them as YAML.
func Kustomize(dir string) (resmap.ResMap, error) {
	return krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
}

// OfKustomize are the objects of a build as texts of JSON, sorted.
func OfKustomize(built resmap.ResMap) (all []string, err error) {
	for _, resource := range built.Resources() {
		encoded, err := resource.MarshalJSON()
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(encoded); err != nil {
			return nil, err
		}
		written, err := tidied(object)
		if err != nil {
			return nil, err
		}
		all = append(all, written)
	}
	slices.Sort(all)
	return all, nil
}
