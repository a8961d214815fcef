// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

// maxInMemory is the size up to which an open file is read and verified at
// once, so that not one wrong byte is given. Larger ones are verified while
// they are read.
const maxInMemory = 1 << 20

var (
	errIsDir  = errors.New("is a directory")
	errNotDir = errors.New("not a directory")
)

func baseOf(name string) string { return path.Base(name) }

// openFile opens the file of a node. A small one is verified before this returns.
func (t *treeFS) openFile(n *node, name string) (fs.File, error) {
	if n.entry.Size <= maxInMemory {
		data, err := t.readAll(n)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return &memoryFile{Reader: bytes.NewReader(data), info: info{node: n, as: name}}, nil
	}
	file, err := t.blobs.openBlob(n.entry.Sum, n.entry.Size)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: at(n, err)}
	}
	return newStreamFile(file, t.blobs, info{node: n, as: name}), nil
}

// readAll reads and verifies the file of a node.
func (t *treeFS) readAll(n *node) ([]byte, error) {
	file, err := t.blobs.openBlob(n.entry.Sum, n.entry.Size)
	if err != nil {
		return nil, at(n, err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	data := make([]byte, n.entry.Size)
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, at(n, t.blobs.damaged(n.entry.Sum, fmt.Sprintf("reading it: %v", err)))
	}
	if sum := sha256.Sum256(data); sum != n.entry.Sum {
		return nil, at(n, t.blobs.damaged(n.entry.Sum, fmt.Sprintf("its digest is sha256:%x", sum)))
	}
	return data, nil
}

// at gives a *CorruptError the path of the file.
func at(n *node, err error) error {
	if corrupt, ok := errors.AsType[*CorruptError](err); ok {
		corrupt.Path = n.entry.Path
	}
	return err
}

// memoryFile is a verified file in memory.
type memoryFile struct {
	*bytes.Reader
	info   info
	closed bool
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.info, nil }

func (f *memoryFile) Read(p []byte) (int, error) {
	if f.closed {
		return 0, &fs.PathError{Op: "read", Path: f.info.as, Err: fs.ErrClosed}
	}
	return f.Reader.Read(p)
}

func (f *memoryFile) Close() error {
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.info.as, Err: fs.ErrClosed}
	}
	f.closed = true
	return nil
}

// openDir is an open folder.
type openDir struct {
	node *node
	as   string
	next int
}

var _ fs.ReadDirFile = (*openDir)(nil)

func (d *openDir) Stat() (fs.FileInfo, error) { return info{node: d.node, as: d.as}, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.as, Err: errIsDir}
}

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	left := d.node.children[d.next:]
	if n > 0 && len(left) == 0 {
		return nil, io.EOF
	}
	if n > 0 && len(left) > n {
		left = left[:n]
	}
	d.next += len(left)
	return dirEntries(left), nil
}
