// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/opencontainers/go-digest"
)

func openStore(t testing.TB, dir string) *Disk {
	t.Helper()
	d, err := OpenDisk(t.Context(), dir, Options{Grace: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() }) // a test may have closed it
	return d
}

// fill stores a layer made of the lines of layerOf and gives it.
func fill(t testing.TB, s *Session, name string, lines ...string) Layer {
	t.Helper()
	layer := layerOf(name, lines...)
	for _, line := range lines {
		kind, rest, _ := strings.Cut(line, " ")
		_, text, _ := strings.Cut(rest, " ")
		if kind != "f" {
			continue
		}
		if _, err := s.AddFile(strings.NewReader(text), int64(len(text))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.PutLayer(layer); err != nil {
		t.Fatal(err)
	}
	return layer
}

// put stores a tree of one layer.
func put(t testing.TB, d *Disk, name string, lines ...string) Tree {
	t.Helper()
	s, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tree, err := s.PutTree([]Layer{fill(t, s, name, lines...)})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func open(t testing.TB, d *Disk, tree Tree) fs.FS {
	t.Helper()
	view, err := d.Open(t.Context(), tree.Digest)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func TestWhatIsStoredCanBeRead(t *testing.T) {
	d := openStore(t, t.TempDir())
	tree := put(t, d, "1", "f a/b/c hello", "l a/l b/c", "d empty", "f z ")
	if tree.Files != 3 || tree.Bytes != 5 {
		t.Errorf("tree %+v, want 3 files of 5 bytes", tree)
	}
	view := open(t, d, tree)
	for _, name := range []string{"a/b/c", "a/l"} {
		if data, err := fs.ReadFile(view, name); err != nil || string(data) != "hello" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if err := fstest.TestFS(view, "a/b/c", "a/l", "empty", "z"); err != nil {
		t.Error(err)
	}
}

func TestStoreSurvivesReopening(t *testing.T) {
	dir := t.TempDir()
	d := openStore(t, dir)
	tree := put(t, d, "1", "f a hello")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = openStore(t, dir)
	if !d.Has(tree.Digest) {
		t.Error("the tree is gone")
	}
	if got, err := d.Stat(tree.Digest); err != nil || got != tree {
		t.Errorf("Stat = %+v, %v; want %+v", got, err, tree)
	}
}

func TestSameContentIsStoredOnceHoweverPacked(t *testing.T) {
	d := openStore(t, t.TempDir())
	one := put(t, d, "1", "f a/b x", "f c y")
	s, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	layers := []Layer{
		fill(t, s, "2", "d a", "f a/old z", "f c wrong", "f a/b x"),
		fill(t, s, "3", "w a/old", "f c y"),
	}
	two, err := s.PutTree(layers)
	if err != nil {
		t.Fatal(err)
	}
	if one != two {
		t.Errorf("trees %+v and %+v differ", one, two)
	}
	if n := len(stored(t, d, treesName)); n != 1 {
		t.Errorf("%d listings, want 1", n)
	}
}

// stored lists the files below one of the store's folders.
func stored(t testing.TB, d *Disk, name string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(d.dir, name), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestAbsentTree(t *testing.T) {
	d := openStore(t, t.TempDir())
	absent := digest.FromString("absent")
	if d.Has(absent) {
		t.Error("Has says yes")
	}
	if _, err := d.Open(t.Context(), absent); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open: %v, want fs.ErrNotExist", err)
	}
	for _, bad := range []digest.Digest{"", "sha256:../../x", "sha256:", "md5:abc", "x"} {
		if d.Has(bad) {
			t.Errorf("Has(%q) says yes", bad)
		}
		if _, err := d.Open(t.Context(), bad); err == nil {
			t.Errorf("Open(%q) works", bad)
		}
	}
}

func TestKnownLayersAndTreesAreNotAskedForAgain(t *testing.T) {
	dir := t.TempDir()
	d := openStore(t, dir)
	tree := put(t, d, "1", "f a hello")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := openStore(t, dir).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key := layerOf("1").Key
	if layer, ok := s.Layer(key); !ok || len(layer.Entries) != 1 {
		t.Errorf("Layer = %+v, %v", layer, ok)
	}
	if got, ok := s.Tree([]LayerKey{key}); !ok || got != tree {
		t.Errorf("Tree = %+v, %v; want %+v", got, ok, tree)
	}
	if _, ok := s.Layer(LayerKey{Digest: key.Digest, Format: "other"}); ok {
		t.Error("a layer unpacked another way is taken for this one")
	}
	if _, ok := s.Tree([]LayerKey{key, key}); ok {
		t.Error("a tree of other layers is taken for this one")
	}
}

func TestAStoreIsOpenOnlyOnce(t *testing.T) {
	dir := t.TempDir()
	d := openStore(t, dir)
	_, err := OpenDisk(t.Context(), dir, Options{})
	if err == nil || !strings.Contains(err.Error(), "another process has it open") {
		t.Fatalf("second opening: %v", err)
	}
	time.AfterFunc(100*time.Millisecond, func() { _ = d.Close() }) // the other end shows whether it worked
	second, err := OpenDisk(t.Context(), dir, Options{Wait: time.Minute})
	if err != nil {
		t.Fatalf("waiting for the first to close: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := OpenDisk(ctx, dir, Options{Wait: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting in vain: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

func TestAFolderWithOtherThingsIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, workName)
	if err := os.WriteFile(precious, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDisk(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
	if _, err := OpenDisk(t.Context(), precious, Options{}); err == nil {
		t.Error("a plain file was opened as a store")
	}
}

func TestLeftOversAndStrangersInTheStoreAreReplaced(t *testing.T) {
	dir := t.TempDir()
	d := openStore(t, dir)
	tree := put(t, d, "1", "f a hello", "f b "+strings.Repeat("x", smallFile+1))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// A plain file in the place of every folder, a folder in that of every file.
	must(os.MkdirAll(filepath.Join(dir, workName, "7", "sub"), 0o700))
	must(os.WriteFile(filepath.Join(dir, workName, "7", "sub", "half"), []byte("ha"), 0o600))
	for _, name := range []string{layersName, recipesName} {
		must(os.RemoveAll(filepath.Join(dir, name)))
		must(os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	for _, path := range append(stored(t, d, blobsName), stored(t, d, treesName)...) {
		must(os.Remove(path))
		must(os.MkdirAll(filepath.Join(path, "half"), 0o700))
	}
	shard := d.blobPath(layerOf("1", "f a hello").Entries[0].Sum)
	must(os.RemoveAll(filepath.Dir(shard)))
	must(os.WriteFile(filepath.Dir(shard), nil, 0o600))

	d = openStore(t, dir)
	if got := stored(t, d, workName); len(got) != 0 {
		t.Errorf("left-overs stay: %q", got)
	}
	if d.Has(tree.Digest) {
		t.Error("a tree without files is believed")
	}
	again := put(t, d, "1", "f a hello", "f b "+strings.Repeat("x", smallFile+1))
	if again != tree || !d.Has(tree.Digest) {
		t.Errorf("rebuilt %+v, want %+v", again, tree)
	}
	if data, err := fs.ReadFile(open(t, d, again), "a"); err != nil || string(data) != "hello" {
		t.Errorf("a: %q, %v", data, err)
	}
}

func TestAddFilePassesOnTheReadersError(t *testing.T) {
	d := openStore(t, t.TempDir())
	s, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	boom := errors.New("boom")
	for _, size := range []int64{10, smallFile + 10} {
		short := strings.NewReader(strings.Repeat("x", int(size)-1))
		if _, err := s.AddFile(short, size); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes, too short: %v", size, err)
		}
		if _, err := s.AddFile(io.MultiReader(bytes.NewReader(make([]byte, 5)), failing{boom}), size); !errors.Is(err, boom) {
			t.Errorf("%d bytes, failing: %v", size, err)
		}
	}
	if got := append(stored(t, d, blobsName), stored(t, d, workName)...); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
