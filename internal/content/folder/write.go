// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
)

// NotOursError says that a folder holds something that Write did not write, or
// that was changed since.
type NotOursError struct{ Dir string }

// Error says what to do.
func (e *NotOursError) Error() string {
	return fmt.Sprintf("the folder %s is not empty, and holds something else than an earlier run left there; name another folder, or have it replaced with --force", e.Dir)
}

// Write writes a tree of the content store to a folder. All files are written
// to a folder beside it first, which then takes its place: whoever looks sees
// the old content or the new, and a second run gives the same as the first. A
// folder that is not empty is replaced if Write made it and nobody changed it
// since, and else only if force is true.
//
// Absolute targets of links, which begin at the root of the tree, are written
// as relative ones, so that no link leads out of the folder.
func Write(ctx context.Context, tree fs.FS, dir string, force bool) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	state, err := look(ctx, dir)
	if err != nil {
		return err
	}
	if state == foreign && !force {
		return &NotOursError{dir}
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".rukpak-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	written, err := fill(ctx, tree, fresh)
	if err != nil {
		return err
	}
	if state == empty {
		if err := moveInto(fresh, dir); err != nil {
			return err
		}
	} else if err := swap(fresh, dir); err != nil {
		return err
	}
	setMark(dir, string(written)) // without a mark the next run has to be forced
	return nil
}

// state of the folder that is to be written.
type state int

const (
	absent  state = iota
	empty         // it may be the working directory or a mount: it stays, and is filled
	ours          // as an earlier Write left it
	foreign       // anything else
)

func look(ctx context.Context, dir string) (state, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent, nil
	case err != nil:
		return foreign, err
	case len(entries) == 0:
		return empty, nil
	}
	mark := getMark(dir)
	if mark == "" {
		return foreign, nil
	}
	now, err := Digest(ctx, os.DirFS(dir))
	if err != nil || string(now) != mark {
		return foreign, ctx.Err()
	}
	return ours, nil
}

// fill writes all entries below dir and gives the digest of what it wrote.
func fill(ctx context.Context, tree fs.FS, dir string) (digest.Digest, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // all files in it are closed
	err = fs.WalkDir(tree, ".", func(name string, found fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil || name == "." {
			return err
		}
		return writeEntry(root, tree, name, found)
	})
	if err != nil {
		return "", err
	}
	return Digest(ctx, os.DirFS(dir))
}

func writeEntry(root *os.Root, tree fs.FS, name string, found fs.DirEntry) error {
	switch found.Type() {
	case fs.ModeDir:
		return root.Mkdir(name, 0o755)
	case fs.ModeSymlink:
		target, err := fs.ReadLink(tree, name)
		if err != nil {
			return err
		}
		return root.Symlink(inside(name, target), name)
	case 0:
	default:
		return fmt.Errorf("%q: it is %s", name, kindName(found.Type()))
	}
	from, err := tree.Open(name)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // nothing was written to it
	info, err := from.Stat()
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	to, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// inside makes an absolute target relative to the folder of the link.
func inside(name, target string) string {
	if !path.IsAbs(target) {
		return target
	}
	up := strings.Repeat("../", strings.Count(name, "/"))
	return path.Clean(up + strings.TrimPrefix(path.Clean(target), "/"))
}

// moveInto moves what is in one folder to an empty one.
func moveInto(from, dir string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// swap puts a folder in the place of another, which is removed.
func swap(fresh, dir string) error {
	old := fresh + ".old"
	err := os.Rename(dir, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.RemoveAll(old)
}
