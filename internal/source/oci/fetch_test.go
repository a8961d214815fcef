// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
	"rukpak.io/rukpak/internal/unpack"
)

func newStore(t testing.TB) *content.Disk {
	t.Helper()
	store, err := content.OpenDisk(t.Context(), t.TempDir(), content.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // a test may have closed it
	return store
}

// tarOf packs files: pairs of name and text; a name that ends in "@" is a link
// and its text the target.
func tarOf(t testing.TB, pairs ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		header := tar.Header{Name: pairs[i], Size: int64(len(pairs[i+1])), Mode: 0o644}
		if link, ok := strings.CutSuffix(pairs[i], "@"); ok {
			header = tar.Header{Name: link, Typeflag: tar.TypeSymlink, Linkname: pairs[i+1]}
		}
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeSymlink {
			continue
		}
		if _, err := io.WriteString(w, pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstded(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() //nolint:errcheck // it writes nowhere
	return w.EncodeAll(data, nil)
}

// part is one layer of an image that a test makes.
func part(data []byte, mediaType types.MediaType, annotations ...string) mutate.Addendum {
	a := mutate.Addendum{Layer: static.NewLayer(data, mediaType), MediaType: mediaType}
	for i := 0; i < len(annotations); i += 2 {
		if a.Annotations == nil {
			a.Annotations = map[string]string{}
		}
		a.Annotations[annotations[i]] = annotations[i+1]
	}
	return a
}

func imageOf(t testing.TB, parts ...mutate.Addendum) v1.Image {
	t.Helper()
	image, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), parts...)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// push writes an image or index and gives its reference.
func push(t testing.TB, registry *ociregistry.Registry, repository string, what any) string {
	t.Helper()
	ref, err := name.ParseReference(registry.Host() + "/" + repository)
	if err != nil {
		t.Fatal(err)
	}
	transport := remote.WithTransport(registry.Transport())
	switch what := what.(type) {
	case v1.Image:
		err = remote.Write(ref, what, transport)
	case v1.ImageIndex:
		err = remote.WriteIndex(ref, what, transport)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ref.Name()
}

// fetchAll resolves and fetches.
func fetchAll(t testing.TB, f *Fetcher, src Source) (content.Tree, Stats, error) {
	t.Helper()
	pinned, err := f.Resolve(t.Context(), src)
	if err != nil {
		return content.Tree{}, Stats{}, err
	}
	return f.Fetch(t.Context(), src, pinned)
}

// files reads a whole tree: names and texts, links as "-> target".
func files(t testing.TB, store *content.Disk, tree content.Tree) map[string]string {
	t.Helper()
	view, err := store.Open(t.Context(), tree.Digest)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	err = fs.WalkDir(view, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if e.Type() == fs.ModeSymlink {
			target, err := fs.ReadLink(view, path)
			found[path] = "-> " + target
			return err
		}
		data, err := fs.ReadFile(view, path)
		found[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

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
			map[string]string{"app/Chart.yaml": "name: app", "sha256-" + sum("signed"): "signed"}},
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

func sum(text string) string {
	hash, _, err := v1.SHA256(strings.NewReader(text))
	if err != nil {
		panic(err)
	}
	return hash.Hex
}

// blobGets gives how often each blob was fetched.
func blobGets(registry *ociregistry.Registry) map[string]int {
	gets := map[string]int{}
	for _, r := range registry.Requests() {
		if r.Method == "GET" && strings.Contains(r.Path, "/blobs/") {
			gets[r.Path[strings.LastIndex(r.Path, "/")+1:]]++
		}
	}
	return gets
}

func TestOnlyWhatTheStoreLacksIsFetched(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	store := newStore(t)
	fetcher := New(store, Options{})
	base := part(gzipped(t, tarOf(t, "base", "x")), types.OCILayer)
	one := push(t, registry, "app:1", imageOf(t, base, part(gzipped(t, tarOf(t, "a", "1")), types.OCILayer)))
	two := push(t, registry, "other:2", imageOf(t, base, part(gzipped(t, tarOf(t, "a", "2")), types.OCILayer)))

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
	if err != nil || byDigest != pinned {
		t.Errorf("resolving by digest: %+v, %v", byDigest, err)
	}
}

func TestEmptyContentIsAnError(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	for name, image := range map[string]v1.Image{
		"NoLayers":   imageOf(t),
		"EmptyLayer": imageOf(t, part(tarOf(t), types.OCIUncompressedLayer)),
		"EmptyJSON":  imageOf(t, part([]byte("{}"), unpack.MediaTypeEmpty)),
		"Removed":    imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer), part(tarOf(t, ".wh.a", ""), types.OCIUncompressedLayer)),
	} {
		t.Run(name, func(t *testing.T) {
			ref := push(t, registry, "empty:"+name, image)
			_, _, err := fetchAll(t, New(newStore(t), Options{}), Source{Ref: ref, Insecure: true})
			if source.ReasonOf(err) != source.ReasonEmptyContent || source.KindOf(err) != source.Terminal {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestUnsafeAndTooLargeContentIsTerminal(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	for name, tc := range map[string]struct {
		image  v1.Image
		limits unpack.Limits
		reason string
		want   string
	}{
		"DotDot": {imageOf(t, part(tarOf(t, "../evil", "x"), types.OCIUncompressedLayer)), unpack.Limits{}, source.ReasonUnsafeContent, `entry "../evil"`},
		"ThroughALink": {imageOf(t, part(tarOf(t, "a@", "b"), types.OCIUncompressedLayer), part(tarOf(t, "a/x", "x"), types.OCIUncompressedLayer)),
			unpack.Limits{}, source.ReasonUnsafeContent, `entry "a/x": it would be written through the link "a" -> "b"`},
		"NotGzip":    {imageOf(t, part(tarOf(t, "a", "x"), types.OCILayer)), unpack.Limits{}, source.ReasonUnsafeContent, "invalid header"},
		"Title":      {imageOf(t, part([]byte("x"), types.OCILayer, unpack.AnnotationTitle, "../x")), unpack.Limits{}, source.ReasonUnsafeContent, "title"},
		"Compressed": {imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer)), unpack.Limits{CompressedBytes: 100}, source.ReasonLimitExceeded, "--limit-compressed-bytes"},
		"Layers": {imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer), part(tarOf(t, "b", "x"), types.OCIUncompressedLayer)),
			unpack.Limits{Layers: 1}, source.ReasonLimitExceeded, "--limit-layers"},
		"Files": {imageOf(t, part(tarOf(t, "a", "x", "b", "x"), types.OCIUncompressedLayer)), unpack.Limits{Files: 1}, source.ReasonLimitExceeded, "--limit-files"},
	} {
		t.Run(name, func(t *testing.T) {
			ref := push(t, registry, "bad:"+name, tc.image)
			registry.ForgetRequests()
			_, _, err := fetchAll(t, New(newStore(t), Options{Limits: tc.limits}), Source{Ref: ref, Insecure: true})
			if source.ReasonOf(err) != tc.reason || source.KindOf(err) != source.Terminal || !strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(err.Error(), registry.Host()+"/bad") {
				t.Errorf("got %s: %v", source.ReasonOf(err), err)
			}
			if name == "Compressed" && len(blobGets(registry)) != 0 {
				t.Error("a blob was fetched although the manifest says that it is too large")
			}
		})
	}
}

func TestLimitsCountWhatTheStoreHas(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	store := newStore(t)
	base := part(tarOf(t, "a", "x", "b", "x"), types.OCIUncompressedLayer)
	ref := push(t, registry, "base:1", imageOf(t, base))
	if _, _, err := fetchAll(t, New(store, Options{}), Source{Ref: ref, Insecure: true}); err != nil {
		t.Fatal(err)
	}
	ref = push(t, registry, "more:1", imageOf(t, base, part(tarOf(t, "c", "x", "d", "x"), types.OCIUncompressedLayer)))
	_, _, err := fetchAll(t, New(store, Options{Limits: unpack.Limits{Files: 3}}), Source{Ref: ref, Insecure: true})
	if source.ReasonOf(err) != source.ReasonLimitExceeded {
		t.Errorf("got %v", err)
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
func editManifest(t testing.TB, image v1.Image, edit func(map[string]any)) []byte {
	t.Helper()
	raw, err := image.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	var manifest map[string]any
	if err := json.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	edit(manifest)
	changed, err := json.Marshal(maps.Clone(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return changed
}
