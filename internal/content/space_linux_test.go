// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

func TestFullDiskIsSaidAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("needs a small file system of its own, and cannot mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	d := openStore(t, dir)
	tree := put(t, d, "1", "f a small")
	s, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1 << 20, smallFile} {
		var err error
		for i := 0; err == nil && i < 4; i++ {
			_, err = s.AddFile(strings.NewReader(strings.Repeat(string(rune('a'+i)), size)), int64(size))
		}
		full, ok := errors.AsType[*StoreError](err)
		if !ok || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(full.Error(), "free some space") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if left := stored(t, d, workName); len(left) != 0 {
		t.Errorf("half-written files stay: %q", left)
	}
	s.Close()
	collect(t, d, keepOnly(tree))
	if again := put(t, d, "2", "f b "+strings.Repeat("x", 1000)); !d.Has(again.Digest) || !d.Has(tree.Digest) {
		t.Error("the store is of no use after the disk was full")
	}
}
