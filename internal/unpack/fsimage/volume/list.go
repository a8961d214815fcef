// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"
)

// list gives the entries of a folder, sorted, with names that can be shown.
func (f *FS) list(folder Node) ([]Entry, error) {
	f.mu.Lock()
	entries, ok := f.listed[folder.ID]
	f.mu.Unlock()
	if ok {
		return entries, nil
	}
	found, err := guarded(func() ([]Entry, error) { return f.driver.List(folder) })
	if err != nil {
		return nil, err
	}
	if len(found) > MaxEntries {
		return nil, fmt.Errorf("%w: a folder has more than %d entries", ErrUnsupported, MaxEntries)
	}
	for i := range found {
		if err := f.prepare(folder, &found[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(found); i++ {
		if found[i].Name == found[i-1].Name {
			return nil, Malformed("a folder has the name %q twice", found[i].Name)
		}
	}
	f.remember(folder.ID, found)
	return found, nil
}

func (f *FS) prepare(folder Node, entry *Entry) error {
	if entry.Name == "" || entry.Name == "." || entry.Name == ".." || strings.ContainsAny(entry.Name, "/\x00") {
		return Malformed("a folder has the name %q", entry.Name)
	}
	entry.Name = shown(entry.Name)
	name, load := entry.Name, entry.Node
	entry.Node = func() (Node, error) {
		n, err := guarded(load)
		if err == nil && n.Mode.IsDir() {
			err = f.stands(n, place{folder.ID, name})
		}
		if err == nil && n.Size < 0 {
			err = Malformed("%q has a negative size", name)
		}
		return n, err
	}
	return nil
}

// stands makes sure that a folder is found in one place only.
func (f *FS) stands(folder Node, at place) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	root, ok := f.parents[folder.ID]
	switch {
	case ok && root != at:
		return Malformed("the folder %q stands in two places", at.name)
	case folder.ID == at.parent:
		return Malformed("the folder %q is inside itself", at.name)
	case !ok && len(f.parents) >= maxFolders:
		return fmt.Errorf("%w: it has more than %d folders", ErrUnsupported, maxFolders)
	}
	f.parents[folder.ID] = at
	return nil
}

// remember keeps what was listed, for the next name in the same folder.
func (f *FS) remember(folder uint64, entries []Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held+len(entries) > maxRemembered {
		clear(f.listed)
		f.held = 0
	}
	if _, ok := f.listed[folder]; !ok && len(entries) <= maxRemembered {
		f.listed[folder] = entries
		f.held += len(entries)
	}
}

// shown gives a name that fs.ValidPath takes and that does no harm to a terminal.
func shown(name string) string {
	clean := func(r rune) bool { return r >= 0x20 && r != 0x7f }
	if utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return !clean(r) }) < 0 {
		return name
	}
	var out strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && size == 1 || !clean(r) {
			fmt.Fprintf(&out, `\x%02x`, name[i])
			size = 1
		} else {
			out.WriteString(name[i : i+size])
		}
		i += size
	}
	return out.String()
}

func dirEntries(entries []Entry) []fs.DirEntry {
	out := make([]fs.DirEntry, len(entries))
	for i := range entries {
		out[i] = dirEntry{&entries[i]}
	}
	return out
}

type dirEntry struct{ entry *Entry }

func (d dirEntry) Name() string      { return d.entry.Name }
func (d dirEntry) IsDir() bool       { return d.entry.Type.IsDir() }
func (d dirEntry) Type() fs.FileMode { return d.entry.Type.Type() }
func (d dirEntry) String() string    { return fs.FormatDirEntry(d) }

// Info reads what the entry stands for.
func (d dirEntry) Info() (fs.FileInfo, error) {
	n, err := d.entry.Node()
	if err != nil {
		return nil, failed("stat", d.entry.Name, err)
	}
	return info{n, d.entry.Name}, nil
}
