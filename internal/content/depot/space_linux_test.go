// SPDX-License-Identifier: Apache-2.0

package depot_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr/testr"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/content/depot"
	"rukpak.io/rukpak/internal/content/objects"
	"rukpak.io/rukpak/internal/testenv/places"
)

func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("needs a small file system of its own, and cannot mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestADiskThatIsFullIsNoDamage(t *testing.T) {
	place := places.Folder(t)
	one := newManager(t, place.Open(t))
	tree, tiny := one.fetch(sample()), one.fetch(layer{"tiny": "x"})
	one.keep(tree)
	one.keep(tiny)
	disk, err := content.OpenDisk(t.Context(), small(t), content.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = disk.Close() })
	two := &manager{T: t, disk: disk, place: one.place, depot: depot.Open(t.Context(), disk, one.place, depot.Options{Cluster: "cluster-a", Log: testr.New(t)})}
	before := len(two.names(""))
	ok, err := two.depot.Restore(t.Context(), tree)
	if full, is := errors.AsType[*content.StoreError](err); ok || !is || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(full.Error(), "free some space") {
		t.Errorf("restored %v, %v", ok, err)
	}
	if after := len(two.names("")); after != before {
		t.Errorf("of %d objects in the depot %d are left", before, after)
	}
	two.restore(tiny, true)
}

func TestADepotThatIsFullIsSaidAndKeepsWhatItHas(t *testing.T) {
	place := places.FolderAt(small(t))
	one := newManager(t, place.Open(t))
	tree, tiny := one.fetch(sample()), one.fetch(layer{"tiny": "x"})
	one.keep(tiny)
	for range 2 {
		if err := one.depot.Keep(t.Context(), tree); !objects.Is(err, objects.Full) || !strings.Contains(err.Error(), "free some space") {
			t.Errorf("got %v", err)
		}
	}
	one.read(tree, sample())
	two := newManager(t, place.Open(t))
	two.restore(tree, false)
	two.restore(tiny, true)
}
