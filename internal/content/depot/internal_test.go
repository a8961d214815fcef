// SPDX-License-Identifier: Apache-2.0

package depot

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/content"
)

func TestPacksAreTheSameWhoeverMakesThem(t *testing.T) {
	files := map[content.Sum]int64{}
	for i := range byte(200) {
		files[sha256.Sum256([]byte{i})] = int64(i) * 30_000
	}
	first := packsOf(files)
	var all []file
	for _, p := range first {
		var size int64
		for _, f := range p.files {
			size += f.size
		}
		if size > packSize && len(p.files) > 1 || len(p.files) == 0 {
			t.Errorf("a pack of %d files has %d bytes", len(p.files), size)
		}
		if slices.ContainsFunc(p.files, func(f file) bool { return f.size >= largeFile }) && len(p.files) > 1 {
			t.Error("a large file is not alone")
		}
		all = append(all, p.files...)
	}
	if len(all) != len(files) {
		t.Errorf("%d of %d files are in packs", len(all), len(files))
	}
	for range 5 {
		if diff := cmp.Diff(first, packsOf(files), cmp.AllowUnexported(pack{}, file{})); diff != "" {
			t.Fatal(diff)
		}
	}
	if got := packsOf(nil); len(got) > 0 {
		t.Errorf("no files are %d packs", len(got))
	}
}

func FuzzReadHead(f *testing.F) {
	whole := head{packs: []string{"packs/ab", "packs/cd"}, layers: []string{"layers/0"}}
	f.Add(whole.encode(treeHeader))
	f.Add(append(whole.encode(treeHeader), "and more\n"...))
	f.Add([]byte(treeHeader + "\nname\t../x\n"))
	f.Add([]byte(strings.Repeat("x", 100_000)))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := readHead(bufio.NewReader(bytes.NewReader(data)), treeHeader)
		if err != nil {
			return
		}
		again, err := readHead(bufio.NewReader(bytes.NewReader(h.encode(treeHeader))), treeHeader)
		if diff := cmp.Diff(h, again, cmp.AllowUnexported(head{})); err != nil || diff != "" {
			t.Errorf("%v: %s", err, diff)
		}
	})
}

func TestEveryChangeOfAHeadIsFound(t *testing.T) {
	whole := head{packs: []string{"packs/ab"}, layers: []string{"layers/0"}}.encode(layerHeader)
	for i := range whole {
		changed := slices.Clone(whole)
		changed[i] ^= 1
		if _, err := readHead(bufio.NewReader(bytes.NewReader(changed)), layerHeader); err == nil {
			t.Errorf("byte %d: %q is taken", i, changed)
		}
		if _, err := readHead(bufio.NewReader(bytes.NewReader(whole[:i])), layerHeader); err == nil {
			t.Errorf("%q is taken", whole[:i])
		}
	}
}

func FuzzReadIndex(f *testing.F) {
	p := newPack([]file{{sha256.Sum256(nil), 0}, {sha256.Sum256([]byte("x")), 1}})
	f.Add([]byte(packHeader+"\n"+string(encodeIndex(p.files))+"\n"), p.name)
	f.Add([]byte(packHeader+"\n\n"), newPack(nil).name)
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		files, err := readIndex(bufio.NewReader(bytes.NewReader(data)), name)
		if err == nil && newPack(files).name != name {
			t.Errorf("%d files are taken for those of %q", len(files), name)
		}
	})
}
