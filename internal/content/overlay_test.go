// SPDX-License-Identifier: Apache-2.0

package content

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
)

// layerOf makes a layer of lines such as "f a/b text", "d a", "l a target",
// "h a target", "w a", "o a".
func layerOf(name string, lines ...string) Layer {
	layer := Layer{Key: LayerKey{Digest: digest.FromString(name), Format: "test"}}
	for _, line := range lines {
		kind, rest, _ := strings.Cut(line, " ")
		path, arg, _ := strings.Cut(rest, " ")
		e := Entry{Path: path, Kind: Kind(kind[0])}
		switch e.Kind {
		case File:
			e.Size, e.Sum = int64(len(arg)), sha256.Sum256([]byte(arg))
		case Link, HardLink:
			e.Target = arg
		}
		layer.Entries = append(layer.Entries, e)
	}
	return layer
}

func show(entries []Entry) []string {
	lines := []string{}
	for _, e := range entries {
		switch e.Kind {
		case File:
			lines = append(lines, fmt.Sprintf("f %s %.8s", e.Path, e.Sum))
		case Link:
			lines = append(lines, fmt.Sprintf("l %s %s", e.Path, e.Target))
		default:
			lines = append(lines, fmt.Sprintf("%c %s", e.Kind, e.Path))
		}
	}
	return lines
}

func file(path, text string) string {
	return fmt.Sprintf("f %s %.8s", path, Sum(sha256.Sum256([]byte(text))))
}

