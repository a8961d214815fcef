// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/unpack"
)

// realChart packs a chart of the shared data as `helm package` does: all below
// one folder that is called like the chart. It skips the test where there is none.
func realChart(t testing.TB, dir, name string) (packed []byte, files map[string]string) {
	t.Helper()
	root := os.Getenv("RUKPAK_SHARED_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	from := os.DirFS(filepath.Join(root, "helm", filepath.FromSlash(dir)))
	if _, err := fs.Stat(from, "Chart.yaml"); err != nil {
		t.Skipf("SKIPPED: no real charts: %v; set RUKPAK_SHARED_DATA", err)
	}
	files = map[string]string{}
	var pairs []string
	err := fs.WalkDir(from, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, path)
		files[name+"/"+path] = string(data)
		pairs = append(pairs, name+"/"+path, string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pack(t, pairs...), files
}

// pack makes a packed chart of pairs of name and text.
func pack(t testing.TB, pairs ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for i := 0; i < len(pairs); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: pairs[i], Size: int64(len(pairs[i+1])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func simple(t testing.TB, version string) []byte {
	t.Helper()
	return pack(t, "app/Chart.yaml", "name: app\nversion: "+version+"\n")
}

// line is one version of the chart "app" in an index.
func line(version, url string, sum digest.Digest) string {
	text := fmt.Sprintf("  - version: %q\n    urls: [%q]\n", version, url)
	if sum != "" {
		text += "    digest: " + sum.Encoded() + "\n"
	}
	return text
}

func indexOf(lines ...string) []byte {
	return []byte("apiVersion: v1\nentries:\n  other: []\n  app:\n" + strings.Join(lines, ""))
}

func newStore(t testing.TB) *content.Disk {
	t.Helper()
	store, err := content.OpenDisk(t.Context(), t.TempDir(), content.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // a test may have closed it
	return store
}

func begin(t testing.TB, store *content.Disk) source.Destination {
	t.Helper()
	session, err := store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return source.Destination{Session: session, Budget: unpack.NewBudget(unpack.Limits{})}
}

// get resolves and fetches as the controller does.
func get(t testing.TB, opened source.Source, store *content.Disk) (source.Pinned, map[string]string, error) {
	t.Helper()
	to := begin(t, store)
	pinned, err := opened.Resolve(t.Context(), to)
	if err != nil {
		return pinned, nil, err
	}
	layers, _, err := opened.Fetch(t.Context(), pinned, to)
	if err != nil {
		return pinned, nil, err
	}
	return pinned, filesOf(t, store, to, layers), nil
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
		data, err := fs.ReadFile(view, path)
		found[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
