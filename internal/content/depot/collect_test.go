// SPDX-License-Identifier: Apache-2.0

package depot_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/content/depot"
	"rukpak.io/rukpak/internal/content/objects"
	"rukpak.io/rukpak/internal/content/objects/objectstest"
	"rukpak.io/rukpak/internal/testenv/places"
)

func collection(t *testing.T, place objectstest.Place) {
	one := newManager(t, place.Open(t))
	shared, own := layer{"shared": noise(4, 70_000)}, layer{"own": "x"}
	kept, gone := one.fetch(shared), one.fetch(shared, own)
	one.keep(kept)
	one.keep(gone)
	if got := one.collect(); got != (depot.Collected{}) {
		t.Errorf("what was just put is collected: %+v", got)
	}
	two := managerOf(t, place.Open(t), depot.Options{Cluster: "cluster-a", Grace: -1})
	if got := two.collect(kept); got.Trees != 1 || got.Layers != 1 || got.Packs != 1 || got.Bytes == 0 {
		t.Errorf("collected %+v; want a tree, a layer and a pack", got)
	}
	if got := two.collect(kept); got != (depot.Collected{}) {
		t.Errorf("collected again: %+v", got)
	}
	two.restore(gone, false)
	two.restore(kept, true)
	one.collect(kept)
	if one.depot.Holds(gone) || !one.depot.Holds(kept) {
		t.Error("another manager's collection is not noticed")
	}
	one.keep(gone)
	two.restore(gone, true)
}

// collectionBesideWriters shows that what is put while another collects stays whole.
func collectionBesideWriters(t *testing.T, place objectstest.Place) {
	m := managerOf(t, place.Open(t), depot.Options{Cluster: "cluster-a", Grace: -1})
	base := layer{"base": noise(5, 70_000)}
	m.keep(m.fetch(base)) // nobody needs it for itself, others have its pack
	done := make(chan error)
	go func() {
		for {
			select {
			case done <- nil:
				return
			default:
				if _, err := m.depot.Collect(t.Context(), func(digest.Digest) bool { return false }); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	for i := range 8 {
		tree := m.fetch(base, layer{fmt.Sprint(i): "x"})
		if err := m.depot.Keep(t.Context(), tree); err != nil {
			t.Error(err)
			break
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	tree := m.fetch(base, layer{"last": "x"})
	m.keep(tree)
	m.collect(tree)
	two := newManager(t, place.Open(t))
	two.restore(tree, true)
	for _, name := range two.names("trees/") {
		two.restore(digest.NewDigestFromEncoded(digest.SHA256, strings.TrimPrefix(name, "trees/")), true)
	}
}

// owner shows that a second cluster can neither read nor collect what is not its own.
func owner(t *testing.T, place objectstest.Place) {
	one := newManager(t, place.Open(t))
	tree := one.fetch(sample())
	one.keep(tree)
	other := managerOf(t, place.Open(t), depot.Options{Cluster: "cluster-b", Grace: -1})
	mine := other.fetch(layer{"x": "x"})
	_, restoreErr := other.depot.Restore(t.Context(), tree)
	_, collectErr := other.depot.Collect(t.Context(), func(digest.Digest) bool { return false })
	for _, err := range []error{restoreErr, collectErr, other.depot.Keep(t.Context(), mine)} {
		if !objects.Is(err, objects.Foreign) || !strings.Contains(err.Error(), "cluster-a") || !strings.Contains(err.Error(), "give each cluster a place of its own") {
			t.Errorf("got %v", err)
		}
	}
	if _, ok := other.layerOf("", sample()); ok {
		t.Error("it finds a layer of the other cluster")
	}
	// It takes the place away while the first one runs.
	if err := other.place.Put(t.Context(), "owner/cluster", objects.Bytes([]byte("rukpak shared store 1\ncluster-b\n"))); err != nil {
		t.Fatal(err)
	}
	if _, err := one.depot.Collect(t.Context(), func(digest.Digest) bool { return false }); !objects.Is(err, objects.Foreign) {
		t.Errorf("the first cluster collects what became another's: %v", err)
	}
	if err := other.place.Put(t.Context(), "owner/cluster", objects.Bytes([]byte("something else"))); err != nil {
		t.Fatal(err)
	}
	if _, err := newManager(t, place.Open(t)).depot.Restore(t.Context(), tree); !objects.Is(err, objects.Foreign) {
		t.Errorf("a place of another program: %v", err)
	}
}

// emptied shows that a place which lost all of it is filled again from the disk.
func emptied(t *testing.T, place objectstest.Place) {
	one := newManager(t, place.Open(t))
	tree := one.fetch(sample())
	one.keep(tree)
	for _, name := range one.names("") {
		if err := one.place.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	one.collect(tree)
	if one.depot.Holds(tree) {
		t.Error("it is not noticed that all is gone")
	}
	one.keep(tree)
	two := newManager(t, place.Open(t))
	two.restore(tree, true)
	two.read(tree, sample())
}

func TestDamageOnTheDiskIsNotShared(t *testing.T) {
	place := places.Folder(t)
	one := newManager(t, place.Open(t))
	tree := one.fetch(sample())
	opened, err := one.disk.Open(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	info, err := fs.Stat(opened, "big")
	if err != nil {
		t.Fatal(err)
	}
	one.harmBlob(info.Sys().(*content.Entry).Sum)
	err = one.depot.Keep(t.Context(), tree)
	if _, ok := errors.AsType[*content.CorruptError](err); !ok {
		t.Errorf("got %v", err)
	}
	if one.disk.Has(tree) {
		t.Error("the disk still has it")
	}
	if got := one.names("trees/"); len(got) > 0 {
		t.Errorf("the depot has %q", got)
	}
	if err := one.depot.Keep(t.Context(), tree); !content.Gone(err) {
		t.Errorf("what is not there is kept: %v", err)
	}
	one.fetch(sample())
	one.keep(tree)
}

func TestLayersAreKnownAfterARestart(t *testing.T) {
	place := places.Folder(t)
	dir := t.TempDir()
	for i := range 2 {
		disk, err := content.OpenDisk(t.Context(), dir, content.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := newManager(t, place.Open(t))
		m.disk = disk
		if i == 0 {
			m.fetch(sample())
		}
		d := depot.Open(t.Context(), disk, m.place, depot.Options{Cluster: "cluster-a"})
		if i == 1 {
			tree := m.fetchKnown(sample())
			if err := d.Keep(t.Context(), tree); err != nil {
				t.Fatal(err)
			}
			if got := m.names("layers/"); len(got) != 1 {
				t.Errorf("the layers are not known any more: %q", got)
			}
		}
		if err := disk.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// fetchKnown gives the digest of a tree without making it.
func (m *manager) fetchKnown(of layer) digest.Digest {
	return newManager(m.T, m.place).fetch(of)
}