func TestOverlay(t *testing.T) {
	for name, tc := range map[string]struct {
		layers []Layer
		want   []string
		err    string
	}{
		"FoldersOfFilesAreListed": {
			layers: []Layer{layerOf("1", "f a/b/c x")},
			want:   []string{"d a", "d a/b", file("a/b/c", "x")},
		},
		"SortedByWholePaths": {
			layers: []Layer{layerOf("1", "f a/b x", "f a-b x", "f a.b x")},
			want:   []string{"d a", file("a-b", "x"), file("a.b", "x"), file("a/b", "x")},
		},
		"LaterLayerWins": {
			layers: []Layer{layerOf("1", "f a old", "f b old"), layerOf("2", "f a new")},
			want:   []string{file("a", "new"), file("b", "old")},
		},
		"LaterEntryOfOneLayerWins": {
			layers: []Layer{layerOf("1", "f a old", "f a new")},
			want:   []string{file("a", "new")},
		},
		"WhiteoutRemovesWhatIsBelow": {
			layers: []Layer{layerOf("1", "f a/b x", "f a/c x"), layerOf("2", "w a/b")},
			want:   []string{"d a", file("a/c", "x")},
		},
		"WhiteoutRemovesFolder": {
			layers: []Layer{layerOf("1", "f a/b x", "f c x"), layerOf("2", "w a")},
			want:   []string{file("c", "x")},
		},
		"WhiteoutSparesItsOwnLayerInAnyOrder": {
			layers: []Layer{layerOf("1", "f a old"), layerOf("2", "f a new", "w a")},
			want:   []string{file("a", "new")},
		},
		"WhiteoutOfNothing": {
			layers: []Layer{layerOf("1", "f a x"), layerOf("2", "w b/c", "w a/c")},
			want:   []string{file("a", "x")},
		},
		"OpaqueFolderHidesWhatIsBelow": {
			layers: []Layer{layerOf("1", "f a/b old", "f a/c/d old"), layerOf("2", "f a/e new", "o a")},
			want:   []string{"d a", file("a/e", "new")},
		},
		"OpaqueRoot": {
			layers: []Layer{layerOf("1", "f a old"), layerOf("2", "o .", "f b new")},
			want:   []string{file("b", "new")},
		},
		"WhiteoutIsNotFollowedThroughALink": {
			layers: []Layer{layerOf("1", "f real/x x", "l dir real"), layerOf("2", "w dir/x", "o dir")},
			want:   []string{"l dir real", "d real", file("real/x", "x")},
		},
		"LinkReplacedByLinkInALaterLayer": {
			layers: []Layer{layerOf("1", "l bin/x ../lib/x", "f lib/x x"), layerOf("2", "l bin/x ../lib/y")},
			want:   []string{"d bin", "l bin/x ../lib/y", "d lib", file("lib/x", "x")},
		},
		"LinkReplacedByFileIsNotWrittenThrough": {
			layers: []Layer{layerOf("1", "f a keep", "l b a"), layerOf("2", "f b new")},
			want:   []string{file("a", "keep"), file("b", "new")},
		},
		"LinkReplacedByFolder": {
			layers: []Layer{layerOf("1", "f a/x keep", "l b a"), layerOf("2", "d b", "f b/x new")},
			want:   []string{"d a", file("a/x", "keep"), "d b", file("b/x", "new")},
		},
		"EntryBelowALinkOfALowerLayer": {
			layers: []Layer{layerOf("1", "l b a"), layerOf("2", "f b/x new")},
			err:    `layer ` + string(digest.FromString("2")) + `: entry "b/x": it would be written through the link "b" -> "a"`,
		},
		"EntryBelowALinkOfTheSameLayer": {
			layers: []Layer{layerOf("1", "d a", "l a/b /etc", "f a/b/passwd x")},
			err:    `entry "a/b/passwd": it would be written through the link "a/b" -> "/etc"`,
		},
		"FileBecomesFolderInALaterLayer": {
			layers: []Layer{layerOf("1", "f a x"), layerOf("2", "f a/b y")},
			want:   []string{"d a", file("a/b", "y")},
		},
		"FolderBecomesFileInALaterLayer": {
			layers: []Layer{layerOf("1", "f a/b/c x"), layerOf("2", "f a y")},
			want:   []string{file("a", "y")},
		},
		"FileAndFolderInOneLayer": {
			layers: []Layer{layerOf("1", "f a x", "f a/b y")},
			err:    `entry "a/b": the layer has "a" both as a file and as a folder`,
		},
		"FolderAndFileInOneLayer": {
			layers: []Layer{layerOf("1", "f a/b y", "f a x")},
			err:    `entry "a": the layer has this name both as a folder with entries and as something else`,
		},
		"FolderAndLinkInOneLayer": {
			layers: []Layer{layerOf("1", "f a/b/c y", "l a b")},
			err:    `entry "a": the layer has this name both`,
		},
		"HardLinkIsAnotherNameOfTheFile": {
			layers: []Layer{layerOf("1", "f a x", "h b a"), layerOf("2", "f a y", "h c b")},
			want:   []string{file("a", "y"), file("b", "x"), file("c", "x")},
		},
		"HardLinkToALinkIsThatLink": {
			layers: []Layer{layerOf("1", "l a x", "h b a")},
			want:   []string{"l a x", "l b x"},
		},
		"HardLinkToNothing": {
			layers: []Layer{layerOf("1", "h b a", "f a x")},
			err:    `entry "b": hard link to "a", which is not a file of this layer above the link`,
		},
		"HardLinkToAFolder": {
			layers: []Layer{layerOf("1", "d a", "h b a")},
			err:    `entry "b": hard link to "a"`,
		},
		"HardLinkThroughALink": {
			layers: []Layer{layerOf("1", "f a/x x", "l b a", "h c b/x")},
			err:    `entry "c": hard link to "b/x"`,
		},
		"NoLayers": {want: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Overlay(tc.layers)
			if tc.err != "" {
				var unsafe *UnsafeError
				if !errors.As(err, &unsafe) || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want an UnsafeError with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, show(got)); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverlayDoesNotChangeItsLayers(t *testing.T) {
	layers := []Layer{layerOf("1", "f a x", "h b a"), layerOf("2", "f a y", "h b a")}
	first, err := Overlay(layers)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Overlay(layers)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second run differs:\n%s", diff)
	}
	if layers[0].Entries[1].Path != "b" || layers[1].Entries[1].Kind != HardLink {
		t.Error("a layer was changed")
	}
}
