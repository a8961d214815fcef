// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"strings"
	"testing"

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

// zipped packs files: pairs of name and text.
func zipped(t testing.TB, pairs ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		f, err := w.Create(pairs[i])
		if err == nil {
			_, err = io.WriteString(f, pairs[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

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

func fetchAll(t testing.TB, f *Fetcher, src Source) (content.Tree, source.Stats, error) {
	t.Helper()
	pinned, err := f.Resolve(t.Context(), src)
	if err != nil {
		return content.Tree{}, source.Stats{}, err
	}
	return f.Fetch(t.Context(), src, pinned)
}

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

func sum(text string) string {
	hash, _, err := v1.SHA256(strings.NewReader(text))
	if err != nil {
		panic(err)
	}
	return hash.Hex
}

func blobGets(registry *ociregistry.Registry) map[string]int {
	gets := map[string]int{}
	for _, r := range registry.Requests() {
		if r.Method == "GET" && strings.Contains(r.Path, "/blobs/") {
			gets[r.Path[strings.LastIndex(r.Path, "/")+1:]]++
		}
	}
	return gets
}

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
