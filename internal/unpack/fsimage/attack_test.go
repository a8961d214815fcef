// SPDX-License-Identifier: Apache-2.0

package fsimage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

// Bounds on what a test reads of an image that lies.
const (
	mostNames = 3000
	mostBytes = 64 << 10
	mostAlloc = 256 << 20
)

var errEnough = errors.New("enough")

// readAll looks at all that an image has, as far as a test wants to wait.
func readAll(view FS) error {
	names := 0
	var all error
	err := fs.WalkDir(view, ".", func(name string, entry fs.DirEntry, err error) error {
		if names++; names > mostNames {
			return errEnough
		}
		if err != nil {
			all = err
			return nil // the rest may be whole
		}
		if entry.Type() == fs.ModeSymlink {
			_, err = view.Stat(name)
			if _, linkErr := view.ReadLink(name); linkErr != nil {
				all = linkErr
			}
			if errors.Is(err, volume.ErrMalformed) {
				all = err
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		file, err := view.Open(name)
		if err != nil {
			all = err
			return nil
		}
		_, err = io.Copy(io.Discard, io.LimitReader(file, mostBytes))
		if about, statErr := file.Stat(); err == nil && statErr == nil {
			_, err = file.(io.ReaderAt).ReadAt(make([]byte, 10), max(0, about.Size()-5))
		}
		if err != nil && !errors.Is(err, io.EOF) {
			all = err
		}
		return file.Close()
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return all
}

// survive opens an image that may lie and reads all of it. It gives the error.
func survive(t testing.TB, image []byte) error {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	view, _, err := Open(bytes.NewReader(image), int64(len(image)))
	if err == nil {
		err = readAll(view)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > mostAlloc {
		t.Errorf("%d bytes were allocated", used)
	}
	if err != nil && strings.Contains(err.Error(), "reading it failed") {
		t.Errorf("a driver panicked: %v", err)
	}
	return err
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// victim makes a small image of each kind, as simple as can be.
func victims(t testing.TB) map[Kind][]byte {
	t.Helper()
	dir := small(t)
	if err := os.Symlink("etc/os-release", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	iso := imagePath(t)
	run(t, "genisoimage", "-quiet", "-R", "-no-pad", "-o", iso, dir)
	return map[Kind][]byte{
		Ext4:     read(t, ext(t, dir, 128<<10, "-t", "ext2", "-b", "1024", "-I", "128", "-N", "32")),
		SquashFS: read(t, squash(t, dir, "-nopad", "-noI", "-noD", "-noF")),
		ISO9660:  read(t, iso),
		FAT:      read(t, fatImage(t, small(t), 4<<20, "-F", "16", "-s", "1", "-f", "1", "-r", "64")),
	}
}

func put16(data []byte, at int, value uint16) { binary.LittleEndian.PutUint16(data[at:], value) }
func put32(data []byte, at int, value uint32) { binary.LittleEndian.PutUint32(data[at:], value) }
func put64(data []byte, at int, value uint64) { binary.LittleEndian.PutUint64(data[at:], value) }

// find gives the place of bytes that have to be there.
func find(t testing.TB, data []byte, what string) int {
	t.Helper()
	at := bytes.Index(data, []byte(what))
	if at < 0 {
		t.Fatalf("the image has no %q", what)
	}
	return at
}

func TestImagesThatLieAreRefused(t *testing.T) {
	images := victims(t)
	entry := func(image []byte, name string) int {
		return find(t, image, string([]byte{byte(len(name))})+"\x02"+name) - 6
	}
	fileEntry := func(image []byte, name string) int {
		return find(t, image, string([]byte{byte(len(name))})+"\x01"+name) - 6
	}
	for name, tc := range map[string]struct {
		kind Kind
		edit func(image []byte)
		want string
	}{
		"ExtBlockSize":         {Ext4, func(i []byte) { put32(i, 1024+24, 40) }, "block size"},
		"ExtHugeBlockSize":     {Ext4, func(i []byte) { put32(i, 1024+24, 1<<31) }, "block size"},
		"ExtBlocks":            {Ext4, func(i []byte) { put32(i, 1024+4, 1<<31) }, "cut off"},
		"ExtInodeSize":         {Ext4, func(i []byte) { put16(i, 1024+88, 0) }, "inodes have 0 bytes"},
		"ExtNoGroups":          {Ext4, func(i []byte) { put32(i, 1024+40, 0) }, "groups have"},
		"ExtUnknownFeature":    {Ext4, func(i []byte) { put32(i, 1024+96, 1<<30) }, "features that no reader here knows"},
		"ExtJournalToReplay":   {Ext4, func(i []byte) { put32(i, 1024+96, 6) }, "run e2fsck"},
		"ExtInodeTableOutside": {Ext4, func(i []byte) { put32(i, 2048+8, 1<<30) }, "behind its end"},
		"ExtFolderInItself":    {Ext4, func(i []byte) { put32(i, entry(i, "etc"), 2) }, "inside itself"},
		"ExtFolderTwice": {Ext4, func(i []byte) {
			from := entry(i, "etc")
			copy(i[fileEntry(i, "readme"):], i[from:from+4])
		}, "stands in two places"},
		"ExtNameWithSlash":   {Ext4, func(i []byte) { copy(i[fileEntry(i, "readme")+8:], "../../") }, `the name "../../"`},
		"ExtNameTwice":       {Ext4, func(i []byte) { copy(i[entry(i, "etc")+8:], "\x00\x00\x00") }, "the name"},
		"ExtEntryLength":     {Ext4, func(i []byte) { put16(i, entry(i, "etc")+4, 0) }, "an entry of a folder has 0 bytes"},
		"ExtEntryTooLong":    {Ext4, func(i []byte) { put16(i, entry(i, "etc")+4, 4000) }, "an entry of a folder has 4000 bytes"},
		"ExtInodeNumber":     {Ext4, func(i []byte) { put32(i, entry(i, "etc"), 1<<30) }, "names inode"},
		"SquashVersion":      {SquashFS, func(i []byte) { put16(i, 28, 3) }, "only squashfs 4"},
		"SquashBlockSize":    {SquashFS, func(i []byte) { put32(i, 12, 1<<31) }, "its blocks have"},
		"SquashCompression":  {SquashFS, func(i []byte) { put16(i, 20, 2) }, "compressed with lzma"},
		"SquashSize":         {SquashFS, func(i []byte) { put64(i, 40, 1<<40) }, "cut off"},
		"SquashNegativeSize": {SquashFS, func(i []byte) { put64(i, 40, 1<<63) }, "cut off"},
		"SquashTables":       {SquashFS, func(i []byte) { put64(i, 64, 1<<62) }, "tables are said to be behind"},
		"SquashRoot":         {SquashFS, func(i []byte) { put64(i, 32, 1<<50) }, "behind its end"},
		"SquashName":         {SquashFS, func(i []byte) { copy(i[bytes.LastIndex(i, []byte("readme")):], "../../") }, `the name "../../"`},
		"SquashBlockLength":  {SquashFS, func(i []byte) { put16(i, int(binary.LittleEndian.Uint64(i[64:])), 0) }, "a block of metadata has 0 bytes"},
		"ISOBlockSize":       {ISO9660, func(i []byte) { put16(i, 16*2048+128, 0) }, "its blocks have 0 bytes"},
		"ISONoTerminator":    {ISO9660, func(i []byte) { copy(i[17*2048:], make([]byte, 6)) }, "does not end"},
		"ISORootOutside":     {ISO9660, func(i []byte) { put32(i, 16*2048+156+2, 1<<30) }, "behind its end"},
		"ISOHugeRoot":        {ISO9660, func(i []byte) { put32(i, 16*2048+156+10, 1<<31) }, "behind its end"},
		"ISOName":            {ISO9660, func(i []byte) { copy(i[find(t, i, "readmePX")-5+5:], "a/b/c/") }, `the name "a/b/c/"`},
		"ISORecordLength":    {ISO9660, func(i []byte) { i[find(t, i, "README.;1")-33] = 20 }, "a record of a folder has 20 bytes"},
		"FATSectors":         {FAT, func(i []byte) { put16(i, 11, 3) }, "its sectors have 3 bytes"},
		"FATNoClusters":      {FAT, func(i []byte) { i[13] = 0 }, "its clusters 0 sectors"},
		"FATNoTable":         {FAT, func(i []byte) { i[16] = 0 }, "cut off"},
		"FATTotal":           {FAT, func(i []byte) { put16(i, 19, 0); put32(i, 32, 1<<31) }, "cut off"},
		"FATShortTable":      {FAT, func(i []byte) { put16(i, 22, 1) }, "table is too short"},
		"FATFolderLoop": {FAT, func(i []byte) {
			cluster := int(binary.LittleEndian.Uint16(i[find(t, i, "ETC     ")+26:]))
			for at := range 512 / 32 { // else the folder ends before the loop is met
				i[dataOf(i, cluster)+at*32] = markDeletedFAT
			}
			put16(i, tableOf(i)+cluster*2, uint16(cluster))
		}, "do not end"},
		"FATClusterOutside": {FAT, func(i []byte) { put16(i, find(t, i, "README     ")+26, 0xfff0) }, "a file names cluster"},
		"FATFileTooShort":   {FAT, func(i []byte) { put32(i, find(t, i, "README     ")+28, 1<<31) }, "fewer clusters than bytes"},
		"FATFolderIsRoot":   {FAT, func(i []byte) { put16(i, find(t, i, "ETC     ")+26, 0) }, "has no clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			image := bytes.Clone(images[tc.kind])
			tc.edit(image)
			err := survive(t, image)
			if !errors.Is(err, volume.ErrMalformed) && !errors.Is(err, volume.ErrUnsupported) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v\nwant %q", err, tc.want)
			}
		})
	}
}

const markDeletedFAT = 0xe5

func tableOf(image []byte) int { return int(binary.LittleEndian.Uint16(image[14:])) * 512 }

func dataOf(image []byte, cluster int) int {
	return tableOf(image) + int(binary.LittleEndian.Uint16(image[22:]))*512 + int(binary.LittleEndian.Uint16(image[17:]))*32 + (cluster-2)*512
}

func TestFieldsOfAnISOThatLeadInACircle(t *testing.T) {
	dir := small(t)
	if err := os.Symlink(strings.Repeat("x", 120)+"/"+strings.Repeat("y", 120), dir+"/"+strings.Repeat("long", 40)); err != nil {
		t.Fatal(err)
	}
	iso := imagePath(t)
	run(t, "genisoimage", "-quiet", "-R", "-no-pad", "-o", iso, dir)
	image := read(t, iso)
	if err := survive(t, image); err != nil {
		t.Fatal(err)
	}
	for at := 0; ; {
		next := bytes.Index(image[at:], []byte("CE\x1c\x01"))
		if next < 0 {
			break
		}
		at += next
		put32(image, at+4, uint32(at/2048))
		put32(image, at+12, uint32(at%2048))
		put32(image, at+20, 28)
		at++
	}
	if err := survive(t, image); !errors.Is(err, volume.ErrMalformed) || !strings.Contains(err.Error(), "do not end") {
		t.Errorf("got %v", err)
	}
}

func TestLinksInACircleEnd(t *testing.T) {
	dir := small(t)
	for name, target := range map[string]string{"a": "b", "b": "a", "self": "self", "out": "../../etc", "deep": "deep/deep"} {
		if err := os.Symlink(target, dir+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	for kind, path := range map[Kind]string{Ext4: ext(t, dir, 1<<20), SquashFS: squash(t, dir)} {
		view, _ := openImage(t, path)
		for name, want := range map[string]string{"a": "in a circle", "self/x": "in a circle", "deep": "in a circle", "out/os-release": "leads out of the image"} {
			if _, err := view.Open(name); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s: %v", kind, name, err)
			}
		}
	}
}

// Whatever is wrong with an image, reading it ends soon, in little memory,
// without a panic.
func TestBrokenImagesDoNoHarm(t *testing.T) {
	for kind, whole := range victims(t) {
		random := rand.New(rand.NewPCG(7, 7))
		longest := time.Duration(0)
		for i := range 400 {
			image := bytes.Clone(whole)
			switch {
			case i%10 == 0:
				image = image[:random.IntN(len(image))]
			default:
				for range 1 + random.IntN(20) {
					at := random.IntN(len(image))
					if i%2 == 0 { // where most of the structure is
						at = random.IntN(min(len(image), 8<<10))
					}
					image[at] = []byte{0, 0xff, 0x80, byte(random.Uint32())}[random.IntN(4)]
				}
			}
			begun := time.Now()
			err := survive(t, image)
			longest = max(longest, time.Since(begun))
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: an error of more than a line: %v", kind, err)
			}
		}
		if longest > 10*time.Second {
			t.Errorf("%s: reading a broken image took %v", kind, longest)
		}
	}
}

func FuzzExt4(f *testing.F)     { fuzzImages(f, Ext4) }
func FuzzSquashFS(f *testing.F) { fuzzImages(f, SquashFS) }
func FuzzISO9660(f *testing.F)  { fuzzImages(f, ISO9660) }
func FuzzFAT(f *testing.F)      { fuzzImages(f, FAT) }

// fuzzImages changes bytes of an image at a place of its own choice.
func fuzzImages(f *testing.F, kind Kind) {
	whole := victims(f)[kind]
	f.Add(uint32(1024), []byte{0xff, 0xff}, uint32(len(whole)))
	f.Add(uint32(2048), []byte("etc"), uint32(len(whole)))
	f.Add(uint32(16*2048), bytes.Repeat([]byte{0xff}, 200), uint32(len(whole)))
	f.Add(uint32(96), []byte{}, uint32(len(whole)/2))
	f.Fuzz(func(t *testing.T, at uint32, bytesThere []byte, size uint32) {
		image := bytes.Clone(whole[:min(int(size), len(whole))])
		if int(at) < len(image) {
			copy(image[at:], bytesThere)
		}
		_ = survive(t, image)
	})
}

// FuzzDisk looks at partition tables.
func FuzzDisk(f *testing.F) {
	table := make([]byte, 8192)
	table[510], table[511], table[bootTable+4] = 0x55, 0xaa, 5
	put32(table, bootTable+8, 1)
	put32(table, bootTable+12, 10)
	f.Add(table)
	copy(table[512:], gptMagic)
	put32(table, 512+80, 4)
	put32(table, 512+84, 128)
	f.Add(table)
	f.Fuzz(func(t *testing.T, image []byte) { _ = survive(t, image) })
}
