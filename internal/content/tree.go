// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
)

// maxLinks is how many links one name may lead over; more are a loop.
const maxLinks = 40

// node is one name of a tree that is open for reading.
type node struct {
	entry    Entry
	parent   *node   // nil for the root
	children []*node // sorted by name
}

func (n *node) name() string { return path.Base(n.entry.Path) }

func (n *node) child(name string) *node {
	i := sort.Search(len(n.children), func(i int) bool { return n.children[i].name() >= name })
	if i < len(n.children) && n.children[i].name() == name {
		return n.children[i]
	}
	return nil
}

// builder makes nodes of entries that come sorted by path, so that a folder
// comes before what is in it.
type builder struct {
	root *node
	dirs map[string]*node
	tree Tree
}

func newBuilder() *builder {
	root := &node{entry: Entry{Path: ".", Kind: Dir}}
	return &builder{root: root, dirs: map[string]*node{".": root}}
}

func (b *builder) add(e Entry) error {
	dir := b.dirs[path.Dir(e.Path)]
	if dir == nil {
		return fmt.Errorf("%q comes before its folder", e.Path)
	}
	n := &node{entry: e, parent: dir}
	if last := len(dir.children) - 1; last >= 0 && dir.children[last].name() >= n.name() {
		return fmt.Errorf("%q is out of order", e.Path)
	}
	dir.children = append(dir.children, n)
	switch e.Kind {
	case Dir:
		b.dirs[e.Path] = n
	case File, Link:
		b.tree.Files++
		b.tree.Bytes += e.Size
	default:
		return fmt.Errorf("%q: a tree cannot hold kind %q", e.Path, e.Kind)
	}
	return nil
}

// resolve finds what a name stands for. Links are followed inside the tree:
// an absolute target begins at the root, and nothing leads above it. The last
// part is followed only if follow is true. name passes fs.ValidPath.
func resolve(root *node, name string, follow bool) (*node, error) {
	at := root
	links := 0
	rest := name
	for rest != "" {
		part, after, _ := strings.Cut(rest, "/")
		rest = after
		switch part {
		case "", ".":
			continue
		case "..":
			if at.parent == nil {
				return nil, errors.New("it leads out of the tree")
			}
			at = at.parent
			continue
		}
		if at.entry.Kind != Dir {
			return nil, fs.ErrNotExist
		}
		next := at.child(part)
		if next == nil {
			return nil, fs.ErrNotExist
		}
		if next.entry.Kind != Link || rest == "" && !follow {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return nil, fmt.Errorf("it leads over more than %d links, in a circle", maxLinks)
		}
		target := next.entry.Target
		if path.IsAbs(target) {
			at = root
		}
		rest = target + "/" + rest
		if strings.Trim(rest, "/") == "" {
			rest = ""
		}
	}
	return at, nil
}

// lookup resolves a name and, if that fails over a link, says which.
func lookup(root *node, op, name string, follow bool) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	n, err := resolve(root, name, follow)
	if err == nil {
		return n, nil
	}
	if link := firstLink(root, name); link != nil {
		err = fmt.Errorf("link %q -> %q: %w", link.entry.Path, link.entry.Target, err)
	}
	return nil, &fs.PathError{Op: op, Path: name, Err: err}
}

// firstLink finds the first link that a name leads over, if any.
func firstLink(root *node, name string) *node {
	at := root
	for part := range strings.SplitSeq(name, "/") {
		if at = at.child(part); at == nil {
			return nil
		}
		if at.entry.Kind == Link {
			return at
		}
	}
	return nil
}
