// SPDX-License-Identifier: Apache-2.0

package content

import (
	"io/fs"
	"os"
	"time"

	"github.com/opencontainers/go-digest"
)

// blobSource gives files by digest.
type blobSource interface {
	// openBlob opens a file that must have this size. An error is a *CorruptError
	// without a path.
	openBlob(sum Sum, size int64) (*os.File, error)
	// chunkSums gives the checksums of the pieces of an open file.
	chunkSums(file *os.File, sum Sum, size int64) ([]uint64, error)
	// damaged removes a file that does not have its digest.
	damaged(sum Sum, reason string) *CorruptError
}

// treeFS is the read-only view of a tree.
type treeFS struct {
	root   *node
	blobs  blobSource
	digest digest.Digest
}

var (
	_ fs.ReadFileFS = (*treeFS)(nil)
	_ fs.ReadDirFS  = (*treeFS)(nil)
	_ fs.StatFS     = (*treeFS)(nil)
	_ fs.ReadLinkFS = (*treeFS)(nil)
)

// Digest is that of the whole tree: the same digest stands for the same names and bytes.
func (t *treeFS) Digest() digest.Digest { return t.digest }

// Open opens a file or folder for reading, following links inside the tree.
func (t *treeFS) Open(name string) (fs.File, error) {
	n, err := lookup(t.root, "open", name, true)
	if err != nil {
		return nil, err
	}
	if n.entry.Kind == Dir {
		return &openDir{node: n, as: name}, nil
	}
	return t.openFile(n, name)
}

// ReadFile reads a whole file and verifies it.
func (t *treeFS) ReadFile(name string) ([]byte, error) {
	n, err := lookup(t.root, "read", name, true)
	if err != nil {
		return nil, err
	}
	if n.entry.Kind == Dir {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errIsDir}
	}
	data, err := t.readAll(n)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, nil
}

// ReadDir lists a folder, sorted by name. Links are listed as links.
func (t *treeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := lookup(t.root, "readdir", name, true)
	if err != nil {
		return nil, err
	}
	if n.entry.Kind != Dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errNotDir}
	}
	return dirEntries(n.children), nil
}

// Stat describes what a name stands for, following links.
func (t *treeFS) Stat(name string) (fs.FileInfo, error) {
	n, err := lookup(t.root, "stat", name, true)
	if err != nil {
		return nil, err
	}
	return info{node: n, as: name}, nil
}

// Lstat describes a name and does not follow it if it is a link.
func (t *treeFS) Lstat(name string) (fs.FileInfo, error) {
	n, err := lookup(t.root, "lstat", name, false)
	if err != nil {
		return nil, err
	}
	return info{node: n, as: name}, nil
}

// ReadLink gives what a link says.
func (t *treeFS) ReadLink(name string) (string, error) {
	n, err := lookup(t.root, "readlink", name, false)
	if err != nil {
		return "", err
	}
	if n.entry.Kind != Link {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	return n.entry.Target, nil
}

// info describes a node under the name that it was asked for, which is another
// than its own if a link led there. Its Sys is the *Entry.
type info struct {
	node *node
	as   string
}

func (i info) Name() string {
	if i.as == "" {
		return i.node.name()
	}
	return baseOf(i.as)
}

func (i info) Size() int64 {
	if i.node.entry.Kind == Link {
		return int64(len(i.node.entry.Target))
	}
	return i.node.entry.Size
}

func (i info) Mode() fs.FileMode {
	switch e := i.node.entry; {
	case e.Kind == Dir:
		return fs.ModeDir | 0o555
	case e.Kind == Link:
		return fs.ModeSymlink | 0o777
	case e.Exec:
		return 0o555
	default:
		return 0o444
	}
}

func (i info) ModTime() time.Time         { return time.Time{} }
func (i info) IsDir() bool                { return i.node.entry.Kind == Dir }
func (i info) Sys() any                   { return &i.node.entry }
func (i info) Type() fs.FileMode          { return i.Mode().Type() }
func (i info) Info() (fs.FileInfo, error) { return i, nil }
func (i info) String() string             { return fs.FormatDirEntry(i) }

func dirEntries(nodes []*node) []fs.DirEntry {
	entries := make([]fs.DirEntry, len(nodes))
	for i, n := range nodes {
		entries[i] = info{node: n}
	}
	return entries
}
