// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/file"
	"oras.land/oras-go/v2/registry/remote"

	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

// orasPush pushes names of dir as `oras push` does, with its default media types.
func orasPush(t *testing.T, host, dir string, names ...string) string {
	t.Helper()
	store, err := file.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // only temporary files
	var layers []specs.Descriptor
	for _, name := range names {
		descriptor, err := store.Add(t.Context(), name, "", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, descriptor)
	}
	manifest, err := oras.PackManifest(t.Context(), store, oras.PackManifestVersion1_1, "application/vnd.acme.config", oras.PackManifestOptions{Layers: layers})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Tag(t.Context(), manifest, "v1"); err != nil {
		t.Fatal(err)
	}
	repository, err := remote.NewRepository(host + "/oras")
	if err != nil {
		t.Fatal(err)
	}
	repository.PlainHTTP = true
	if _, err := oras.Copy(t.Context(), store, "v1", repository, "v1", oras.DefaultCopyOptions); err != nil {
		t.Fatal(err)
	}
	return host + "/oras:v1"
}

func TestArtifactsOfORASComeOutAsFiles(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	dir := dirOf(t, "app.yaml", "a: 1", "conf/db.yaml", "d: 1", "conf/deep/x.yaml", "x: 1", "conf/link@", "deep/x.yaml")
	for name, tc := range map[string]struct {
		names []string
		want  map[string]string
	}{
		"File":   {[]string{"app.yaml"}, map[string]string{"app.yaml": "a: 1"}},
		"Folder": {[]string{"conf"}, map[string]string{"conf/db.yaml": "d: 1", "conf/deep/x.yaml": "x: 1", "conf/link": "-> deep/x.yaml"}},
		"Both":   {[]string{"app.yaml", "conf"}, map[string]string{"app.yaml": "a: 1", "conf/db.yaml": "d: 1", "conf/deep/x.yaml": "x: 1", "conf/link": "-> deep/x.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			ref := orasPush(t, registry.Host(), dir, tc.names...)
			tree, _, err := fetchAll(t, New(store, Options{}), Source{Ref: ref, Insecure: true})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, files(t, store, tree)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}
