// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"path"
	"strings"
)

// Overlay lays layers over one another, the lowest first, and gives the entries
// of the tree that one sees, sorted by path, with every folder listed. Later
// entries win. Nothing is ever written through a link: a layer that has an
// entry below a name that is a link is refused with an *UnsafeError.
//
// Whiteouts act on lower layers only, wherever in the layer they stand.
func Overlay(layers []Layer) ([]Entry, error) {
	root := &place{children: map[string]*place{}}
	count := 0
	for i := range layers {
		o := overlay{root: root, layer: &layers[i], number: i + 1}
		if err := o.apply(); err != nil {
			return nil, err
		}
		count += len(layers[i].Entries)
	}
	entries := root.list("", make([]Entry, 0, count))
	Sort(entries)
	return entries, nil
}

// place is one name of the tree that is being built. It is a folder if
// children is not nil.
type place struct {
	entry    *Entry // nil for a folder
	layer    int    // number of the layer that it comes from, from 1
	children map[string]*place
}

func (p *place) isDir() bool { return p.children != nil }

func (p *place) list(prefix string, entries []Entry) []Entry {
	for name, child := range p.children {
		full := prefix + name
		if !child.isDir() {
			e := *child.entry
			e.Path = full
			entries = append(entries, e)
			continue
		}
		entries = append(entries, Entry{Path: full, Kind: Dir})
		entries = child.list(full+"/", entries)
	}
	return entries
}

type overlay struct {
	root   *place
	layer  *Layer
	number int
}

func (o *overlay) apply() error {
	for i := range o.layer.Entries {
		o.remove(&o.layer.Entries[i])
	}
	for i := range o.layer.Entries {
		e := &o.layer.Entries[i]
		if e.Kind == Whiteout || e.Kind == Opaque {
			continue
		}
		if problem := o.add(e); problem != "" {
			return &UnsafeError{Layer: string(o.layer.Key.Digest), Entry: e.Path, Problem: problem}
		}
	}
	return nil
}

// remove acts on a whiteout or an opaque mark. What is not there, or only
// behind a link, needs no removing.
func (o *overlay) remove(e *Entry) {
	switch e.Kind {
	case Whiteout:
		if dir := o.find(path.Dir(e.Path)); dir != nil && dir.isDir() {
			delete(dir.children, path.Base(e.Path))
		}
	case Opaque:
		if dir := o.find(e.Path); dir != nil && dir.isDir() {
			clear(dir.children)
		}
	}
}

// find follows no links.
func (o *overlay) find(name string) *place {
	at := o.root
	if name == "." {
		return at
	}
	for part := range strings.SplitSeq(name, "/") {
		if at = at.children[part]; at == nil {
			return nil
		}
	}
	return at
}

// add puts an entry in its place. It gives a problem, or "".
func (o *overlay) add(e *Entry) string {
	dir, problem := o.folder(path.Dir(e.Path))
	if problem != "" {
		return problem
	}
	name := path.Base(e.Path)
	old := dir.children[name]
	if e.Kind == Dir {
		if old == nil || !old.isDir() {
			dir.children[name] = &place{layer: o.number, children: map[string]*place{}}
		}
		return ""
	}
	if old != nil && o.holdsOwn(old) {
		return "the layer has this name both as a folder with entries and as something else"
	}
	if e.Kind != HardLink {
		dir.children[name] = &place{entry: e, layer: o.number}
		return ""
	}
	target := o.find(e.Target)
	if target == nil || target.isDir() {
		return fmt.Sprintf("hard link to %q, which is not a file of this layer above the link, nor of a lower layer", e.Target)
	}
	dir.children[name] = &place{entry: target.entry, layer: o.number}
	return ""
}

// folder finds or makes the folder that an entry stands in.
func (o *overlay) folder(name string) (*place, string) {
	at := o.root
	if name == "." {
		return at, ""
	}
	for i, part := range pathParts(name) {
		child := at.children[part]
		if child != nil && !child.isDir() {
			if child.entry.Kind == Link {
				return nil, fmt.Sprintf("it would be written through the link %q -> %q", name[:i+len(part)], child.entry.Target)
			}
			if child.layer == o.number {
				return nil, fmt.Sprintf("the layer has %q both as a file and as a folder", name[:i+len(part)])
			}
			child = nil
		}
		if child == nil {
			child = &place{layer: o.number, children: map[string]*place{}}
			at.children[part] = child
		}
		at = child
	}
	return at, ""
}

// pathParts gives the parts of a path with the offset at which each begins.
func pathParts(name string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		start := 0
		for part := range strings.SplitSeq(name, "/") {
			if !yield(start, part) {
				return
			}
			start += len(part) + 1
		}
	}
}

// holdsOwn tells whether a folder has entries of the layer that is being
// applied: then this layer says two things about one name.
func (o *overlay) holdsOwn(p *place) bool {
	for _, child := range p.children {
		if child.layer == o.number || o.holdsOwn(child) {
			return true
		}
	}
	return false
}
