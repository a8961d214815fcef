// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// FS is the read-only view of a filesystem in an image. Symbolic links are
// followed inside it: an absolute target begins at its root, and nothing leads
// above it. Its files implement io.ReaderAt and io.Seeker. A name that is not
// valid UTF-8 or has control characters is shown with "\x" and two digits for
// each such byte. Devices, pipes and sockets are listed and cannot be opened.
type FS struct {
	driver Driver

	mu      sync.Mutex
	parents map[uint64]place   // where each folder that was seen stands
	listed  map[uint64][]Entry // folders, sorted by name
	held    int                // entries of listed
}

// place is the folder and the name in it. An image in which a folder stands in
// two places may have more paths than any reader has time for.
type place struct {
	parent uint64
	name   string
}

var (
	_ fs.ReadFileFS = (*FS)(nil)
	_ fs.ReadDirFS  = (*FS)(nil)
	_ fs.StatFS     = (*FS)(nil)
	_ fs.ReadLinkFS = (*FS)(nil)
)

// New makes a view. The root is read at once.
func New(driver Driver) (*FS, error) {
	f := &FS{driver: driver, parents: map[uint64]place{}, listed: map[uint64][]Entry{}}
	root, err := f.root()
	if err == nil && !root.Mode.IsDir() {
		err = Malformed("its root is no folder")
	}
	return f, err
}

// guarded calls a driver. A panic of a driver is a fault of ours that an image
// brought to light; it must not end the process.
func guarded[T any](call func() (T, error)) (result T, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = Malformed("reading it failed: %v", fault)
		}
	}()
	return call()
}

func (f *FS) root() (Node, error) { return guarded(f.driver.Root) }

// Open opens a file or a folder.
func (f *FS) Open(name string) (fs.File, error) {
	n, err := f.find("open", name, true)
	if err != nil {
		return nil, err
	}
	switch {
	case n.Mode.IsDir():
		entries, err := f.list(n)
		if err != nil {
			return nil, failed("open", name, err)
		}
		return &openDir{info: info{n, path.Base(name)}, entries: entries}, nil
	case !n.Mode.IsRegular():
		return nil, failed("open", name, fmt.Errorf("%w: it is no file", fs.ErrInvalid))
	}
	bytes, err := guarded(func() (io.ReaderAt, error) { return f.driver.Open(n) })
	if err != nil {
		return nil, failed("open", name, err)
	}
	return newFile(info{n, path.Base(name)}, name, bytes), nil
}

// ReadFile reads a whole file, unless it is so large that it has to be opened.
func (f *FS) ReadFile(name string) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	opened, ok := file.(*File)
	if !ok {
		return nil, failed("read", name, errors.New("is a directory"))
	}
	if opened.info.node.Size > maxReadFile {
		return nil, failed("read", name, fmt.Errorf("it has %d bytes, too many to be read at once", opened.info.node.Size))
	}
	data := make([]byte, opened.info.node.Size)
	_, err = io.ReadFull(opened, data)
	return data, err
}

// ReadDir lists a folder, sorted by name.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := f.find("readdir", name, true)
	if err == nil && !n.Mode.IsDir() {
		err = failed("readdir", name, errors.New("not a directory"))
	}
	if err != nil {
		return nil, err
	}
	entries, err := f.list(n)
	if err != nil {
		return nil, failed("readdir", name, err)
	}
	return dirEntries(entries), nil
}

// Stat describes what a name stands for, following links.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	n, err := f.find("stat", name, true)
	if err != nil {
		return nil, err
	}
	return info{n, path.Base(name)}, nil
}

// Lstat describes a name and does not follow it if it is a link.
func (f *FS) Lstat(name string) (fs.FileInfo, error) {
	n, err := f.find("lstat", name, false)
	if err != nil {
		return nil, err
	}
	return info{n, path.Base(name)}, nil
}

// ReadLink gives what a link says.
func (f *FS) ReadLink(name string) (string, error) {
	n, err := f.find("readlink", name, false)
	if err != nil {
		return "", err
	}
	if n.Mode.Type() != fs.ModeSymlink {
		return "", failed("readlink", name, fs.ErrInvalid)
	}
	target, err := f.target(n)
	if err != nil {
		return "", failed("readlink", name, err)
	}
	return target, nil
}

func (f *FS) target(n Node) (string, error) {
	target, err := guarded(func() (string, error) { return f.driver.Link(n) })
	if err == nil && target == "" {
		err = Malformed("a link says nothing")
	}
	return target, err
}

func failed(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// find resolves a name.
func (f *FS) find(op, name string, follow bool) (Node, error) {
	if !fs.ValidPath(name) {
		return Node{}, failed(op, name, fs.ErrInvalid)
	}
	n, err := f.walk(name, follow)
	if err != nil {
		return Node{}, failed(op, name, err)
	}
	return n, nil
}

// walk follows a name from the root, part by part.
func (f *FS) walk(rest string, follow bool) (Node, error) {
	root, err := f.root()
	if err != nil {
		return Node{}, err
	}
	at := []Node{root} // the way to where it is
	for links := 0; rest != ""; {
		part, after, _ := strings.Cut(rest, "/")
		rest = after
		here := at[len(at)-1]
		switch {
		case part == "" || part == ".":
			continue
		case part == "..":
			if len(at) == 1 {
				return Node{}, errors.New("it leads out of the image")
			}
			at = at[:len(at)-1]
			continue
		case !here.Mode.IsDir():
			return Node{}, fs.ErrNotExist
		case len(at) > maxDepth:
			return Node{}, fmt.Errorf("it leads through more than %d folders", maxDepth)
		}
		next, err := f.child(here, part)
		if err != nil {
			return Node{}, err
		}
		if next.Mode.Type() != fs.ModeSymlink || strings.Trim(rest, "/") == "" && !follow {
			at = append(at, next)
			continue
		}
		links++
		target, err := f.follow(next, links)
		if err != nil {
			return Node{}, err
		}
		if path.IsAbs(target) {
			at = at[:1]
		}
		rest = target + "/" + rest
	}
	return at[len(at)-1], nil
}

// follow gives what the links-th link on a way says.
func (f *FS) follow(link Node, links int) (string, error) {
	if links > maxLinks {
		return "", fmt.Errorf("it leads over more than %d links, in a circle", maxLinks)
	}
	return f.target(link)
}

func (f *FS) child(folder Node, name string) (Node, error) {
	entries, err := f.list(folder)
	if err != nil {
		return Node{}, err
	}
	i, ok := slices.BinarySearchFunc(entries, name, func(e Entry, name string) int { return strings.Compare(e.Name, name) })
	if !ok {
		return Node{}, fs.ErrNotExist
	}
	return entries[i].Node()
}
