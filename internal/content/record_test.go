// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
)

func sample() Layer {
	layer := layerOf("sample", "d a", "f a/b text", "f empty", "l c a/b", "h d a/b", "w gone", "o a", "o .")
	layer.Packed = 77
	layer.Entries[1].Exec = true
	layer.Entries = append(layer.Entries, Entry{Path: `sp ace\ü`, Kind: Link, Target: "./x y/../z"})
	return layer
}

func TestRecordsSurviveWritingAndReading(t *testing.T) {
	want := sample()
	var b bytes.Buffer
	if err := writeLayer(&b, want); err != nil {
		t.Fatal(err)
	}
	got, err := readLayer(&b, want.Key)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
	keys := []LayerKey{want.Key, {Digest: digest.FromString("x"), Format: "file a b.yaml"}}
	b.Reset()
	if err := writeRecipe(&b, digest.FromString("tree"), keys); err != nil {
		t.Fatal(err)
	}
	tree, gotKeys, err := readRecipe(&b)
	if err != nil || tree != digest.FromString("tree") {
		t.Fatalf("got %s, %v", tree, err)
	}
	if diff := cmp.Diff(keys, gotKeys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestTornOrChangedRecordsAreNotBelieved(t *testing.T) {
	layer := sample()
	entries, err := Overlay([]Layer{layer})
	if err != nil {
		t.Fatal(err)
	}
	tree := DigestOf(entries)
	keys := []LayerKey{layer.Key}
	read := map[string]func([]byte) error{
		"Layer":  func(b []byte) error { _, err := readLayer(bytes.NewReader(b), layer.Key); return err },
		"Recipe": func(b []byte) error { _, _, err := readRecipe(bytes.NewReader(b)); return err },
		"Tree": func(b []byte) error {
			return readTree(bytes.NewReader(b), tree, newBuilder().add)
		},
	}
	write := map[string]func(*bytes.Buffer) error{
		"Layer":  func(b *bytes.Buffer) error { return writeLayer(b, layer) },
		"Recipe": func(b *bytes.Buffer) error { return writeRecipe(b, tree, keys) },
		"Tree":   func(b *bytes.Buffer) error { _, err := writeTree(b, entries); return err },
	}
	for name := range read {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := write[name](&b); err != nil {
				t.Fatal(err)
			}
			whole := b.Bytes()
			if err := read[name](whole); err != nil {
				t.Fatal(err)
			}
			for i := range whole {
				if read[name](whole[:i]) == nil {
					t.Errorf("cut after %d of %d bytes: believed", i, len(whole))
				}
				changed := bytes.Clone(whole)
				changed[i] ^= 1
				if read[name](changed) == nil {
					t.Errorf("byte %d changed: believed", i)
				}
			}
			if read[name](append(bytes.Clone(whole), whole...)) == nil {
				t.Error("doubled: believed")
			}
		})
	}
}

func TestARecordUnderAnotherKeyIsNotBelieved(t *testing.T) {
	layer := sample()
	var b bytes.Buffer
	if err := writeLayer(&b, layer); err != nil {
		t.Fatal(err)
	}
	if _, err := readLayer(&b, LayerKey{Digest: layer.Key.Digest, Format: "other"}); err == nil {
		t.Error("believed")
	}
}

// FuzzReadTree looks for listings that upset the reader, or that have the right
// digest and still do not come out as they went in.
func FuzzReadTree(f *testing.F) {
	entries, err := Overlay([]Layer{sample()})
	if err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := writeTree(&b, entries); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(treeHeader + "\nf\t\t\t\n"))
	f.Add([]byte(treeHeader + "\nl\ta\nd\t../x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got []Entry
		build := newBuilder()
		err := readTree(bytes.NewReader(data), digest.FromBytes(data), func(e Entry) error {
			got = append(got, e)
			return build.add(e)
		})
		if err != nil {
			return
		}
		var again bytes.Buffer
		if _, err := writeTree(&again, got); err != nil {
			t.Fatal(err)
		}
		var canonical bool
		if canonical = bytes.Equal(again.Bytes(), data); canonical {
			return
		}
		// Upper-case digits and signs are the only freedom that a reader has.
		if err := readTree(&again, DigestOf(got), func(Entry) error { return nil }); err != nil {
			t.Fatalf("what was written is not readable: %v", errors.Unwrap(err))
		}
	})
}
