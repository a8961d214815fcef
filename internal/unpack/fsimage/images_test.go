// SPDX-License-Identifier: Apache-2.0

package fsimage

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// packages are what .ci/run installs for these tests.
const packages = "e2fsprogs squashfs-tools genisoimage xorriso dosfstools mtools fdisk"

// sample is files of all kinds in a folder. Filesystems without links get none.
func sample(t testing.TB, links bool) string {
	t.Helper()
	dir := t.TempDir()
	noise := make([]byte, 1<<20+123)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise) // never fails
	write := func(name string, data []byte) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("etc/os-release", []byte("NAME=sample\n"))
	write("etc/passwd", bytes.Repeat([]byte("nobody:x:1:1\n"), 1000))
	write("empty", nil)
	write("big/noise.bin", noise)
	write("big/zeros.bin", make([]byte, 1<<20))
	write("big/half.bin", append(bytes.Repeat([]byte{0}, 1<<19), noise[:1<<19+7]...))
	pieces := bytes.Clone(noise[:1<<20]) // with a hole in every second block of 1 KiB
	for at := 0; at < len(pieces); at += 2048 {
		clear(pieces[at : at+1024])
	}
	write("big/pieces.bin", pieces)
	write("names/a long name with spaces and more than twenty six letters.txt", []byte("long"))
	write("names/größe-ü.txt", []byte("unicode"))
	write("names/UPPER.TXT", []byte("upper"))
	write("deep/1/2/3/4/5/6/7/8/9/10/file", []byte("deep"))
	many := 700
	if !links {
		many = 200 // mcopy takes the square of it
	}
	for i := range many {
		write(fmt.Sprintf("many/file-%04d.txt", i), fmt.Appendf(nil, "%d\n", i))
	}
	if err := os.Mkdir(filepath.Join(dir, "void"), 0o755); err != nil {
		t.Fatal(err)
	}
	if links {
		link := func(target, name string) {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		link("etc/passwd", "relative")
		link("/etc/os-release", "absolute")
		link("../../../../deep/1/2/3/4/5/6/7/8/9/10/../10/../10/../10/../10/../10/file", "deep/1/2/3/long")
		link(strings.Repeat("x", 200), "dangling")
		link("..", "etc/up")
		if err := errors.Join(os.Chmod(filepath.Join(dir, "empty"), 0o755), os.Link(filepath.Join(dir, "empty"), filepath.Join(dir, "hard"))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// describe gives a line for each name in a filesystem. Modes are left out where
// the filesystem has none.
func describe(t testing.TB, files fs.FS, modes bool) map[string]string {
	t.Helper()
	lines := map[string]string{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == "lost+found" {
			return fs.SkipDir
		}
		about, err := entry.Info()
		if err != nil {
			return err
		}
		if entry.Type() != about.Mode().Type() || entry.Name() != about.Name() {
			t.Errorf("%s: the entry says %v %q, the file %v %q", name, entry.Type(), entry.Name(), about.Mode().Type(), about.Name())
		}
		line := about.Mode().Type().String()
		if modes && name != "." && about.Mode().Type() != fs.ModeSymlink {
			line = about.Mode().String()
		}
		switch {
		case about.Mode().IsRegular():
			data, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %d %x", about.Size(), sha256.Sum256(data))
		case about.Mode().Type() == fs.ModeSymlink:
			target, err := fs.ReadLink(files, name)
			if err != nil {
				return err
			}
			line += " " + target
		}
		lines[name] = line
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// run makes an image with a tool.
func run(t testing.TB, tool string, flags ...string) {
	t.Helper()
	path, err := exec.LookPath(tool)
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if err != nil {
			path, err = exec.LookPath(filepath.Join(dir, tool))
		}
	}
	if err != nil {
		t.Skipf("SKIPPED: %s is not installed; apt-get install %s", tool, packages)
	}
	if out, err := exec.Command(path, flags...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", tool, flags, err, out)
	}
}

func imagePath(t testing.TB) string { return filepath.Join(t.TempDir(), "image") }

func ext(t testing.TB, dir string, size int64, flags ...string) string {
	t.Helper()
	image := imagePath(t)
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size)); err != nil {
		t.Fatal(err)
	}
	run(t, "mke2fs", append(append([]string{"-q", "-F", "-d", dir}, flags...), image)...)
	return image
}

func squash(t testing.TB, dir string, flags ...string) string {
	t.Helper()
	image := imagePath(t)
	run(t, "mksquashfs", append([]string{dir, image, "-quiet", "-no-progress", "-all-root"}, flags...)...)
	return image
}

func fatImage(t testing.TB, dir string, size int64, flags ...string) string {
	t.Helper()
	image := imagePath(t)
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size)); err != nil {
		t.Fatal(err)
	}
	run(t, "mkfs.vfat", append(flags, image)...)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	copyFlags := []string{"-i", image, "-s"}
	for _, entry := range entries {
		copyFlags = append(copyFlags, filepath.Join(dir, entry.Name()))
	}
	t.Setenv("LC_ALL", "C.UTF-8") // mcopy wants to know the letters of names
	run(t, "mcopy", append(copyFlags, "::/")...)
	return image
}

