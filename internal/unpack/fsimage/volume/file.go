// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"io"
	"io/fs"
	"time"
)

type info struct {
	node Node
	name string
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.node.Size }
func (i info) Mode() fs.FileMode  { return i.node.Mode }
func (i info) ModTime() time.Time { return i.node.ModTime }
func (i info) IsDir() bool        { return i.node.Mode.IsDir() }
func (i info) Sys() any           { return nil }
func (i info) String() string     { return fs.FormatFileInfo(i) }

// File is an open file of an image.
type File struct {
	*io.SectionReader
	info   info
	closed bool
}

func newFile(i info, name string, bytes io.ReaderAt) *File {
	return &File{SectionReader: io.NewSectionReader(guardedBytes{bytes, name}, 0, i.node.Size), info: i}
}

// Stat describes the file.
func (f *File) Stat() (fs.FileInfo, error) { return f.info, nil }

// Read reads the next bytes.
func (f *File) Read(p []byte) (int, error) {
	if f.closed {
		return 0, failed("read", f.info.name, fs.ErrClosed)
	}
	return f.SectionReader.Read(p)
}

// Close ends reading.
func (f *File) Close() error {
	if f.closed {
		return failed("close", f.info.name, fs.ErrClosed)
	}
	f.closed = true
	return nil
}

// guardedBytes are those of a driver, with errors that name the file.
type guardedBytes struct {
	bytes io.ReaderAt
	name  string
}

func (g guardedBytes) ReadAt(p []byte, offset int64) (int, error) {
	n, err := guarded(func() (int, error) { return g.bytes.ReadAt(p, offset) })
	if err != nil && !errors.Is(err, io.EOF) {
		err = failed("read", g.name, err)
	}
	return n, err
}

// openDir is an open folder.
type openDir struct {
	info    info
	entries []Entry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, failed("read", d.info.name, errors.New("is a directory"))
}

// ReadDir gives the next entries.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	left := d.entries
	if n > 0 && len(left) == 0 {
		return nil, io.EOF
	}
	if n > 0 && len(left) > n {
		left = left[:n]
	}
	d.entries = d.entries[len(left):]
	return dirEntries(left), nil
}
