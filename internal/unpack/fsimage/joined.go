// SPDX-License-Identifier: Apache-2.0

package fsimage

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// joined is a view with folders that are views of their own.
type joined struct {
	files   FS            // what else stands in the root
	folders map[string]FS // by name in the root
}

// route gives the view that a name belongs to, and the name there.
func (j *joined) route(name string) (FS, string) {
	if !fs.ValidPath(name) {
		return j.files, name // which says so
	}
	first, rest, deeper := strings.Cut(name, "/")
	view, ok := j.folders[first]
	switch {
	case !ok:
		return j.files, name
	case !deeper:
		return view, "."
	default:
		return view, rest
	}
}

func (j *joined) Open(name string) (fs.File, error) {
	if name == "." {
		entries, err := j.ReadDir(name)
		if err != nil {
			return nil, err
		}
		root, err := j.files.Stat(name)
		return &rootDir{info: root, entries: entries}, err
	}
	view, inner := j.route(name)
	file, err := view.Open(inner)
	return renamedFile(file, name, inner), renamed(err, name)
}

func (j *joined) ReadFile(name string) ([]byte, error) {
	view, inner := j.route(name)
	data, err := view.ReadFile(inner)
	return data, renamed(err, name)
}

func (j *joined) ReadDir(name string) ([]fs.DirEntry, error) {
	view, inner := j.route(name)
	entries, err := view.ReadDir(inner)
	if err != nil || name != "." {
		return entries, renamed(err, name)
	}
	for folder := range j.folders {
		about, err := j.Stat(folder)
		if err != nil {
			return nil, err
		}
		entries = append(entries, fs.FileInfoToDirEntry(about))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func (j *joined) Stat(name string) (fs.FileInfo, error) {
	view, inner := j.route(name)
	about, err := view.Stat(inner)
	return renamedInfo(about, name, inner), renamed(err, name)
}

func (j *joined) Lstat(name string) (fs.FileInfo, error) {
	view, inner := j.route(name)
	about, err := view.Lstat(inner)
	return renamedInfo(about, name, inner), renamed(err, name)
}

func (j *joined) ReadLink(name string) (string, error) {
	view, inner := j.route(name)
	target, err := view.ReadLink(inner)
	return target, renamed(err, name)
}

// renamed gives an error of a view inside the name that its caller used.
func renamed(err error, name string) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: failed.Op, Path: name, Err: failed.Err}
	}
	return err
}

// renamedInfo gives the root of a view inside the name of its folder.
func renamedInfo(about fs.FileInfo, name, inner string) fs.FileInfo {
	if about == nil || inner != "." {
		return about
	}
	return namedInfo{about, name[strings.LastIndex(name, "/")+1:]}
}

type namedInfo struct {
	fs.FileInfo
	name string
}

func (n namedInfo) Name() string { return n.name }

func renamedFile(file fs.File, name, inner string) fs.File {
	dir, ok := file.(fs.ReadDirFile)
	if !ok || inner != "." {
		return file
	}
	return namedDir{dir, name}
}

type namedDir struct {
	fs.ReadDirFile
	name string
}

func (n namedDir) Stat() (fs.FileInfo, error) {
	about, err := n.ReadDirFile.Stat()
	return renamedInfo(about, n.name, "."), err
}

// rootDir is the open root of joined.
type rootDir struct {
	info    fs.FileInfo
	entries []fs.DirEntry
}

func (d *rootDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *rootDir) Close() error               { return nil }

func (d *rootDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: ".", Err: errors.New("is a directory")}
}

// ReadDir gives the next entries.
func (d *rootDir) ReadDir(n int) ([]fs.DirEntry, error) {
	left := d.entries
	if n > 0 && len(left) == 0 {
		return nil, io.EOF
	}
	if n > 0 && len(left) > n {
		left = left[:n]
	}
	d.entries = d.entries[len(left):]
	return left, nil
}
