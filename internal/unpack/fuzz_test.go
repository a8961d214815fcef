// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"bytes"
	"errors"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
)

var fuzzLimits = Limits{CompressedBytes: 1 << 20, UnpackedBytes: 1 << 22, FileBytes: 1 << 20, Files: 500, PathBytes: 300, PathDepth: 20, Ratio: 100}

func fuzzSeeds(f *testing.F) {
	f.Helper()
	seeds := [][]byte{
		tarOf(f, dir("a/"), reg("a/b", "text"), sym("a/l", "b"), hard("h", "a/b"), reg("a/.wh.x", ""), reg(".wh..wh..opq", "")),
		tarOf(f, reg("../evil", "x")), tarOf(f, sym("l", "../../x")), tarOf(f, hard("h", "/etc/passwd")),
		tarOf(f, special(tar.TypeChar, "dev")), tarOf(f, reg(strings.Repeat("long/", 60)+"x", "x")),
		raw("a", nil, func(b []byte) { copy(b[124:], "-0000000001\x00") }),
		paxed("16 path=../evil\n", raw("a", nil, nil)),
		paxed("22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n", raw("a", []byte("x"), nil)),
		tarOf(f, reg("a", "x"), reg("a/b", "y")), tarOf(f, sym("a", "b"), reg("a/c", "y")),
	}
	for _, seed := range seeds {
		f.Add(seed, uint8(0))
		f.Add(gzipped(f, seed), uint8(1))
		f.Add(zstded(f, seed), uint8(2))
		if _, err := exec.LookPath("xz"); err == nil {
			f.Add(xzed(f, seed), uint8(3))
		}
		if _, err := exec.LookPath("bzip2"); err == nil {
			f.Add(bzipped2(f, seed), uint8(4))
		}
	}
}

// FuzzUnpack looks for archives that panic, hang, pass a limit, or give
// an entry that is not what every reader of entries relies on.
func FuzzUnpack(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte, kind uint8) {
		format := Format{Compression: []Compression{Plain, Gzip, Zstd, Xz, Bzip2}[kind%5], Image: kind/5%2 == 0, Chart: kind/5%3 == 1}
		packed := Packed{Digest: digest.FromBytes(data), Size: int64(len(data))}
		layer, err := Layer(t.Context(), packed, format, bytes.NewReader(data), &memory{}, NewBudget(fuzzLimits))
		if err != nil {
			checkRefusal(t, err, packed)
			return
		}
		if layer.Files() > 500 || layer.Bytes() > 1<<22 {
			t.Fatalf("over the limits: %d files, %d bytes", layer.Files(), layer.Bytes())
		}
		for _, e := range layer.Entries {
			checkEntry(t, e, format)
		}
		if entries, err := content.Overlay([]content.Layer{layer, layer}); err == nil {
			checkTree(t, entries)
		}
	})
}

func checkRefusal(t *testing.T, err error, packed Packed) {
	t.Helper()
	_, unsafe := errors.AsType[*content.UnsafeError](err)
	if !unsafe && !isLimit(err) || !strings.Contains(err.Error(), string(packed.Digest)) || strings.ContainsAny(err.Error(), "\n\r\x1b") {
		t.Fatalf("an error that is not classified, does not name the layer, or has more than a line: %v", err)
	}
}

func checkEntry(t *testing.T, e content.Entry, format Format) {
	t.Helper()
	if err := content.CheckPath(e.Path); err != nil && (e.Kind != content.Opaque || e.Path != ".") {
		t.Fatalf("path %q: %v", e.Path, err)
	}
	if e.Kind == content.Link {
		joined := path.Join(path.Dir(e.Path), e.Target)
		if !path.IsAbs(e.Target) && (joined == ".." || strings.HasPrefix(joined, "../")) || path.IsAbs(e.Target) && !format.Image {
			t.Fatalf("link %q -> %q leaves the tree", e.Path, e.Target)
		}
	}
}

// checkTree makes sure that no entry stands below a file or a link.
func checkTree(t *testing.T, entries []content.Entry) {
	t.Helper()
	dirs := map[string]bool{".": true}
	for i, e := range entries {
		if i > 0 && entries[i-1].Path == e.Path {
			t.Fatalf("%q is there twice", e.Path)
		}
		if !dirs[path.Dir(e.Path)] {
			t.Fatalf("%q is not in a folder", e.Path)
		}
		if e.Kind == content.Dir {
			dirs[e.Path] = true
		}
	}
}
