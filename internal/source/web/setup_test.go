// SPDX-License-Identifier: Apache-2.0

package web

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
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

// begin gives a place for the content of one bundle.
func begin(t testing.TB, store *content.Disk, limits unpack.Limits) source.Destination {
	t.Helper()
	session, err := store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return source.Destination{Session: session, Budget: unpack.NewBudget(limits)}
}

// got is what a whole fetch gave.
type got struct {
	pinned source.Pinned
	stats  source.Stats
	files  map[string]string
}

// get resolves and fetches as the controller does.
func get(t testing.TB, f *Fetcher, src Source, store *content.Disk, limits unpack.Limits) (got, error) {
	t.Helper()
	to := begin(t, store, limits)
	opened := f.At(src)
	pinned, err := opened.Resolve(t.Context(), to)
	if err != nil {
		return got{}, err
	}
	layers, stats, err := opened.Fetch(t.Context(), pinned, to)
	if err != nil {
		return got{pinned: pinned, stats: stats}, err
	}
	return got{pinned, stats, filesOf(t, store, to, layers)}, nil
}

func filesOf(t testing.TB, store *content.Disk, to source.Destination, layers []content.Layer) map[string]string {
	t.Helper()
	tree, err := to.Session.PutTree(layers)
	if err != nil {
		t.Fatal(err)
	}
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

// tarOf makes an archive of pairs of name and text; a name that ends in "@" is
// a symbolic link, one that ends in "&" a hard link.
func tarOf(t testing.TB, pairs ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		header := tar.Header{Name: pairs[i], Size: int64(len(pairs[i+1])), Mode: 0o644}
		if link, ok := strings.CutSuffix(pairs[i], "@"); ok {
			header = tar.Header{Name: link, Typeflag: tar.TypeSymlink, Linkname: pairs[i+1]}
		}
		if link, ok := strings.CutSuffix(pairs[i], "&"); ok {
			header = tar.Header{Name: link, Typeflag: tar.TypeLink, Linkname: pairs[i+1]}
		}
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg && header.Typeflag != 0 {
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

func digestOf(data []byte) digest.Digest { return digest.FromBytes(data) }
