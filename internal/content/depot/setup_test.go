// SPDX-License-Identifier: Apache-2.0

package depot_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/content/depot"
	"rukpak.io/rukpak/internal/content/objects"
	"rukpak.io/rukpak/internal/content/objects/objectstest"
	"rukpak.io/rukpak/internal/testenv/places"
)

// manager is one with a disk of its own.
type manager struct {
	*testing.T
	dir   string
	disk  *content.Disk
	depot *depot.Depot
	place objects.Backend
}

func newManager(t *testing.T, place objects.Backend) *manager {
	t.Helper()
	return managerOf(t, place, depot.Options{Cluster: "cluster-a"})
}

func managerOf(t *testing.T, place objects.Backend, options depot.Options) *manager {
	t.Helper()
	dir := t.TempDir()
	disk, err := content.OpenDisk(t.Context(), dir, content.Options{Grace: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = disk.Close() })
	options.Log = testr.New(t)
	place = objects.Guard(place, objects.Patience{Tries: 2, Pause: time.Millisecond, Rest: time.Nanosecond})
	return &manager{T: t, dir: dir, disk: disk, place: place, depot: depot.Open(t.Context(), disk, place, options)}
}

// layer are files by name.
type layer map[string]string

func keyOf(l layer) content.LayerKey {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(l)) {
		fmt.Fprintf(&text, "%s %s\n", name, digest.FromString(l[name]))
	}
	return content.LayerKey{Digest: digest.FromString(text.String()), Format: "test"}
}

// fetch does what a source does.
func (m *manager) fetch(layers ...layer) digest.Digest {
	m.Helper()
	s, err := m.disk.Begin()
	if err != nil {
		m.Fatal(err)
	}
	defer s.Close()
	var made []content.Layer
	for _, one := range layers {
		got := content.Layer{Key: keyOf(one), Packed: 1}
		for _, name := range slices.Sorted(maps.Keys(one)) {
			sum, err := s.AddFile(strings.NewReader(one[name]), int64(len(one[name])))
			if err != nil {
				m.Fatal(err)
			}
			got.Entries = append(got.Entries, content.Entry{Path: name, Kind: content.File, Sum: sum, Size: int64(len(one[name]))})
		}
		if err := s.PutLayer(got); err != nil {
			m.Fatal(err)
		}
		made = append(made, got)
	}
	a, err := content.Assemble([]content.Part{{Layers: made}})
	if err != nil {
		m.Fatal(err)
	}
	tree, err := s.PutAssembly(a)
	if err != nil {
		m.Fatal(err)
	}
	return tree.Digest
}

func (m *manager) keep(tree digest.Digest) {
	m.Helper()
	if err := m.depot.Keep(m.Context(), tree); err != nil {
		m.Fatal(err)
	}
	if !m.depot.Holds(tree) {
		m.Error("what was kept is not held")
	}
}

func (m *manager) restore(tree digest.Digest, want bool) {
	m.Helper()
	if got, err := m.depot.Restore(m.Context(), tree); err != nil || got != want {
		m.Fatalf("restored %v, %v; want %v", got, err, want)
	}
	if m.disk.Has(tree) != want {
		m.Errorf("the disk has it: %v, want %v", !want, want)
	}
}

func (m *manager) read(tree digest.Digest, want layer) {
	m.Helper()
	opened, err := m.disk.Open(m.Context(), tree)
	if err != nil {
		m.Fatal(err)
	}
	for name, text := range want {
		if got, err := fs.ReadFile(opened, name); err != nil || string(got) != text {
			m.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(text))
		}
	}
}

func (m *manager) collect(keep ...digest.Digest) depot.Collected {
	m.Helper()
	got, err := m.depot.Collect(m.Context(), func(tree digest.Digest) bool { return slices.Contains(keep, tree) })
	if err != nil {
		m.Fatal(err)
	}
	return got
}

func (m *manager) names(kind string) []string {
	m.Helper()
	names := []string{}
	err := m.place.List(m.Context(), func(name string) error {
		if strings.HasPrefix(name, kind) {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		m.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func noise(seed byte, size int) string {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data) // never fails
	return string(data)
}

// sample has small files, an empty one, and a large one that gets a pack of its own.
func sample() layer {
	return layer{"a.yaml": "kind: A", "b/c.yaml": "kind: B", "empty": "", "big": big}
}

var big = noise(1, 5<<20)

// TestDepot runs every story in each kind of place.
func TestDepot(t *testing.T) {
	places.Each(t, func(t *testing.T, fresh func(t *testing.T) objectstest.Place) {
		for name, story := range map[string]func(*testing.T, objectstest.Place){
			"Restart": restart, "ManySmallFiles": manySmallFiles, "Layers": layers, "SharedLayers": sharedLayers, "Damage": damage,
			"Outage": outage, "Kill": kill, "AtOnce": atOnce, "Collection": collection, "CollectionBesideWriters": collectionBesideWriters,
			"Owner": owner, "Emptied": emptied,
		} {
			t.Run(name, func(t *testing.T) { story(t, fresh(t)) })
		}
	})
}

// harmBlob changes a byte of a file on the disk.
func (m *manager) harmBlob(sum content.Sum) {
	m.Helper()
	name := sum.String()
	places.HarmFile(m.T, filepath.Join(m.dir, "blobs", name[:2], name[2:]), objectstest.Flip)
}
