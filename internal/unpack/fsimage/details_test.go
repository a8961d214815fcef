// SPDX-License-Identifier: Apache-2.0

package fsimage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

func TestBlocksThatWereNeverWrittenAreZeros(t *testing.T) {
	dir := sample(t, true)
	image := ext(t, dir, 64<<20, "-t", "ext4", "-b", "1024")
	run(t, "debugfs", "-w", "-R", "fallocate /big/zeros.bin 0 1023", image)
	run(t, "debugfs", "-w", "-R", "fallocate /big/pieces.bin 0 1023", image)
	extents, err := exec.Command("debugfs", "-R", "ex /big/pieces.bin", image).Output()
	if err != nil || !strings.Contains(string(extents), "Uninit") || !strings.Contains(string(extents), " 2/ 2") {
		t.Fatalf("the image is not as the test wants it: %v\n%.500s", err, extents)
	}

	checkImage(t, image, Ext4, describe(t, os.DirFS(dir), true), true)
}

func TestAnImageThatWasInUseIsRefused(t *testing.T) {
	image := ext(t, small(t), 16<<20, "-t", "ext4")
	run(t, "debugfs", "-w", "-R", "feature needs_recovery", image)
	data := read(t, image)
	if err := survive(t, data); !errors.Is(err, volume.ErrUnsupported) || !strings.Contains(err.Error(), "e2fsck -p") {
		t.Errorf("got %v", err)
	}
}

// What was deleted from a FAT image is gone, and what fills its place comes in
// pieces.
func TestFATAfterDeleting(t *testing.T) {
	dir := sample(t, false)
	image := fatImage(t, dir, 64<<20, "-F", "16", "-s", "2")
	for i := range 50 {
		name := filepath.Join("many", "file-00"+string(rune('0'+i/10))+string(rune('0'+i%10))+".txt")
		if i%2 == 0 {
			run(t, "mdel", "-i", image, "::/"+name)
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	again := filepath.Join(dir, "many", "again and again.bin")
	copyFile(t, filepath.Join(dir, "big", "half.bin"), again)
	run(t, "mcopy", "-i", image, again, "::/many/")
	checkImage(t, image, FAT, describe(t, os.DirFS(dir), false), false)
}

func TestNamesThatAreNoTextAreShown(t *testing.T) {
	dir := small(t)
	for _, name := range []string{"caf\xe9", "two\nlines", "esc\x1b[2J", `back\slash`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for kind, path := range map[Kind]string{Ext4: ext(t, dir, 1<<20), SquashFS: squash(t, dir)} {
		view, _ := openImage(t, path)
		entries, err := view.ReadDir(".")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, entry := range entries {
			if entry.Name() != "lost+found" {
				names = append(names, entry.Name())
			}
		}
		want := []string{`back\slash`, `caf\xe9`, `esc\x1b[2J`, "etc", "readme", `two\x0alines`}
		if diff := gocmp.Diff(want, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
		if data, err := fs.ReadFile(view, `caf\xe9`); err != nil || string(data) != "caf\xe9" {
			t.Errorf("%s: %q, %v", kind, data, err)
		}
	}
}

// handISO writes an ISO image by hand: files of more than 4 GiB, which come in
// several pieces, are too large for a test.
func handISO(records ...[]byte) []byte {
	image := make([]byte, 30*2048)
	copy(image[16*2048:], "\x01CD001\x01")
	put16(image, 16*2048+128, 2048)
	copy(image[16*2048+156:], isoRecord("\x00", 2, 18, 2048))
	copy(image[17*2048:], "\xffCD001\x01")
	at := 18 * 2048
	for _, raw := range append([][]byte{isoRecord("\x00", 2, 18, 2048), isoRecord("\x01", 2, 18, 2048)}, records...) {
		at += copy(image[at:], raw)
	}
	return image
}

func isoRecord(name string, flags byte, block, size uint32) []byte {
	raw := make([]byte, (33+len(name)+1)&^1)
	raw[0], raw[25], raw[32] = byte(len(raw)), flags, byte(len(name))
	binary.LittleEndian.PutUint32(raw[2:], block)
	binary.LittleEndian.PutUint32(raw[10:], size)
	copy(raw[33:], name)
	return raw
}

func TestFilesOfAnISOInSeveralPieces(t *testing.T) {
	image := handISO(isoRecord("BIG.;1", 0x80, 20, 4096), isoRecord("BIG.;1", 0x80, 25, 2048), isoRecord("BIG.;1", 0, 23, 100), isoRecord("NEXT.TXT;1", 0, 24, 5))
	for i, text := range map[int]string{20: "a", 21: "b", 25: "c", 23: "d"} {
		copy(image[i*2048:(i+1)*2048], bytes.Repeat([]byte(text), 2048))
	}
	copy(image[24*2048:], "next\n")
	view, kind, err := Open(bytes.NewReader(image), int64(len(image)))
	if err != nil || kind != ISO9660 {
		t.Fatalf("%q, %v", kind, err)
	}
	want := strings.Repeat("a", 2048) + strings.Repeat("b", 2048) + strings.Repeat("c", 2048) + strings.Repeat("d", 100)
	if got, err := view.ReadFile("big"); err != nil || string(got) != want {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got, err := view.ReadFile("next.txt"); err != nil || string(got) != "next\n" {
		t.Errorf("%q, %v", got, err)
	}
	interleaved := isoRecord("A", 0, 20, 5)
	interleaved[26] = 1
	for name, tc := range map[string]struct {
		records [][]byte
		want    error
	}{
		"OtherName":   {[][]byte{isoRecord("A", 0x80, 20, 5), isoRecord("B", 0, 20, 5)}, volume.ErrMalformed},
		"NoLastPart":  {[][]byte{isoRecord("A", 0x80, 20, 5)}, volume.ErrMalformed},
		"Behind":      {[][]byte{isoRecord("A", 0, 29, 2049)}, volume.ErrMalformed},
		"Interleaved": {[][]byte{interleaved}, volume.ErrUnsupported},
		"Twice":       {[][]byte{isoRecord("A", 0, 20, 5), isoRecord("A;1", 0, 20, 5)}, volume.ErrMalformed},
	} {
		if err := survive(t, handISO(tc.records...)); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
