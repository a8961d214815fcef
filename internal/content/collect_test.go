// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
)

func keepOnly(trees ...Tree) func(digest.Digest) bool {
	return func(d digest.Digest) bool {
		for _, tree := range trees {
			if tree.Digest == d {
				return true
			}
		}
		return false
	}
}

func collect(t testing.TB, d *Disk, keep func(digest.Digest) bool) Collected {
	t.Helper()
	got, err := d.Collect(t.Context(), keep)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestCollectRemovesWhatIsNotReached(t *testing.T) {
	d := openStore(t, t.TempDir())
	kept := put(t, d, "1", "f shared both", "f a only-1")
	gone := put(t, d, "2", "f shared both", "f b only-2", "f c only-2-too")
	got := collect(t, d, keepOnly(kept))
	want := Collected{Trees: 1, Layers: 1, Files: 2, Bytes: int64(len("only-2") + len("only-2-too"))}
	if got != want {
		t.Errorf("collected %+v, want %+v", got, want)
	}
	if !d.Has(kept.Digest) || d.Has(gone.Digest) {
		t.Errorf("Has(kept) = %v, Has(gone) = %v", d.Has(kept.Digest), d.Has(gone.Digest))
	}
	if data, err := fs.ReadFile(open(t, d, kept), "shared"); err != nil || string(data) != "both" {
		t.Errorf("shared: %q, %v", data, err)
	}
	if got := collect(t, d, keepOnly()); got.Trees != 1 || got.Files != 2 {
		t.Errorf("collecting the rest: %+v", got)
	}
	for _, name := range []string{blobsName, layersName, recipesName, treesName, workName} {
		if left := stored(t, d, name); len(left) != 0 {
			t.Errorf("left in %s: %q", name, left)
		}
	}
}

func TestCollectKeepsHiddenFilesOfAKeptTreesLayers(t *testing.T) {
	d := openStore(t, t.TempDir())
	s, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := s.PutTree([]Layer{fill(t, s, "1", "f a old"), fill(t, s, "2", "f a new")})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if got := collect(t, d, keepOnly(tree)); got != (Collected{}) {
		t.Errorf("collected %+v, want nothing", got)
	}
	s, err = d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, ok := s.Layer(layerOf("1").Key); !ok {
		t.Error("the lower layer would have to be fetched again")
	}
}

func TestCollectSparesWhatOpenSessionsUse(t *testing.T) {
	d := openStore(t, t.TempDir())
	known := put(t, d, "known", "f a known")
	old := put(t, d, "old", "f a old")
	s, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddFile(strings.NewReader("loose"), 5); err != nil {
		t.Fatal(err)
	}
	layer := fill(t, s, "new", "f b new")
	if _, ok := s.Layer(layerOf("old").Key); !ok {
		t.Fatal("no old layer")
	}
	if _, ok := s.Tree([]LayerKey{layerOf("known").Key}); !ok {
		t.Fatal("no known tree")
	}
	collect(t, d, keepOnly())
	if !d.Has(known.Digest) {
		t.Error("a tree in use was removed")
	}
	if d.Has(old.Digest) {
		t.Error("a tree that nobody uses stays")
	}
	oldLayer, ok := s.Layer(layerOf("old").Key)
	if !ok {
		t.Fatal("a layer in use was removed")
	}
	tree, err := s.PutTree([]Layer{oldLayer, layer})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := fs.ReadFile(open(t, d, tree), "b"); err != nil || string(data) != "new" {
		t.Errorf("b: %q, %v", data, err)
	}
	s.Close()
	if got := collect(t, d, keepOnly(tree)); got.Files != 2 {
		t.Errorf("after the session: %+v, want 2 files (loose and known)", got)
	}
	if len(d.pins.blobs)+len(d.pins.records)+len(d.pins.late) != 0 {
		t.Errorf("pins stay: %+v", d.pins)
	}
}

func TestCollectSparesFreshTrees(t *testing.T) {
	d := openStore(t, t.TempDir())
	d.grace = time.Hour
	tree := put(t, d, "1", "f a x")
	if got := collect(t, d, keepOnly()); got != (Collected{}) {
		t.Errorf("collected %+v", got)
	}
	d.grace = time.Nanosecond
	time.Sleep(20 * time.Millisecond)
	if got := collect(t, d, keepOnly()); got.Trees != 1 || d.Has(tree.Digest) {
		t.Errorf("collected %+v", got)
	}
}

// Writers store trees and check them while collections run that keep nothing
// but what is written down, as controllers do.
func TestCollectBesideWritersLosesNothing(t *testing.T) {
	d := openStore(t, t.TempDir())
	d.grace = time.Hour // a writer needs time to tell; without it this test is about luck
	var mu sync.Mutex
	kept := map[digest.Digest]bool{}
	keep := func(tree digest.Digest) bool {
		mu.Lock()
		defer mu.Unlock()
		return kept[tree]
	}
	stop := make(chan struct{})
	var collector, writers sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := d.Collect(t.Context(), keep); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for w := range 4 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 0))
			for range 40 {
				n := random.IntN(10)
				tree := put(t, d, fmt.Sprint("layer", n), "f a shared", fmt.Sprintf("f b own%d", n), fmt.Sprintf("f c some%d", n/2))
				mu.Lock()
				kept[tree.Digest] = true
				mu.Unlock()
				view := open(t, d, tree)
				for _, name := range []string{"a", "b", "c"} {
					if _, err := fs.ReadFile(view, name); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	collector.Wait()
}

// The same with loose files only and no grace: what a session has, stays.
func TestCollectBesideASessionThatBeginsAndEnds(t *testing.T) {
	d := openStore(t, t.TempDir())
	stop := make(chan struct{})
	var collector sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				collect(t, d, keepOnly())
			}
		}
	})
	for i := range 200 {
		s, err := d.Begin()
		if err != nil {
			t.Fatal(err)
		}
		tree, err := s.PutTree([]Layer{fill(t, s, fmt.Sprint(i%3), "f a shared", fmt.Sprintf("f b own%d", i%3))})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fs.ReadFile(open(t, d, tree), "b"); err != nil {
			t.Error(err)
		}
		s.Close()
	}
	close(stop)
	collector.Wait()
}

func TestOnlyOneSessionWorksOnALayer(t *testing.T) {
	d := openStore(t, t.TempDir())
	key := layerOf("1").Key
	var mu sync.Mutex
	worked, inside := 0, 0
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s, err := d.Begin()
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			release, err := s.Exclusive(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			mu.Lock()
			if inside++; inside != 1 {
				t.Errorf("%d at once", inside)
			}
			mu.Unlock()
			if _, ok := s.Layer(key); !ok {
				worked++
				fill(t, s, "1", "f a x")
			}
			mu.Lock()
			inside--
			mu.Unlock()
		})
	}
	all.Wait()
	if worked != 1 {
		t.Errorf("worked %d times, want once", worked)
	}
}
