// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
)

// image makes an ext4 image of so many MiB with the sample in it.
func image(t *testing.T, size string) *os.File {
	t.Helper()
	tool, err := exec.LookPath("mke2fs")
	if err != nil {
		t.Skip("SKIPPED: there is no mke2fs; it is in e2fsprogs")
	}
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "disk.img")
	for name, text := range map[string]string{"etc/os-release": "NAME=sample\n", "four": strings.Repeat("4", 4096)} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), tool, "-q", "-t", "ext4", "-d", dir, path, size).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	made, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	return made
}

func TestFilesInsideAnImageAreReadInPlace(t *testing.T) {
	h := start(t)
	namespace := h.env.NewNamespace(t)
	made := image(t, "256M")
	info, err := made.Stat()
	if err != nil {
		t.Fatal(err)
	}
	session, err := h.store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	sum, err := session.AddFile(made, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	layer := content.Layer{
		Key:     content.LayerKey{Digest: digest.FromString(t.Name()), Format: "test"},
		Entries: []content.Entry{{Path: "disk.img", Kind: content.File, Size: info.Size(), Sum: sum}},
	}
	if err := session.PutLayer(layer); err != nil {
		t.Fatal(err)
	}
	tree, err := session.PutTree([]content.Layer{layer})
	if err != nil {
		t.Fatal(err)
	}
	h.bundle(t, namespace, "vm", tree)

	if diff := cmp.Diff([]string{"disk.img"}, names(parse(t, h.ask(t, as{}, bundlePath(namespace, "vm/files"))))); diff != "" {
		t.Errorf("what is inside is not listed with the rest (-want +got):\n%s", diff)
	}
	inside := names(parse(t, h.ask(t, as{}, bundlePath(namespace, "vm/files/disk.img!?recursive=false"))))
	if diff := cmp.Diff([]string{"disk.img!/etc", "disk.img!/four", "disk.img!/lost+found"}, inside); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want(t, h.ask(t, as{}, bundlePath(namespace, "vm/files/disk.img!/etc/os-release")), http.StatusOK, "NAME=sample\n")
	part := h.ask(t, as{headers: map[string]string{"Range": "bytes=5-7"}}, bundlePath(namespace, "vm/files/disk.img!/etc/os-release"))
	want(t, part, http.StatusPartialContent, "sam")
	want(t, h.ask(t, as{}, bundlePath(namespace, "vm/files/disk.img!/nothing")), http.StatusNotFound, "has no file")

	best := time.Hour
	for range 5 {
		begun := time.Now()
		got := h.ask(t, as{}, bundlePath(namespace, "vm/files/disk.img!/four"))
		best = min(best, time.Since(begun))
		if got.status != http.StatusOK || len(got.body) != 4096 {
			t.Fatalf("status %d, %d bytes", got.status, len(got.body))
		}
	}
	t.Logf("4 KiB out of an image of 256 MiB took %s", best)
	if best > 500*time.Millisecond { // the figure is 50 ms, on a machine that does nothing else
		t.Errorf("it took %s", best)
	}
}
