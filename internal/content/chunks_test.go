// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
)

// putBig stores one file of random bytes.
func putBig(t testing.TB, d *Disk, size int64) (Tree, Sum, []byte) {
	t.Helper()
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(data) // never fails
	s, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sum, err := s.AddFile(bytes.NewReader(data), size)
	if err != nil {
		t.Fatal(err)
	}
	layer := Layer{Key: LayerKey{Digest: digest.FromBytes(data), Format: "test"}, Entries: []Entry{{Path: "big", Kind: File, Size: size, Sum: sum}}}
	if err := s.PutLayer(layer); err != nil {
		t.Fatal(err)
	}
	tree, err := s.PutTree([]Layer{layer})
	if err != nil {
		t.Fatal(err)
	}
	return tree, sum, data
}

func openBig(t testing.TB, d *Disk, tree Tree) *streamFile {
	t.Helper()
	file, err := open(t, d, tree).Open("big")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() }) // a test may have closed it
	return file.(*streamFile)
}

func TestALargeFileIsReadFromAnywhere(t *testing.T) {
	for _, size := range []int64{maxInMemory + 1, chunkFloor - 1, chunkFloor, chunkFloor + 3*chunkSize + 5} {
		d := openStore(t, t.TempDir())
		tree, sum, data := putBig(t, d, size)
		if _, ok := d.readChunks(sum, size); ok != (size >= chunkFloor) {
			t.Errorf("%d bytes: a list was stored: %v", size, ok)
		}
		file := openBig(t, d, tree)
		random := rand.New(rand.NewPCG(1, uint64(size)))
		for range 200 {
			offset, got := random.Int64N(size+10), make([]byte, random.IntN(2*chunkSize))
			n, err := file.ReadAt(got, offset)
			want := data[min(offset, size):]
			want = want[:min(len(want), len(got))]
			if !bytes.Equal(got[:n], want) || (err != nil) != (n < len(got)) || err != nil && !errors.Is(err, io.EOF) {
				t.Fatalf("%d bytes: %d of %d at %d, %v", size, n, len(got), offset, err)
			}
		}
		if _, err := file.ReadAt(make([]byte, 1), -1); err == nil {
			t.Error("bytes before the beginning were read")
		}
		if _, ok := d.readChunks(sum, size); !ok {
			t.Errorf("%d bytes: no list was stored", size)
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(file); err != nil || !bytes.Equal(got, data) {
			t.Errorf("from the beginning: %d of %d bytes, %v", len(got), size, err)
		}
	}
}

func TestDamageIsFoundWhereAReadMeetsIt(t *testing.T) {
	const size, bad = chunkFloor + 10, 5*chunkSize + 17
	for name, spoil := range map[string]func(list string) error{
		"WithItsList":      func(string) error { return nil },
		"WithoutAList":     os.Remove,
		"WithADamagedList": func(list string) error { return rewrite(list, 60) },
	} {
		t.Run(name, func(t *testing.T) {
			d := openStore(t, t.TempDir())
			tree, sum, data := putBig(t, d, size)
			if err := errors.Join(rewrite(d.blobPath(sum), bad), spoil(d.chunksPath(sum))); err != nil {
				t.Fatal(err)
			}
			file := openBig(t, d, tree)
			got := make([]byte, 100)
			_, err := file.ReadAt(got, 0)
			if name == "WithItsList" && (err != nil || !bytes.Equal(got, data[:100])) {
				t.Errorf("what is not damaged: %v", err)
			}
			_, err = file.ReadAt(got, bad)
			corrupt, ok := errors.AsType[*CorruptError](err)
			if !ok || corrupt.Path != "big" {
				t.Errorf("what is damaged: %v", err)
			}
			if d.Has(tree.Digest) {
				t.Error("the store still says that it has the tree")
			}
			if again, _, _ := putBig(t, d, size); again.Digest != tree.Digest {
				t.Error("another tree")
			}
			if n, err := openBig(t, d, tree).ReadAt(got, bad); err != nil || !bytes.Equal(got[:n], data[bad:bad+100]) {
				t.Errorf("after it was stored again: %v", err)
			}
		})
	}
}

// rewrite changes one byte of a file that nobody may write to.
func rewrite(path string, at int64) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data[at] ^= 1
	return errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, data, 0o600))
}

