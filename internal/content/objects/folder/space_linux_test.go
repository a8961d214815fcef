// SPDX-License-Identifier: Apache-2.0

package folder_test

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"rukpak.io/rukpak/internal/content/objects"
	"rukpak.io/rukpak/internal/content/objects/folder"
)

func TestFullFolderIsSaidAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("needs a small file system of its own, and cannot mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	b := folder.New(dir)
	for range 3 { // a half-written file that stayed would fill it for good
		err := b.Put(t.Context(), "packs/a", objects.Bytes(make([]byte, 1<<20)))
		if !objects.Is(err, objects.Full) || !strings.Contains(err.Error(), "free some space") {
			t.Errorf("got %v", err)
		}
		if _, err := b.Stat(t.Context(), "packs/a"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it leaves %v", err)
		}
	}
	if err := b.Put(t.Context(), "packs/b", objects.Bytes(make([]byte, 300<<10))); err != nil {
		t.Errorf("after the large one: %v", err)
	}
}
