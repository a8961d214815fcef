// SPDX-License-Identifier: Apache-2.0

package fsimage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

// small is a folder with few files.
func small(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"etc/os-release": "NAME=small\n", "readme": "read me\n"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// nested is a tree with an image, and an image inside an image.
func nested(t testing.TB) string {
	t.Helper()
	dir, live := small(t), small(t)
	copyFile(t, squash(t, dir), filepath.Join(live, "live.squashfs"))
	iso := imagePath(t)
	run(t, "genisoimage", "-quiet", "-R", "-o", iso, live)
	tree := small(t)
	copyFile(t, iso, filepath.Join(tree, "media", "live.iso"))
	copyFile(t, ext(t, dir, 256<<10), filepath.Join(tree, "disk.img"))
	return tree
}

func TestWhatIsInsideImagesIsReadByName(t *testing.T) {
	dir := nested(t)
	tree := Inside(os.DirFS(dir))
	for name, want := range map[string]string{
		"readme":                   "read me\n",
		"disk.img!/etc/os-release": "NAME=small\n",
		"media/live.iso!/readme":   "read me\n",
		"media/live.iso!/live.squashfs!/etc/os-release":        "NAME=small\n",
		"media/live.iso!/live.squashfs!/etc/../etc/os-release": "",
	} {
		got, err := fs.ReadFile(tree, name)
		if want == "" != (err != nil) || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if failed, ok := errors.AsType[*fs.PathError](err); err != nil && (!ok || failed.Path != name) {
			t.Errorf("%s: the error names %v", name, err)
		}
	}
	about, err := tree.Stat("media/live.iso!/live.squashfs!")
	if err != nil || !about.IsDir() || about.Name() != "live.squashfs!" {
		t.Errorf("the inside of an image is %v, %v", about, err)
	}
	entries, err := tree.ReadDir("media")
	if err != nil || len(entries) != 1 {
		t.Errorf("a folder with an image has %v, %v", entries, err)
	}
	if err := fstest.TestFS(tree, "readme", "disk.img", "media/live.iso"); err != nil {
		t.Error(err)
	}
	inside, err := fs.Sub(tree, "media/live.iso!")
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(inside, "readme", "live.squashfs", "etc/os-release"); err != nil {
		t.Error(err)
	}
	file, err := tree.Open("disk.img!/readme")
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
	if _, err := file.Read(make([]byte, 1)); err == nil {
		t.Error("a file of a closed image was read")
	}
}

func TestNamesThatLeadNowhereAreSaid(t *testing.T) {
	dir := nested(t)
	for _, name := range []string{"odd!", "both"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "both!"), []byte("own"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree := Inside(os.DirFS(dir))
	defer tree.Close() //nolint:errcheck // nothing was written
	for name, want := range map[string]string{
		"gone.img!/a":            "no such file",
		"readme!/a":              ErrNoImage.Error(),
		"etc!/a":                 ErrNoImage.Error(),
		"disk.img!/gone":         "file does not exist",
		"disk.img!/readme/x":     "file does not exist",
		"disk.img!/etc":          "is a directory",
		"disk.img!/readme!/x":    ErrNoImage.Error(),
		"!/a":                    "no such file",
		"disk.img!/../etc":       "invalid",
		"disk.img!/etc/../../..": "invalid",
	} {
		_, err := tree.ReadFile(name)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %q", name, err, want)
		}
	}
	for name, want := range map[string]string{"odd!": "odd!", "both!": "own", "both": "both"} {
		if got, err := tree.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s, which is a name of the content: %q, %v", name, got, err)
		}
	}
}

