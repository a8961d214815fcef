// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"path"
)

// Part is the content of one source and the folder in which it stands.
type Part struct {
	Path   string  // passes CheckPath, or "" for the root
	Layers []Layer // the lowest first
}

// Conflict is a name that several parts have.
type Conflict struct {
	Path  string
	Lower int // index of the part whose entry is hidden
	Upper int // index of the part whose entry one sees
}

// Assembly is what several parts give together.
type Assembly struct {
	how       string  // where the parts stand and which layers are whose
	layers    []Layer // each part laid flat and put in its place
	keys      []LayerKey
	Conflicts []Conflict // sorted by part, then path
}

// Assemble lays the layers of each part over one another, and then the parts in
// their places, later ones over earlier ones. Whiteouts act within their part.
// A folder that several parts have is no conflict; a file or link is, unless
// both are the same.
func Assemble(parts []Part) (Assembly, error) {
	var a Assembly
	seen := map[string]seenEntry{}
	for i, part := range parts {
		entries, err := Overlay(part.Layers)
		if err != nil {
			return Assembly{}, err
		}
		mount(entries, part.Path)
		a.Conflicts = append(a.Conflicts, conflicts(seen, entries, i)...)
		flat := Layer{Key: LayerKey{Digest: DigestOf(entries), Format: "part"}, Entries: entries}
		a.layers = append(a.layers, flat)
		a.how += fmt.Sprintf("%d layers at %q\n", len(part.Layers), part.Path)
		for _, layer := range part.Layers {
			a.keys = append(a.keys, layer.Key)
		}
	}
	return a, nil
}

// mount moves entries of a tree into a folder. An absolute link begins at the
// root of what it came with.
func mount(entries []Entry, dir string) {
	if dir == "" {
		return
	}
	for i := range entries {
		e := &entries[i]
		e.Path = path.Join(dir, e.Path)
		if e.Kind == Link && path.IsAbs(e.Target) {
			e.Target = "/" + dir + e.Target
		}
	}
}

type seenEntry struct {
	entry Entry
	part  int
}

func conflicts(seen map[string]seenEntry, entries []Entry, part int) (found []Conflict) {
	for _, e := range entries {
		lower, ok := seen[e.Path]
		same := ok && (lower.entry == e)
		if ok && !same {
			found = append(found, Conflict{Path: e.Path, Lower: lower.part, Upper: part})
		}
		seen[e.Path] = seenEntry{e, part}
	}
	return found
}

// PutAssembly stores what parts give together. Their layers come from this
// session's Layer or PutLayer.
func (s *Session) PutAssembly(a Assembly) (Tree, error) {
	entries, err := Overlay(a.layers)
	if err != nil {
		return Tree{}, err
	}
	tree, err := s.putEntries(entries)
	if err == nil {
		err = s.putRecipe(a.how, a.keys, tree.Digest)
	}
	if err != nil {
		return Tree{}, err
	}
	return tree, s.stillWhole(tree)
}
