// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
)

func TestLinksStayInsideTheTree(t *testing.T) {
	d := openStore(t, t.TempDir())
	view := open(t, d, put(t, d, "1",
		"f etc/passwd ours", "f a/b/file text",
		"l dir a/b", "l chain dir", "l abs /etc/passwd", "l a/up ../etc/passwd", "l a/b/self .", "l slash a/b/",
		"l gone nowhere", "l a/over ../../etc/passwd", "l loop1 loop2", "l loop2 loop1", "l self self", "l root /"))
	for name, want := range map[string]string{
		"dir/file": "text", "chain/file": "text", "abs": "ours", "a/up": "ours", "dir/self/self/file": "text",
		"slash/file": "text", "root/root/etc/passwd": "ours",
	} {
		if got, err := fs.ReadFile(view, name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"gone":          `open gone: link "gone" -> "nowhere": file does not exist`,
		"a/over":        `open a/over: link "a/over" -> "../../etc/passwd": it leads out of the tree`,
		"loop1":         `open loop1: link "loop1" -> "loop2": it leads over more than 40 links, in a circle`,
		"self/x":        `open self/x: link "self" -> "self": it leads over more than 40 links, in a circle`,
		"a/b/file/x":    `open a/b/file/x: file does not exist`,
		"dir/../dir":    `open dir/../dir: invalid argument`,
		"../etc/passwd": `open ../etc/passwd: invalid argument`,
		"/etc/passwd":   `open /etc/passwd: invalid argument`,
		"absent":        `open absent: file does not exist`,
	} {
		if _, err := view.Open(name); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if _, err := fs.Stat(view, "gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of a link to nothing: %v", err)
	}
	if seen, err := fs.Lstat(view, "gone"); err != nil || seen.Mode().Type() != fs.ModeSymlink {
		t.Errorf("Lstat of a link: %v, %v", seen, err)
	}
	if target, err := fs.ReadLink(view, "a/over"); err != nil || target != "../../etc/passwd" {
		t.Errorf("ReadLink: %q, %v", target, err)
	}
	if _, err := fs.ReadLink(view, "etc/passwd"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("ReadLink of a file: %v", err)
	}
}

func TestFilesAndFoldersAreNotMixedUp(t *testing.T) {
	d := openStore(t, t.TempDir())
	view := open(t, d, put(t, d, "1", "f a/b text"))
	if _, err := fs.ReadFile(view, "a"); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("ReadFile of a folder: %v", err)
	}
	if _, err := fs.ReadDir(view, "a/b"); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("ReadDir of a file: %v", err)
	}
	f, err := view.Open("a/b")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("reading a closed file: %v", err)
	}
}

// damage changes a stored file in one of the ways that a disk has.
func damage(t *testing.T, path, how string) {
	t.Helper()
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch how {
	case "Flipped":
		data[len(data)-1] ^= 1
	case "Cut":
		data = data[:len(data)-1]
	case "Longer":
		data = append(data, 'x')
	case "Empty":
		data = nil
	case "Gone":
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedFilesNeverGiveWrongBytesAndHeal(t *testing.T) {
	for _, size := range []int{10, maxInMemory + 10} {
		for _, how := range []string{"Flipped", "Cut", "Longer", "Empty", "Gone"} {
			for _, reader := range []string{"ReadFile", "Open", "ReadFull"} {
				t.Run(fmt.Sprintf("%d/%s/%s", size, how, reader), func(t *testing.T) {
					d := openStore(t, t.TempDir())
					text := strings.Repeat("x", size)
					tree := put(t, d, "1", "f a/big "+text, "f small x")
					view := open(t, d, tree)
					damage(t, d.blobPath(layerOf("1", "f a "+text).Entries[0].Sum), how)

					err := readBig(view, reader, size)
					corrupt, ok := errors.AsType[*CorruptError](err)
					if !ok || corrupt.Path != "a/big" {
						t.Fatalf("got %v, want a CorruptError for a/big", err)
					}
					if d.Has(tree.Digest) {
						t.Error("Has still says yes")
					}
					if _, err := d.Open(t.Context(), tree.Digest); err == nil {
						t.Error("the tree can still be opened")
					}
					healed := put(t, d, "1", "f a/big "+text, "f small x")
					if err := readBig(open(t, d, healed), reader, size); err != nil {
						t.Errorf("after fetching again: %v", err)
					}
				})
			}
		}
	}
}

// readBig reads the file a/big and discards it.
func readBig(view fs.FS, how string, size int) error {
	if how == "ReadFile" {
		_, err := fs.ReadFile(view, "a/big")
		return err
	}
	f, err := view.Open("a/big")
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if how == "ReadFull" {
		_, err := io.ReadFull(f, make([]byte, size))
		return err
	}
	_, err = io.Copy(io.Discard, f)
	return err
}

func TestDamagedListingIsNotBelievedAndHeals(t *testing.T) {
	for _, how := range []string{"Flipped", "Cut", "Longer", "Empty", "Gone"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			d := openStore(t, dir)
			tree := put(t, d, "1", "f a x")
			damage(t, d.treePath(tree.Digest), how)
			if _, err := d.Open(t.Context(), tree.Digest); err == nil {
				t.Fatal("opened")
			}
			if d.Has(tree.Digest) {
				t.Error("Has says yes")
			}
			s, err := d.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := s.Tree([]LayerKey{layerOf("1").Key}); ok {
				t.Error("a session finds the tree")
			}
			s.Close()
			if again := put(t, d, "1", "f a x"); again != tree || !d.Has(tree.Digest) {
				t.Error("not healed")
			}
		})
	}
}

func TestALayerWithADamagedFileIsFetchedAgain(t *testing.T) {
	d := openStore(t, t.TempDir())
	put(t, d, "1", "f a hello")
	damage(t, d.blobPath(layerOf("1", "f a hello").Entries[0].Sum), "Cut")
	s, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, ok := s.Layer(layerOf("1").Key); ok {
		t.Error("the layer is taken for whole")
	}
}