func TestADamagedListOfAGoodFileIsMadeAnew(t *testing.T) {
	d := openStore(t, t.TempDir())
	tree, sum, data := putBig(t, d, chunkFloor)
	for name, spoil := range map[string]func(list string) error{
		"Gone": os.Remove, "Damaged": func(list string) error { return rewrite(list, 70) },
		"Short":         func(list string) error { return os.Truncate(list, 20) },
		"OfAnotherFile": func(string) error { return d.putChunks(Sum{1}, []uint64{1}) },
	} {
		if err := spoil(d.chunksPath(sum)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 10)
		if _, err := openBig(t, d, tree).ReadAt(got, 99); err != nil || !bytes.Equal(got, data[99:109]) {
			t.Errorf("%s: %v", name, err)
		}
		if _, ok := d.readChunks(sum, chunkFloor); !ok {
			t.Errorf("%s: no list was made", name)
		}
	}
}

func TestAFileIsReadOnAfterASeek(t *testing.T) {
	d := openStore(t, t.TempDir())
	tree, _, data := putBig(t, d, chunkFloor)
	file := openBig(t, d, tree)
	for _, step := range []struct {
		offset int64
		whence int
		want   int64
	}{{0, io.SeekEnd, chunkFloor}, {100, io.SeekStart, 100}, {50, io.SeekCurrent, 160}, {-10, io.SeekEnd, chunkFloor - 10}, {0, io.SeekStart, 0}} {
		at, err := file.Seek(step.offset, step.whence)
		if err != nil || at != step.want {
			t.Fatalf("at %d, %v; want %d", at, err, step.want)
		}
		got := make([]byte, 10)
		if n, err := io.ReadFull(file, got); at < chunkFloor && (err != nil || !bytes.Equal(got, data[at:at+10])) || at == chunkFloor && err != io.EOF {
			t.Errorf("at %d: %d bytes, %v", at, n, err)
		}
	}
	if _, err := file.Seek(-1, io.SeekStart); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("before the beginning: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := file.ReadAt(make([]byte, 1), 5*chunkSize); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("reading what is closed: %v", err)
	}
	if !d.Has(tree.Digest) {
		t.Error("reading what is closed was taken for damage")
	}
}

func TestListsGoWithTheirFiles(t *testing.T) {
	d := openStore(t, t.TempDir())
	kept, keptSum, _ := putBig(t, d, chunkFloor)
	_, goneSum, _ := putBig(t, d, chunkFloor+1)
	if err := os.WriteFile(filepath.Join(d.dir, chunksName, "stranger"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	collect(t, d, keepOnly(kept))
	if got := stored(t, d, chunksName); len(got) != 1 || filepath.Base(got[0]) != keptSum.String() {
		t.Errorf("lists of %v are left; %s is kept, %s is gone", got, keptSum, goneSum)
	}
}

// The figure that fsimage builds on: a page of a large file costs one piece of
// it, also in a process that has just begun.
func TestAPageOfALargeFileIsReadQuickly(t *testing.T) {
	dir := t.TempDir()
	d := openStore(t, dir)
	const size = 256 << 20
	s, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := s.AddFile(io.LimitReader(endless{}, size), size)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := s.PutTree([]Layer{{Entries: []Entry{{Path: "big", Kind: File, Size: size, Sum: sum}}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = openStore(t, dir)
	page, eighth := time.Hour, time.Hour
	for range 5 { // the best of each: other work on the machine may be in the way
		begun := time.Now()
		if _, err := openBig(t, d, tree).ReadAt(make([]byte, 4096), size/2); err != nil {
			t.Fatal(err)
		}
		page = min(page, time.Since(begun))
		begun = time.Now()
		sha256.Sum256(make([]byte, size/8))
		eighth = min(eighth, time.Since(begun))
	}
	if page > eighth {
		t.Errorf("reading a page took %v, digesting an eighth of the file %v", page, eighth)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i >> 3)
	}
	return len(p), nil
}

// FuzzChunks looks for lists that panic, or that are taken and are not just what
// would be written.
func FuzzChunks(f *testing.F) {
	f.Add(formatChunks(Sum{}, []uint64{1, 2}), int64(chunkSize+1))
	f.Add(formatChunks(Sum{}, nil), int64(0))
	f.Add([]byte(chunksHead), int64(-1))
	f.Fuzz(func(t *testing.T, data []byte, size int64) {
		if size < 0 || size > 1<<50 {
			size = int64(len(data)) * chunkSize / 8
		}
		if sums, ok := parseChunks(data, Sum{}, size); ok && !bytes.Equal(formatChunks(Sum{}, sums), data) {
			t.Fatalf("%q was taken for %v", data, sums)
		}
	})
}
