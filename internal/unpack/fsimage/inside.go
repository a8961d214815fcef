// SPDX-License-Identifier: Apache-2.0

package fsimage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
)

// Mark is what the name of an image has behind it to mean what is inside.
const Mark = "!"

// Bounds on what one Tree opens.
const (
	maxOpen   = 64 // images
	maxInside = 4  // images inside images
)

// Tree is content with what is inside its images. Names that do not lead into
// an image go to the content unchanged, and a file of the content that really
// has such a name wins.
type Tree struct {
	tree  fs.FS
	depth int

	mu     sync.Mutex
	images map[string]*image
}

type image struct {
	file   fs.File
	inside *Tree
}

var (
	_ fs.ReadFileFS = (*Tree)(nil)
	_ fs.ReadDirFS  = (*Tree)(nil)
	_ fs.StatFS     = (*Tree)(nil)
	_ fs.ReadLinkFS = (*Tree)(nil)
	_ io.Closer     = (*Tree)(nil)
)

// Inside gives content together with what is inside its images; see the comment
// of the package for the names. Files of the content have to implement
// io.ReaderAt, as those of the content store and of os.DirFS do. An image is
// opened when its inside is first asked for, and stays open until Close. The
// Tree may be used by several goroutines.
func Inside(content fs.FS) *Tree { return &Tree{tree: content, images: map[string]*image{}} }

// Close closes all images. Files that were opened inside them cannot be read
// any more.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for path, opened := range t.images {
		errs = append(errs, opened.inside.Close(), opened.file.Close())
		delete(t.images, path)
	}
	return errors.Join(errs...)
}

// Open opens a file or a folder.
func (t *Tree) Open(name string) (fs.File, error) {
	view, inner, err := t.route("open", name)
	if err != nil {
		return nil, err
	}
	file, err := view.Open(inner)
	return renamedFile(file, name, inner), renamed(err, name)
}

// ReadFile reads a whole file.
func (t *Tree) ReadFile(name string) ([]byte, error) {
	view, inner, err := t.route("read", name)
	if err != nil {
		return nil, err
	}
	data, err := fs.ReadFile(view, inner)
	return data, renamed(err, name)
}

// ReadDir lists a folder.
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	view, inner, err := t.route("readdir", name)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(view, inner)
	return entries, renamed(err, name)
}

// Stat describes what a name stands for.
func (t *Tree) Stat(name string) (fs.FileInfo, error) {
	view, inner, err := t.route("stat", name)
	if err != nil {
		return nil, err
	}
	about, err := fs.Stat(view, inner)
	return renamedInfo(about, name, inner), renamed(err, name)
}

// Lstat describes a name and does not follow it if it is a link.
func (t *Tree) Lstat(name string) (fs.FileInfo, error) {
	view, inner, err := t.route("lstat", name)
	if err != nil {
		return nil, err
	}
	about, err := fs.Lstat(view, inner)
	return renamedInfo(about, name, inner), renamed(err, name)
}

// ReadLink gives what a link says.
func (t *Tree) ReadLink(name string) (string, error) {
	view, inner, err := t.route("readlink", name)
	if err != nil {
		return "", err
	}
	target, err := fs.ReadLink(view, inner)
	return target, renamed(err, name)
}

// route gives the view that a name belongs to, and the name there.
func (t *Tree) route(op, name string) (fs.FS, string, error) {
	if !strings.Contains(name, Mark) || !fs.ValidPath(name) {
		return t.tree, name, nil
	}
	for end := 0; end < len(name); end++ {
		next := strings.IndexByte(name[end:], '/')
		if next < 0 {
			next = len(name) - end
		}
		end += next
		path, ok := strings.CutSuffix(name[:end], Mark)
		if !ok || path == "" || strings.HasSuffix(path, "/") {
			continue
		}
		if _, err := fs.Lstat(t.tree, name[:end]); err == nil {
			continue
		}
		inside, err := t.image(path)
		if err != nil {
			return nil, "", &fs.PathError{Op: op, Path: name, Err: err}
		}
		rest := strings.TrimPrefix(name[end:], "/")
		if rest == "" {
			return inside.tree, ".", nil
		}
		return inside, rest, nil
	}
	return t.tree, name, nil
}

// image opens an image, or gives the one that is open already.
func (t *Tree) image(path string) (*Tree, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if opened, ok := t.images[path]; ok {
		return opened.inside, nil
	}
	if t.depth >= maxInside {
		return nil, fmt.Errorf("images are inside images, more than %d deep", maxInside)
	}
	if len(t.images) >= maxOpen {
		return nil, fmt.Errorf("more than %d images are open", maxOpen)
	}
	file, err := t.tree.Open(path)
	if err != nil {
		return nil, causeOf(err)
	}
	view, err := open(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%q: %w", path, err), file.Close())
	}
	t.images[path] = &image{file, &Tree{tree: view, depth: t.depth + 1, images: map[string]*image{}}}
	return t.images[path].inside, nil
}

func open(file fs.File) (FS, error) {
	about, err := file.Stat()
	if err != nil {
		return nil, err
	}
	bytes, ok := file.(io.ReaderAt)
	if about.IsDir() || !ok {
		return nil, ErrNoImage
	}
	view, _, err := Open(bytes, about.Size())
	return view, err
}

// causeOf drops the name from an error: the caller has a longer one.
func causeOf(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}
