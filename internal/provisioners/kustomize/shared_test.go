// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"rukpak.io/rukpak/provisioner"
)

// sharedDir holds trees of other projects, as they were published.
const sharedDir = "../../../../shared/data/kustomize"

func sharedTree(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(sharedDir, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	return dir
}

func TestRealTreesRenderAsKustomizeBuilds(t *testing.T) {
	for tree, folders := range map[string]map[string]int{
		"podinfo/6.5.4":          {"kustomize": 3},
		"podinfo/6.7.1":          {"kustomize": 3},
		"metrics-server/0.8.1":   {"manifests/overlays/release": 9, "manifests/overlays/release-ha": 10, "manifests/overlays/release-ha-1.21+": 10, "manifests/overlays/test": 9},
		"source-controller/head": {"config/default": 13, "config/crd": 6},
		"coredns-operator/head":  {"coredns/config/default": 13},
	} {
		for folder, count := range folders {
			t.Run(tree+"/"+folder, func(t *testing.T) {
				dir := sharedTree(t, tree)
				folder := folderIn(t, dir, folder)
				config, err := json.Marshal(Config{Path: folder})
				if err != nil {
					t.Fatal(err)
				}
				result, err := New().Render(t.Context(), provisioner.Request{Content: os.DirFS(dir), Config: config})
				if err != nil {
					t.Fatal(err)
				}
				got := textsOf(t, result)
				if len(got) != count {
					t.Errorf("%d objects, want %d", len(got), count)
				}
				if diff := cmp.Diff(built(t, filepath.Join(dir, folder)), got); diff != "" {
					t.Errorf("(-kustomize +rukpak):\n%s", diff)
				}
			})
		}
	}
}

// folderIn finds a folder whose first parts the copy of a tree may lack.
func folderIn(t *testing.T, dir, folder string) string {
	t.Helper()
	for rest := folder; ; {
		if info, err := os.Stat(filepath.Join(dir, rest)); err == nil && info.IsDir() {
			return rest
		}
		_, after, ok := strings.Cut(rest, "/")
		if !ok {
			return "."
		}
		rest = after
	}
}

func textsOf(t *testing.T, result provisioner.Result) (all []string) {
	t.Helper()
	for _, phase := range result.Phases {
		for _, object := range phase.Objects {
			all = append(all, text(t, object))
		}
	}
	sort.Strings(all)
	return all
}

func text(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	encoded, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// built is what the library makes of a folder on disk, as the command kustomize does.
func built(t *testing.T, dir string) (all []string) {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range resources.Resources() {
		encoded, err := resource.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(encoded); err != nil {
			t.Fatal(err)
		}
		provisioner.Tidy(object)
		all = append(all, text(t, object))
	}
	sort.Strings(all)
	return all
}

func TestRealTreesThatNeedTheNetworkOrAreTooOldAreRefused(t *testing.T) {
	for _, tc := range []struct{ tree, folder, want string }{
		{"flux2/head", "manifests/install", "is fetched from elsewhere, which is not allowed"},
		{"kops-coredns-operator/src", ".", "kustomization.yaml: "},
	} {
		t.Run(tc.tree, func(t *testing.T) {
			dir := sharedTree(t, tc.tree)
			config, err := json.Marshal(Config{Path: folderIn(t, dir, tc.folder)})
			if err != nil {
				t.Fatal(err)
			}
			_, err = New().Render(t.Context(), provisioner.Request{Content: os.DirFS(dir), Config: config})
			if !provisioner.IsInputError(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
