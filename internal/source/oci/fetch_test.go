// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
	"rukpak.io/rukpak/internal/unpack"
)

// tarOf packs files: pairs of name and text; a name that ends in "@" is a link

// and its text the target.

// part is one layer of an image that a test makes.

// push writes an image or index and gives its reference.

// fetchAll resolves and fetches.

// files reads a whole tree: names and texts, links as "-> target".

func TestContentOfAllFormsComesOutAsFiles(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	archive := tarOf(t, "manifests/a.yaml", "a: 1", "l@", "manifests/a.yaml")
	want := map[string]string{"manifests/a.yaml": "a: 1", "l": "-> manifests/a.yaml"}
	for name, tc := range map[string]struct {
		image v1.Image
		want  map[string]string
	}{
		"tar":    {imageOf(t, part(archive, types.OCIUncompressedLayer)), want},
		"gzip":   {imageOf(t, part(gzipped(t, archive), types.OCILayer)), want},
		"zstd":   {imageOf(t, part(zstded(t, archive), types.OCILayerZStd)), want},
		"docker": {mutate.MediaType(imageOf(t, part(gzipped(t, archive), types.DockerLayer)), types.DockerManifestSchema2), want},
		"flux":   {imageOf(t, part(gzipped(t, archive), "application/vnd.cncf.flux.content.v1.tar+gzip")), want},
		"layers": {imageOf(t,
			part(tarOf(t, "a", "old", "b/c", "x", "b/d", "x", "e", "x"), types.OCIUncompressedLayer),
			part(gzipped(t, tarOf(t, "a", "new", ".wh.e", "", "b/.wh..wh..opq", "", "b/f", "y")), types.OCILayer)),
			map[string]string{"a": "new", "b/f": "y"}},
		"titles": {imageOf(t,
			part([]byte("a: 1"), types.OCIUncompressedLayer, unpack.AnnotationTitle, "a.yaml"),
			part([]byte("b: 1"), "application/yaml", unpack.AnnotationTitle, "sub/b.yaml")),
			map[string]string{"a.yaml": "a: 1", "sub/b.yaml": "b: 1"}},
		"helm with provenance": {imageOf(t,
			part(gzipped(t, tarOf(t, "app/Chart.yaml", "name: app")), "application/vnd.cncf.helm.chart.content.v1.tar+gzip"),
			part([]byte("signed"), "application/vnd.cncf.helm.chart.provenance.v1.prov")),
			map[string]string{"app/Chart.yaml": "name: app"}},
		"zip":   {imageOf(t, part(zipped(t, "manifests/a.yaml", "a: 1"), "application/zip")), map[string]string{"manifests/a.yaml": "a: 1"}},
		"cnab":  {imageOf(t, part([]byte("{}"), "application/vnd.cnab.bundle.config.v1+json")), map[string]string{"bundle.json": "{}"}},
		"wasm":  {imageOf(t, part([]byte("\x00asm"), "application/wasm")), map[string]string{"sha256-" + sum("\x00asm") + ".wasm": "\x00asm"}},
		"image": {imageOf(t, part([]byte("disk"), "application/vnd.acme.disk", unpack.AnnotationTitle, "disk.img")), map[string]string{"disk.img": "disk"}},
		"yaml without a title": {imageOf(t, part([]byte("a: 1"), "application/yaml")),
			map[string]string{"sha256-" + sum("a: 1") + ".yaml": "a: 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			ref := push(t, registry, "app:"+strings.ReplaceAll(name, " ", "-"), tc.image)
			tree, stats, err := fetchAll(t, New(store, Options{}), Source{Ref: ref, Insecure: true})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, files(t, store, tree)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if stats.Layers == 0 || stats.Fetched != stats.Layers || stats.Bytes == 0 {
				t.Errorf("stats %+v", stats)
			}
		})
	}
}

// blobGets gives how often each blob was fetched.

func TestOnlyWhatTheStoreLacksIsFetched(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	store := newStore(t)
	fetcher := New(store, Options{})
	base := part(gzipped(t, tarOf(t, "base", "x")), types.OCILayer)
	one := push(t, registry, "app:1", imageOf(t, base, part(gzipped(t, tarOf(t, "a", "1")), types.OCILayer)))
	two := push(t, registry, "app:2", imageOf(t, base, part(gzipped(t, tarOf(t, "a", "2")), types.OCILayer)))

	first, stats, err := fetchAll(t, fetcher, Source{Ref: one, Insecure: true})
	if err != nil || stats.Fetched != 2 {
		t.Fatalf("first: %+v, %v", stats, err)
	}
	registry.ForgetRequests()
	again, stats, err := fetchAll(t, fetcher, Source{Ref: one, Insecure: true})
	if err != nil || again != first || stats.Fetched != 0 || len(blobGets(registry)) != 0 {
		t.Errorf("again: %+v, %+v, %v; blobs %v", again, stats, err, blobGets(registry))
	}
	_, stats, err = fetchAll(t, fetcher, Source{Ref: two, Insecure: true})
	if err != nil || stats.Fetched != 1 || len(blobGets(registry)) != 1 {
		t.Errorf("other image: %+v, %v; blobs %v", stats, err, blobGets(registry))
	}
}

