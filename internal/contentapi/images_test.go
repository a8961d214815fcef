// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
)

// diskImage makes an ext4 filesystem with a file and a link.
func diskImage(t *testing.T) string {
	t.Helper()
	tool, err := exec.LookPath("mke2fs")
	if err != nil {
		t.Skip("SKIPPED: mke2fs is not installed; apt-get install e2fsprogs")
	}
	dir, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	err = errors.Join(os.Mkdir(filepath.Join(dir, "etc"), 0o755),
		os.WriteFile(filepath.Join(dir, "etc", "os-release"), []byte("NAME=image\n"), 0o644),
		os.Symlink("etc/os-release", filepath.Join(dir, "release")),
		os.WriteFile(image, nil, 0o600), os.Truncate(image, 2<<20))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-d", dir, image).CombinedOutput(); err != nil {
		t.Fatalf("mke2fs: %v\n%s", err, out)
	}
	data, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWhatIsInsideAnImageIsServedByItsName(t *testing.T) {
	image := diskImage(t)
	h := start(t)
	namespace := h.env.NewNamespace(t)
	h.bundle(t, namespace, "vm", h.put(t, map[string]string{"disk.img": image, "readme": "no image"}))
	path := func(name string) string { return bundlePath(namespace, "vm/files"+name) }

	for _, name := range []string{"/disk.img!/etc/os-release", "/disk.img!/release"} {
		if got := h.ask(t, as{}, path(name)); got.status != http.StatusOK || string(got.body) != "NAME=image\n" {
			t.Errorf("%s: status %d: %.200s", name, got.status, got.body)
		}
	}
	var found []contentv1.File
	for _, file := range parse(t, h.ask(t, as{}, path("/disk.img!"))).Items {
		if file.Path != "disk.img!/lost+found" {
			found = append(found, file)
		}
	}
	want := []contentv1.File{
		{Path: "disk.img!/etc", Type: "Folder"},
		{Path: "disk.img!/etc/os-release", Type: "File", Mode: "0644", Size: 11},
		{Path: "disk.img!/release", Type: "Link", Target: "etc/os-release"},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("the inside of an image (-want +got):\n%s", diff)
	}
	if all := names(parse(t, h.ask(t, as{}, path("")))); len(all) != 2 {
		t.Errorf("a list of all has %q", all)
	}
	for name, want := range map[string]int{"/disk.img!/gone": http.StatusNotFound, "/readme!/a": http.StatusBadRequest, "/gone!/a": http.StatusNotFound} {
		if got := h.ask(t, as{}, path(name)); got.status != want || !strings.Contains(string(got.body), name[1:5]) {
			t.Errorf("%s: status %d, want %d: %.300s", name, got.status, want, got.body)
		}
	}
}