// disks makes a disk of each kind of partition table with two filesystems and
// one that nobody knows.
func disks(t testing.TB) map[string]string {
	t.Helper()
	if _, err := exec.LookPath("sfdisk"); err != nil {
		t.Skipf("SKIPPED: sfdisk is not installed; apt-get install %s", packages)
	}
	parts := []string{fatImage(t, small(t), 4<<20), ext(t, small(t), 4<<20)}
	made := map[string]string{}
	for name, script := range map[string]string{
		"GPT":     "label: gpt\nstart=2048,size=8192\nstart=10240,size=8192\nstart=18432,size=64\n",
		"MBR":     "label: dos\nstart=2048,size=8192,type=c\nstart=10240,size=8192,type=83\nstart=18432,size=64,type=83\n",
		"Logical": "label: dos\nx1 : start=2048,size=8192,type=c\nx2 : start=10240,size=20480,type=5\nx5 : start=12288,size=8192,type=83\nx6 : start=22528,size=64,type=83\n",
	} {
		disk := imagePath(t)
		if err := errors.Join(os.WriteFile(disk, nil, 0o600), os.Truncate(disk, 20<<20)); err != nil {
			t.Fatal(err)
		}
		command := exec.Command("sfdisk", "-q", disk)
		command.Stdin = strings.NewReader(script)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("sfdisk: %v\n%s", err, out)
		}
		second := int64(10240)
		if name == "Logical" {
			second = 12288
		}
		file, err := os.OpenFile(disk, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, start := range []int64{2048, second} {
			data, err := os.ReadFile(parts[i])
			if err == nil {
				_, err = file.WriteAt(data, start*512)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		made[name] = disk
	}
	return made
}

func TestPartitionsAreFolders(t *testing.T) {
	for name, disk := range disks(t) {
		second, third := "p2", "p3"
		if name == "Logical" {
			second, third = "p5", "p6"
		}
		view, kind := openImage(t, disk)
		entries, err := view.ReadDir(".")
		if err != nil || kind != Disk {
			t.Fatalf("%s: %q, %v", name, kind, err)
		}
		var names []string
		for _, entry := range entries {
			names = append(names, fmt.Sprint(entry.Name(), " ", entry.Type().String()))
		}
		if diff := cmp.Diff([]string{"p1 d---------", second + " d---------", third + " ----------"}, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, part := range []string{"p1", second} {
			if got, err := view.ReadFile(part + "/etc/os-release"); err != nil || string(got) != "NAME=small\n" {
				t.Errorf("%s: %s: %q, %v", name, part, got, err)
			}
		}
		if about, err := view.Stat(third); err != nil || about.Size() != 32<<10 {
			t.Errorf("%s: a partition that nobody knows: %v, %v", name, about, err)
		}
		if err := fstest.TestFS(view, "p1/readme", second+"/etc/os-release", third); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDisksWithWrongTablesAreRefused(t *testing.T) {
	sectorOf := func(kind byte, first, count uint32) []byte {
		table := make([]byte, 8192)
		table[510], table[511] = 0x55, 0xaa
		table[bootTable+4] = kind
		binary.LittleEndian.PutUint32(table[bootTable+8:], first)
		binary.LittleEndian.PutUint32(table[bootTable+12:], count)
		return table
	}
	gpt := func(edit func(header []byte)) []byte {
		disk := sectorOf(bootProtects, 1, 15)
		copy(disk[512:], gptMagic)
		binary.LittleEndian.PutUint64(disk[512+72:], 2)
		binary.LittleEndian.PutUint32(disk[512+80:], 4)
		binary.LittleEndian.PutUint32(disk[512+84:], 128)
		disk[1024] = 1 // a type
		binary.LittleEndian.PutUint64(disk[1024+32:], 8)
		binary.LittleEndian.PutUint64(disk[1024+40:], 9)
		edit(disk[512:])
		return disk
	}
	loop := sectorOf(5, 1, 10)
	copy(loop[512:], sectorOf(0x83, 1, 1)[:512])
	loop[512+bootTable+bootEntry+4] = 5
	binary.LittleEndian.PutUint32(loop[512+bootTable+bootEntry+8:], 0)
	chain := bytes.Clone(loop)
	binary.LittleEndian.PutUint32(chain[512+bootTable+bootEntry+8:], 1)
	for name, tc := range map[string]struct {
		disk []byte
		want error
	}{
		"BehindItsEnd":         {sectorOf(0x83, 8, 9), volume.ErrMalformed},
		"HugeStart":            {sectorOf(0x83, 1<<32-1, 1<<32-1), volume.ErrMalformed},
		"ChainWithoutAMagic":   {sectorOf(5, 1, 10), volume.ErrMalformed},
		"ChainThatGoesOn":      {chain, volume.ErrMalformed},
		"GPTEntriesOfNothing":  {gpt(func(h []byte) { binary.LittleEndian.PutUint32(h[84:], 0) }), volume.ErrMalformed},
		"GPTManyEntries":       {gpt(func(h []byte) { binary.LittleEndian.PutUint32(h[80:], 1<<31) }), volume.ErrMalformed},
		"GPTTableOutside":      {gpt(func(h []byte) { binary.LittleEndian.PutUint64(h[72:], 1<<60) }), volume.ErrMalformed},
		"GPTPartitionOutside":  {gpt(func(h []byte) { binary.LittleEndian.PutUint64(h[512+40:], 16) }), volume.ErrMalformed},
		"GPTPartitionReversed": {gpt(func(h []byte) { binary.LittleEndian.PutUint64(h[512+32:], 10) }), volume.ErrMalformed},
		"NoTable":              {make([]byte, 8192), ErrNoImage},
		"Text":                 {[]byte("text"), ErrNoImage},
		"Nothing":              {nil, ErrNoImage},
	} {
		if _, _, err := Open(bytes.NewReader(tc.disk), int64(len(tc.disk))); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := Open(bytes.NewReader(loop), int64(len(loop))); err != nil {
		t.Errorf("a chain of one partition: %v", err)
	}
}

// The figure of the issue: one small file of a large image, once the image is in
// the store, also in a process that has just begun.
func TestOneFileOfALargeImageIsReadQuickly(t *testing.T) {
	dir := small(t)
	page := bytes.Repeat([]byte("page"), 1024)
	if err := os.WriteFile(filepath.Join(dir, "etc", "page"), page, 0o600); err != nil {
		t.Fatal(err)
	}
	image, err := os.Open(ext(t, dir, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close() //nolint:errcheck // nothing was written
	place := t.TempDir()
	store, err := content.OpenDisk(t.Context(), place, content.Options{})
	if err != nil {
		t.Fatal(err)
	}
	session, err := store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := session.AddFile(image, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := session.PutTree([]content.Layer{{Key: content.LayerKey{Digest: digest.FromString("x"), Format: "test"},
		Entries: []content.Entry{{Path: "disk.img", Kind: content.File, Size: 1 << 30, Sum: sum}}}})
	if err != nil {
		t.Fatal(err)
	}
	session.Close()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if store, err = content.OpenDisk(t.Context(), place, content.Options{}); err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // nothing was written
	best := time.Hour
	for range 3 { // other work on the machine may be in the way once
		begun := time.Now()
		view, err := store.Open(t.Context(), tree.Digest)
		if err != nil {
			t.Fatal(err)
		}
		inside := Inside(view)
		got, err := inside.ReadFile("disk.img!/etc/page")
		if err != nil || !bytes.Equal(got, page) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		best = min(best, time.Since(begun))
		if err := inside.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("one file of 4 KiB out of an image of 1 GiB: %v", best)
	if best > 50*time.Millisecond {
		t.Errorf("it took %v, more than 50 ms", best)
	}
}

func TestDamageInsideAnImageIsToldAsThatOfTheContent(t *testing.T) {
	place := t.TempDir()
	store, err := content.OpenDisk(t.Context(), place, content.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // nothing was written
	data, err := os.ReadFile(ext(t, small(t), 16<<20))
	if err != nil {
		t.Fatal(err)
	}
	session, err := store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := session.AddFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := session.PutTree([]content.Layer{{Entries: []content.Entry{{Path: "disk.img", Kind: content.File, Size: int64(len(data)), Sum: sum}}}})
	if err != nil {
		t.Fatal(err)
	}
	session.Close()
	data[bytes.Index(data, []byte("NAME=small"))] ^= 1
	blob := filepath.Join(place, "blobs", sum.String()[:2], sum.String()[2:])
	if err := errors.Join(os.Chmod(blob, 0o600), os.WriteFile(blob, data, 0o600)); err != nil {
		t.Fatal(err)
	}
	view, err := store.Open(t.Context(), tree.Digest)
	if err != nil {
		t.Fatal(err)
	}
	inside := Inside(view)
	defer inside.Close() //nolint:errcheck // nothing was written
	_, err = inside.ReadFile("disk.img!/etc/os-release")
	if _, ok := errors.AsType[*content.CorruptError](err); !ok {
		t.Errorf("got %v", err)
	}
}

var _ io.ReaderAt = (*volume.File)(nil)

func TestManyReadersAtOnce(t *testing.T) {
	tree := Inside(os.DirFS(nested(t)))
	defer tree.Close() //nolint:errcheck // nothing was written
	names := []string{"disk.img!/etc/os-release", "media/live.iso!/readme", "media/live.iso!/live.squashfs!/etc/os-release"}
	var group sync.WaitGroup
	for i := range 24 {
		group.Go(func() {
			name := names[i%len(names)]
			if data, err := tree.ReadFile(name); err != nil || len(data) == 0 {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := tree.ReadDir(filepath.Dir(name)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}