func TestManyFetchesOfOneImageFetchEachLayerOnce(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	store := newStore(t)
	fetcher := New(store, Options{})
	layer := part(gzipped(t, tarOf(t, "b", strings.Repeat("b", 1<<20))), types.OCILayer)
	ref := push(t, registry, "app:1", imageOf(t, part(gzipped(t, tarOf(t, "a", "x")), types.OCILayer), layer, layer))
	registry.ForgetRequests()
	var all sync.WaitGroup
	trees := make([]content.Tree, 8)
	for i := range trees {
		all.Go(func() {
			var err error
			if trees[i], _, err = fetchAll(t, fetcher, Source{Ref: ref, Insecure: true}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(slices.Compact(trees)) != 1 {
		t.Errorf("trees differ: %+v", trees)
	}
	for blob, n := range blobGets(registry) {
		if n != 1 {
			t.Errorf("%s was fetched %d times", blob, n)
		}
	}
}

func TestATagThatMovesDoesNotMoveWhatIsPinned(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	store := newStore(t)
	fetcher := New(store, Options{})
	ref := push(t, registry, "app:1", imageOf(t, part(tarOf(t, "a", "old"), types.OCIUncompressedLayer)))
	src := Source{Ref: ref, Insecure: true}
	pinned, err := fetcher.Resolve(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	push(t, registry, "app:1", imageOf(t, part(tarOf(t, "a", "new"), types.OCIUncompressedLayer)))
	tree, _, err := fetcher.Fetch(t.Context(), src, pinned)
	if err != nil {
		t.Fatal(err)
	}
	if got := files(t, store, tree)["a"]; got != "old" {
		t.Errorf("fetched %q", got)
	}
	byDigest, err := fetcher.Resolve(t.Context(), Source{Ref: pinned.Ref, Insecure: true})
	want := pinned
	want.Version = "" // a digest has no name
	if err != nil || byDigest != want || pinned.Version != "1" {
		t.Errorf("resolving by digest: %+v, %v; by tag: %+v", byDigest, err, pinned)
	}
}

func TestDamagedContentHealsByFetchingAgain(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	dir := t.TempDir()
	store, err := content.OpenDisk(t.Context(), dir, content.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // the test is over
	fetcher := New(store, Options{})
	ref := push(t, registry, "app:1", imageOf(t, part(tarOf(t, "a", "good"), types.OCIUncompressedLayer)))
	src := Source{Ref: ref, Insecure: true}
	tree, _, err := fetchAll(t, fetcher, src)
	if err != nil {
		t.Fatal(err)
	}
	spoil(t, dir, "good", "evil")
	view, err := store.Open(t.Context(), tree.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.ReadFile(view, "a"); err == nil {
		t.Fatal("wrong bytes were given")
	} else if _, ok := errors.AsType[*content.CorruptError](err); !ok {
		t.Fatal(err)
	}
	again, stats, err := fetchAll(t, fetcher, src)
	if err != nil || again != tree || stats.Fetched != 1 {
		t.Fatalf("fetching again: %+v, %+v, %v", again, stats, err)
	}
	if diff := cmp.Diff(map[string]string{"a": "good"}, files(t, store, again)); diff != "" {
		t.Error(diff)
	}
}

func TestPinnedReferencesMustFit(t *testing.T) {
	fetcher := New(newStore(t), Options{})
	d := "sha256:" + sum("x")
	for _, pinned := range []source.Pinned{
		{}, {Ref: "example.com/a:1", Digest: "sha256:x"}, {Ref: "example.com/a@" + d, Digest: "sha256:other"},
	} {
		_, _, err := fetcher.Fetch(t.Context(), Source{Ref: "example.com/a:1"}, pinned)
		if source.ReasonOf(err) != source.ReasonInvalidReference {
			t.Errorf("%+v: %v", pinned, err)
		}
	}
}

// annotate gives an image's manifest as JSON, changed by edit.
