// SPDX-License-Identifier: Apache-2.0

// Package folder keeps objects in a folder, such as one on a volume that several
// nodes mount. It is one place of package objects, in the third step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
package folder

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"rukpak.io/rukpak/internal/content/objects"
)

// tempPrefix is that of files that are being written. No object has it.
const tempPrefix = ".writing-"

// abandoned is how old a half-written file is that nobody writes any more.
const abandoned = 24 * time.Hour

// Folder is a place. The folder itself has to exist: were it made, a volume that
// is not mounted would look like an empty place.
type Folder struct{ dir string }

var _ objects.Backend = (*Folder)(nil)

// New makes a place of a folder.
func New(dir string) *Folder { return &Folder{dir: filepath.Clean(dir)} }

// String gives the URL.
func (f *Folder) String() string { return "file://" + filepath.ToSlash(f.dir) }

func (f *Folder) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// Put writes a file beside and renames it.
func (f *Folder) Put(ctx context.Context, name string, body objects.Body) error {
	if err := objects.CheckName(name); err != nil {
		return f.failed("put "+name, err)
	}
	source, err := objects.Watch(body)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // it is only read
	if err := f.write(ctx, f.path(name), source); err != nil {
		if failed := source.Failed(); failed != nil {
			return failed
		}
		if objects.Given(ctx, err) {
			return err
		}
		return f.failed("put "+name, err)
	}
	return nil
}

func (f *Folder) write(ctx context.Context, path string, source io.Reader) error {
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), tempPrefix)
	if err != nil {
		return err
	}
	_, err = io.Copy(temp, bounded{ctx, source})
	if err == nil {
		err = temp.Sync() // other nodes may believe the name before the bytes
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temp.Name()) // else List removes it some day
	}
	return err
}

// bounded ends with a context.
type bounded struct {
	ctx context.Context //nolint:containedctx // for as long as one copy takes
	io.Reader
}

func (b bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.Reader.Read(p)
}

// Get opens the file.
func (f *Folder) Get(_ context.Context, name string) (io.ReadCloser, error) {
	file, err := os.Open(f.path(name))
	if err != nil {
		return nil, f.missing("get "+name, err)
	}
	return &objects.Reader{Body: file, Judge: func(err error) error { return f.failed("get "+name, err) }}, nil
}

// Stat looks at the file.
func (f *Folder) Stat(_ context.Context, name string) (objects.Info, error) {
	seen, err := os.Lstat(f.path(name))
	if err != nil {
		return objects.Info{}, f.missing("look at "+name, err)
	}
	return objects.Info{Size: seen.Size(), Written: seen.ModTime()}, nil
}

// missing tells an object that is not there from a folder that is not.
func (f *Folder) missing(op string, err error) error {
	if _, gone := os.Stat(f.dir); gone == nil && errors.Is(err, fs.ErrNotExist) {
		return fs.ErrNotExist
	}
	return f.failed(op, err)
}

// List reads the folders.
func (f *Folder) List(ctx context.Context, each func(string) error) error {
	kinds, err := os.ReadDir(f.dir)
	if err != nil {
		return f.failed("list it", err)
	}
	for _, kind := range kinds {
		if !kind.IsDir() || !objects.IsName(kind.Name()+"/0") {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(f.dir, kind.Name()))
		if err != nil {
			return f.failed("list it", err)
		}
		for _, entry := range entries {
			if err := ctx.Err(); err != nil {
				return err
			}
			f.sweep(filepath.Join(f.dir, kind.Name(), entry.Name()), entry)
			if name := kind.Name() + "/" + entry.Name(); objects.IsName(name) && entry.Type().IsRegular() {
				if err := each(name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sweep removes what a manager that was killed left half-written.
func (f *Folder) sweep(path string, entry fs.DirEntry) {
	if !strings.HasPrefix(entry.Name(), tempPrefix) {
		return
	}
	if seen, err := entry.Info(); err == nil && time.Since(seen.ModTime()) > abandoned {
		_ = os.Remove(path) // else the next time
	}
}

// Delete removes the file.
func (f *Folder) Delete(_ context.Context, name string) error {
	if err := objects.CheckName(name); err != nil {
		return f.failed("remove "+name, err)
	}
	err := os.Remove(f.path(name))
	if err == nil {
		return nil
	}
	if err = f.missing("remove "+name, err); err == fs.ErrNotExist { //nolint:errorlint // not one of the folder itself
		return nil
	}
	return err
}

func (f *Folder) failed(op string, err error) error {
	kind := objects.Unavailable
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		kind = objects.Full
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		kind = objects.Refused
	case errors.Is(err, fs.ErrNotExist):
		kind, err = objects.NoPlace, errors.New("the folder does not exist") // and it is no missing object
	}
	var inPath *fs.PathError
	if errors.As(err, &inPath) && strings.Contains(inPath.Path, tempPrefix) {
		err = inPath.Err // the name is another one each time
	}
	return &objects.Error{Place: f.String(), Op: op, Kind: kind, Err: err}
}
