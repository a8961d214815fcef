// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

// TestAManifestOfAnotherRepositoryOpensNoLayer lets a tenant with a registry of his own name, in a manifest that he
// wrote, a layer that another tenant was given from a repository that is closed to him.
func TestAManifestOfAnotherRepositoryOpensNoLayer(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	image := imageOf(t, part(tarOf(t, "password", "hunter2"), types.OCIUncompressedLayer))
	store := newStore(t)
	fetcher := New(store, Options{})
	src := Source{Ref: push(t, registry, "team-a/private:1", image), Insecure: true}
	if _, _, err := fetchAll(t, fetcher, src); err != nil {
		t.Fatal(err)
	}
	manifest := editManifest(t, image, func(map[string]any) {})
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v2/":
		case strings.Contains(r.URL.Path, "/manifests/"):
			w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
			w.Header().Set("Docker-Content-Digest", digest.FromBytes(manifest).String())
			_, _ = w.Write(manifest) // who does not want it has gone
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(stranger.Close)
	theirs := Source{Ref: strings.TrimPrefix(stranger.URL, "http://") + "/mine:1", Insecure: true}
	if tree, _, err := fetchAll(t, fetcher, theirs); source.ReasonOf(err) != source.ReasonNotFound {
		t.Errorf("it gives %v, %v", tree.Digest, err)
		if err == nil {
			t.Errorf("files %v", files(t, store, tree))
		}
	}
}

// TestALayerIsSharedInsideOfItsRepository is what the scope must not cost.
func TestALayerIsSharedInsideOfItsRepository(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	base := part(tarOf(t, "base", "b"), types.OCIUncompressedLayer)
	fetcher := New(newStore(t), Options{})
	for tag, own := range map[string]string{"1": "one", "2": "two"} {
		image := imageOf(t, base, part(tarOf(t, "own", own), types.OCIUncompressedLayer))
		if _, _, err := fetchAll(t, fetcher, Source{Ref: push(t, registry, "app:"+tag, image), Insecure: true}); err != nil {
			t.Fatal(err)
		}
	}
	gets := blobGets(registry)
	for blob := range maps.Keys(gets) {
		if gets[blob] != 1 {
			t.Errorf("%s was fetched %d times", blob, gets[blob])
		}
	}
	if len(gets) != 3 {
		t.Errorf("%d blobs were fetched, want 3", len(gets))
	}
}
