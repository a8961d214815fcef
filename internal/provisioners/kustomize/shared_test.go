// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/testenv/rendered"
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
	for tree, folders := range rendered.KustomizeFolders {
		for folder, count := range folders {
			t.Run(tree+"/"+folder, func(t *testing.T) {
				dir := sharedTree(t, tree)
				folder := rendered.FolderIn(os.DirFS(dir), folder)
				config, err := json.Marshal(Config{Path: folder})
				if err != nil {
					t.Fatal(err)
				}
				result, err := New().Render(t.Context(), provisioner.Request{Content: os.DirFS(dir), Config: config})
				if err != nil {
					t.Fatal(err)
				}
				got, err := rendered.Ours(result)
				if err != nil {
					t.Fatal(err)
				}
				built, err := rendered.Kustomize(filepath.Join(dir, folder))
				if err != nil {
					t.Fatal(err)
				}
				want, err := rendered.OfKustomize(built)
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != count {
					t.Errorf("%d objects, want %d", len(got), count)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-kustomize +rukpak):\n%s", diff)
				}
			})
		}
	}
}

func TestRealTreesThatNeedTheNetworkOrAreTooOldAreRefused(t *testing.T) {
	for _, tc := range []struct{ tree, folder, want string }{
		{"flux2/head", "manifests/install", "is fetched from elsewhere, which is not allowed"},
		{"kops-coredns-operator/src", ".", "kustomization.yaml: "},
	} {
		t.Run(tc.tree, func(t *testing.T) {
			dir := sharedTree(t, tc.tree)
			config, err := json.Marshal(Config{Path: rendered.FolderIn(os.DirFS(dir), tc.folder)})
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