// openImage opens an image that lies in a file.
func openImage(t testing.TB, path string) (FS, Kind) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	about, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	view, kind, err := Open(file, about.Size())
	if err != nil {
		t.Fatal(err)
	}
	return view, kind
}

func checkImage(t *testing.T, image string, kind Kind, want map[string]string, modes bool) {
	t.Helper()
	view, got := openImage(t, image)
	if got != kind {
		t.Errorf("it is taken for %q", got)
	}
	if diff := gocmp.Diff(want, describe(t, view, modes)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestExtImagesReadAsTheyWereMade(t *testing.T) {
	dir := sample(t, true)
	want := describe(t, os.DirFS(dir), true)
	sizes := map[string]int64{"BigBlocks": 512 << 20}
	for name, flags := range map[string][]string{
		"Ext2":           {"-t", "ext2", "-b", "1024"},
		"Ext3":           {"-t", "ext3", "-b", "2048"},
		"Ext4":           {"-t", "ext4"},
		"Ext4SmallBlock": {"-t", "ext4", "-b", "1024", "-I", "128"},
		"64Bit":          {"-t", "ext4", "-O", "64bit,metadata_csum"},
		"32Bit":          {"-t", "ext4", "-O", "^64bit,^metadata_csum"},
		"InlineData":     {"-t", "ext4", "-O", "inline_data", "-I", "512"},
		"NoExtents":      {"-t", "ext4", "-O", "^extents,^64bit"},
		"NoFileTypes":    {"-t", "ext4", "-O", "^filetype"},
		"MetaGroups":     {"-t", "ext4", "-b", "1024", "-O", "meta_bg,^resize_inode"},
		"MetaGroupsAll":  {"-t", "ext2", "-b", "1024", "-O", "meta_bg,^resize_inode,^sparse_super"},
		"Sparse2":        {"-t", "ext4", "-b", "1024", "-O", "sparse_super2,meta_bg,^resize_inode"},
		"BigAlloc":       {"-t", "ext4", "-O", "bigalloc", "-C", "16384"},
		"BigBlocks":      {"-t", "ext4", "-b", "65536"},
		"CaseFold":       {"-t", "ext4", "-O", "casefold"},
	} {
		t.Run(name, func(t *testing.T) {
			checkImage(t, ext(t, dir, cmp.Or(sizes[name], 64<<20), flags...), Ext4, want, true)
		})
	}
}

func TestSquashFSImagesReadAsTheyWereMade(t *testing.T) {
	dir := sample(t, true)
	want := describe(t, os.DirFS(dir), true)
	for name, flags := range map[string][]string{
		"Gzip":          {"-comp", "gzip"},
		"LZO":           {"-comp", "lzo"},
		"LZOFast":       {"-comp", "lzo", "-Xalgorithm", "lzo1x_1"},
		"XZ":            {"-comp", "xz"},
		"XZFilters":     {"-comp", "xz", "-Xbcj", "x86,arm", "-b", "1M"},
		"LZ4":           {"-comp", "lz4"},
		"Zstd":          {"-comp", "zstd"},
		"ZstdLevel22":   {"-comp", "zstd", "-Xcompression-level", "22", "-b", "1M"},
		"SmallBlocks":   {"-comp", "gzip", "-b", "4096"},
		"NotCompressed": {"-noI", "-noD", "-noF", "-noX"},
		"NoFragments":   {"-no-fragments"},
		"AllFragments":  {"-always-use-fragments"},
		"NoExportTable": {"-no-exports", "-no-xattrs"},
		"NoDuplicates":  {"-no-duplicates"},
		"NoPadding":     {"-nopad"},
	} {
		t.Run(name, func(t *testing.T) { checkImage(t, squash(t, dir, flags...), SquashFS, want, true) })
	}
}

func TestISOImagesReadAsTheyWereMade(t *testing.T) {
	dir := sample(t, true)
	want := describe(t, os.DirFS(dir), true)
	delete(want, "dangling") // its target has a part that is longer than a field, and mkisofs drops it from Joliet
	for name, tc := range map[string]struct {
		tool  string
		flags []string
	}{
		"RockRidge":        {"genisoimage", []string{"-R", "-D"}},
		"RockRidgeMoved":   {"genisoimage", []string{"-R"}},
		"RockRidgeJoliet":  {"genisoimage", []string{"-R", "-J", "-D", "-joliet-long"}},
		"XorrisoRockRidge": {"xorriso", []string{"-as", "mkisofs", "-R"}},
		"XorrisoJoliet":    {"xorriso", []string{"-as", "mkisofs", "-R", "-J", "-joliet-long"}},
	} {
		t.Run(name, func(t *testing.T) {
			image := imagePath(t)
			run(t, tc.tool, append(append(tc.flags, "-quiet", "-o", image), dir)...)
			view, kind := openImage(t, image)
			got := describe(t, view, true)
			delete(got, "dangling")
			delete(got, "rr_moved")
			if tc.tool == "genisoimage" { // it turns a file with two names into two files
				got["hard"] = got["empty"]
			}
			if kind != ISO9660 {
				t.Errorf("it is taken for %q", kind)
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestISOImagesWithoutRockRidge(t *testing.T) {
	dir := sample(t, false)
	want := describe(t, os.DirFS(dir), false)
	image := imagePath(t)
	run(t, "genisoimage", "-quiet", "-J", "-joliet-long", "-D", "-input-charset", "utf-8", "-o", image, dir)
	checkImage(t, image, ISO9660, want, false)

	run(t, "genisoimage", "-quiet", "-D", "-l", "-allow-lowercase", "-input-charset", "utf-8", "-o", image, dir)
	view, _ := openImage(t, image)
	for name, text := range map[string]string{"etc/os-release": "", "names/upper.txt": "upper", "deep/1/2/3/4/5/6/7/8/9/10/file": "deep"} {
		data, err := fs.ReadFile(view, name)
		if text == "" && err != nil { // "-" is no letter of plain names
			data, err = fs.ReadFile(view, strings.ReplaceAll(name, "-", "_"))
			text = "NAME=sample\n"
		}
		if err != nil || string(data) != text {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

func TestFATImagesReadAsTheyWereMade(t *testing.T) {
	dir := sample(t, false)
	want := describe(t, os.DirFS(dir), false)
	for name, tc := range map[string]struct {
		size  int64
		flags []string
	}{
		"FAT12": {24 << 20, []string{"-F", "12", "-s", "16"}},
		"FAT16": {64 << 20, []string{"-F", "16"}},
		"FAT32": {64 << 20, []string{"-F", "32", "-s", "1"}},
	} {
		t.Run(name, func(t *testing.T) { checkImage(t, fatImage(t, dir, tc.size, tc.flags...), FAT, want, false) })
	}
}

// A file is read from anywhere, in any pieces, as its bytes are.
func TestFilesAreReadFromAnywhere(t *testing.T) {
	dir := sample(t, false)
	want, err := os.ReadFile(filepath.Join(dir, "big/half.bin"))
	if err != nil {
		t.Fatal(err)
	}
	for name, image := range map[string]string{
		"Ext4": ext(t, dir, 64<<20), "Ext2": ext(t, dir, 64<<20, "-t", "ext2", "-b", "1024"), "SquashFS": squash(t, dir), "FAT": fatImage(t, dir, 64<<20),
	} {
		view, _ := openImage(t, image)
		file, err := view.Open("big/half.bin")
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			offset := random.Int64N(int64(len(want)) + 10)
			got := make([]byte, random.IntN(200_000))
			n, err := file.(io.ReaderAt).ReadAt(got, offset)
			left := want[min(offset, int64(len(want))):]
			if !bytes.Equal(got[:n], left[:min(len(left), len(got))]) || err != nil && (err != io.EOF || n == len(got) && n > 0) || err == nil && n < len(got) {
				t.Fatalf("%s: %d of %d bytes at %d, %v", name, n, len(got), offset, err)
			}
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		if _, err := file.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: reading what is closed: %v", name, err)
		}
	}
}
