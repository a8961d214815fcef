// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

// realFolder gives the files of a folder of the shared data by name. It skips
// the test where there is none.
func realFolder(t *testing.T, name string) map[string]string {
	t.Helper()
	root := os.Getenv("RUKPAK_SHARED_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	from := os.DirFS(filepath.Join(root, filepath.FromSlash(name)))
	found := map[string]string{}
	err := fs.WalkDir(from, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(from, path)
		found[path] = string(data)
		return err
	})
	if err != nil || len(found) == 0 {
		t.Skipf("SKIPPED: no real inputs: %v; set RUKPAK_SHARED_DATA", err)
	}
	return found
}

func pairsOf(files map[string]string) []string {
	var pairs []string
	for name, text := range files {
		pairs = append(pairs, name, text)
	}
	return pairs
}

// The same real files, packed as the tools of the field pack them.
func TestRealFilesComeFromARegistry(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	for name, folder := range map[string]string{
		"Plain":      "plain/gateway-api-experimental",
		"Large":      "plain/prometheus-operator-bundle",
		"Kustomize":  "kustomize/source-controller",
		"Imgpkg":     "carvel/imgpkg-examples/head/basic-step-2",
		"Kapp":       "carvel/kapp-controller-examples",
		"Operator":   "olm/argocd-operator",
		"Addon":      "addons/coredns",
		"Chart":      "helm/podinfo",
		"Promotion":  "promo/canary",
		"KopsAddons": "kops/addons",
	} {
		t.Run(name, func(t *testing.T) {
			want := realFolder(t, folder)
			packed := tarOf(t, pairsOf(want)...)
			for kind, layer := range map[string]mutate.Addendum{
				"flux":   part(gzipped(t, packed), "application/vnd.cncf.flux.content.v1.tar+gzip"),
				"docker": part(gzipped(t, packed), types.DockerLayer),
				"zstd":   part(zstded(t, packed), types.OCILayerZStd),
				"zip":    part(zipped(t, pairsOf(want)...), "application/zip"),
			} {
				store := newStore(t)
				tree, _, err := fetchAll(t, New(store, Options{}), Source{Ref: push(t, registry, strings.ToLower(name)+":"+kind, imageOf(t, layer)), Insecure: true})
				if err != nil {
					t.Errorf("%s: %v", kind, err)
					continue
				}
				if diff := cmp.Diff(want, files(t, store, tree)); diff != "" {
					t.Errorf("%s: -want +got:\n%.2000s", kind, diff)
				}
			}
		})
	}
}
