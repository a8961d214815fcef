// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
)

// maxInMemory is the size up to which an open file is read and verified at
// once, so that not one wrong byte is given; such a file can also seek. Larger
// ones are verified while they are read.
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
	return &streamFile{file: file, blobs: t.blobs, info: info{node: n, as: name}, sum: sha256.New()}, nil
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

// streamFile is a large file. The read that gives its last bytes gives an
// error instead if any byte was wrong, even to a reader that stops at the
// size and never asks for the end.
type streamFile struct {
	file  *os.File
	blobs blobSource
	info  info
	sum   hash.Hash
	done  int64
	err   error
}

func (f *streamFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *streamFile) Close() error               { return f.file.Close() }

func (f *streamFile) Read(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	e := &f.info.node.entry
	if left := e.Size - f.done; int64(len(p)) > left {
		p = p[:left]
	}
	if len(p) == 0 {
		return 0, io.EOF
	}
	n, err := f.file.Read(p)
	f.done += int64(n)
	f.sum.Write(p[:n])
	switch {
	case errors.Is(err, fs.ErrClosed):
		return 0, err
	case err != nil:
		return 0, f.fail(fmt.Sprintf("reading it: %v", err))
	case f.done == e.Size && Sum(f.sum.Sum(nil)) != e.Sum:
		return 0, f.fail(fmt.Sprintf("its digest is sha256:%x", f.sum.Sum(nil)))
	}
	return n, nil
}

func (f *streamFile) fail(reason string) error {
	err := at(f.info.node, f.blobs.damaged(f.info.node.entry.Sum, reason))
	f.err = &fs.PathError{Op: "read", Path: f.info.as, Err: err}
	return f.err
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
