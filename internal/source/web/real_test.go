// SPDX-License-Identifier: Apache-2.0

package web

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/testenv/webserver"
	"rukpak.io/rukpak/internal/unpack"
)

// Real files from a web server: one by one, and as archives.
func TestRealFilesComeFromAWebServer(t *testing.T) {
	root := os.Getenv("RUKPAK_SHARED_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	from := os.DirFS(filepath.Join(root, "addons", "metrics-server"))
	want := map[string]string{}
	var pairs []string
	err := fs.WalkDir(from, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(from, path)
		want[path] = string(data)
		pairs = append(pairs, path, string(data))
		return err
	})
	if err != nil || len(want) == 0 {
		t.Skipf("SKIPPED: no real inputs: %v; set RUKPAK_SHARED_DATA", err)
	}
	server := webserver.New(t, webserver.Options{})
	packed := tarOf(t, pairs...)
	for name, data := range map[string][]byte{"a.tar": packed, "a.tar.gz": gzipped(t, packed), "a.tar.zst": zstded(t, packed), "a.zip": zipOf(t, pairs...)} {
		got, err := get(t, New(NewClient(Options{})), Source{URL: server.Put("/"+name, data), Insecure: true}, newStore(t), unpack.Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got.files); diff != "" {
			t.Errorf("%s: -want +got:\n%.2000s", name, diff)
		}
	}
	for path, text := range want {
		got, err := get(t, New(NewClient(Options{})), Source{URL: server.Put("/"+path, []byte(text)), Insecure: true}, newStore(t), unpack.Limits{})
		if diff := cmp.Diff(map[string]string{filepath.Base(path): text}, got.files); err != nil || diff != "" {
			t.Errorf("%s: %v\n%.2000s", path, err, diff)
		}
	}
}
