// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func textFile(path, text string) Entry {
	return Entry{Path: path, Kind: File, Size: int64(len(text)), Sum: Sum{text[0]}}
}

func part(dir string, layers ...[]Entry) Part {
	p := Part{Path: dir}
	for _, entries := range layers {
		p.Layers = append(p.Layers, Layer{Entries: entries})
	}
	return p
}

func TestPartsStandWhereTheyAreMounted(t *testing.T) {
	a, err := Assemble([]Part{
		part("", []Entry{textFile("base.yaml", "1"), textFile("both.yaml", "1"), textFile("same.yaml", "s")}),
		part("", []Entry{textFile("both.yaml", "2"), textFile("same.yaml", "s"), {Path: "gone.wh", Kind: Whiteout}, {Path: "base.yaml", Kind: Whiteout}}),
		part("deep/down", []Entry{
			textFile("x", "3"), {Path: "in", Kind: Link, Target: "x"}, {Path: "abs", Kind: Link, Target: "/x"},
			{Path: "hard", Kind: HardLink, Target: "x"},
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := Overlay(a.layers)
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{
		textFile("base.yaml", "1"), // a whiteout of another part does not reach it
		textFile("both.yaml", "2"),
		{Path: "deep", Kind: Dir},
		{Path: "deep/down", Kind: Dir},
		{Path: "deep/down/abs", Kind: Link, Target: "/deep/down/x"},
		textFile("deep/down/hard", "3"),
		{Path: "deep/down/in", Kind: Link, Target: "x"},
		textFile("deep/down/x", "3"),
		textFile("same.yaml", "s"),
	}
	if diff := cmp.Diff(want, entries); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Conflict{{Path: "both.yaml", Lower: 0, Upper: 1}}, a.Conflicts); diff != "" {
		t.Error(diff)
	}
}

func TestNoPartIsMountedThroughALink(t *testing.T) {
	a, err := Assemble([]Part{
		part("", []Entry{{Path: "etc", Kind: Link, Target: "elsewhere"}}),
		part("etc", []Entry{textFile("passwd", "x")}),
	})
	if err == nil {
		_, err = Overlay(a.layers)
	}
	if _, ok := errors.AsType[*UnsafeError](err); !ok {
		t.Errorf("got %v, want an UnsafeError", err)
	}
}

func TestAnAssemblyIsStoredAndItsLayersAreKept(t *testing.T) {
	d := openStore(t, t.TempDir())
	s, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	one, two := fill(t, s, "one", "f a 1"), fill(t, s, "two", "f a 2")
	assembly, err := Assemble([]Part{{Layers: []Layer{one}}, {Path: "sub", Layers: []Layer{two}}})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := s.PutAssembly(assembly)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Assemble([]Part{{Layers: []Layer{one}}, {Path: "elsewhere", Layers: []Layer{two}}})
	if err != nil {
		t.Fatal(err)
	}
	if second, err := s.PutAssembly(other); err != nil || second.Digest == tree.Digest {
		t.Errorf("the same parts in another place give %v, %v", second, err)
	}
	s.Close()
	if !d.Has(tree.Digest) {
		t.Error("the tree is not there")
	}
}
