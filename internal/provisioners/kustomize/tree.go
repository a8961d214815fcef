// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"rukpak.io/rukpak/internal/parse"
)

const (
	// contentRoot is where the library sees the content.
	contentRoot = "/content"
	// madeFolder holds nothing but the Kustomization that a configuration asks for. It is not above or below the content,
	// which the library would take for a circle.
	madeFolder = "/made"
	madeFile   = madeFolder + "/kustomization.yaml"
)

var errReadOnly = errors.New("the content can only be read")

// tree is the content as the library wants to see a file system: read only, within limits, and without a Kustomization
// that was not looked at before. Nothing is copied.
type tree struct {
	ctx     context.Context //nolint:containedctx // the library's interface has none
	content fs.FS
	made    []byte // the Kustomization in madeFolder

	mu      sync.Mutex
	left    int64 // bytes that may yet be read
	checked map[string]bool
	broken  error // of the content itself, which is no fault of what it says
}

func newTree(ctx context.Context, content fs.FS) *tree {
	return &tree{ctx: ctx, content: content, left: maxRead, checked: map[string]bool{}}
}

// inside turns a path of the library into one of the content.
func (t *tree) inside(name string) (string, error) {
	cleaned := path.Clean("/" + name)
	if cleaned == contentRoot {
		return ".", nil
	}
	if rest, ok := strings.CutPrefix(cleaned, contentRoot+"/"); ok && fs.ValidPath(rest) {
		return rest, nil
	}
	return "", &fs.PathError{Op: "open", Path: name, Err: errors.New("it is not in the content")}
}

func (t *tree) stat(name string) (dir bool, err error) {
	if cleaned := path.Clean("/" + name); t.made != nil && (cleaned == madeFolder || cleaned == madeFile) {
		return cleaned == madeFolder, nil
	}
	inner, err := t.inside(name)
	if err != nil {
		return false, err
	}
	info, err := fs.Stat(t.content, inner)
	if err != nil {
		return false, t.note(err)
	}
	return info.IsDir(), nil
}

// note keeps what is wrong with the content rather than with what it says.
func (t *tree) note(err error) error {
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.broken == nil {
			t.broken = err
		}
	}
	return err
}

// ReadFile reads a file.
func (t *tree) ReadFile(name string) ([]byte, error) {
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	if t.made != nil && path.Clean("/"+name) == madeFile {
		return t.made, nil
	}
	inner, err := t.inside(name)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	unknown := isKustomization(inner) && !t.checked[inner]
	t.mu.Unlock()
	if unknown {
		return nil, fmt.Errorf("%s is a Kustomization that is reached in a way which is not supported", inner)
	}
	return t.read(inner)
}

// read keeps to the limits.
func (t *tree) read(inner string) ([]byte, error) {
	info, err := fs.Stat(t.content, inner)
	if err != nil {
		return nil, t.note(err)
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: inner, Err: errors.New("it is a folder")}
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s is larger than %d MiB", inner, maxFile>>20)
	}
	t.mu.Lock()
	t.left -= info.Size()
	over := t.left < 0
	t.mu.Unlock()
	if over {
		return nil, fmt.Errorf("%s: the files that are read are larger than %d MiB together", inner, maxRead>>20)
	}
	data, err := fs.ReadFile(t.content, inner)
	if err != nil {
		return nil, t.note(err)
	}
	if ending := path.Ext(inner); isKustomization(inner) || ending == ".yaml" || ending == ".yml" || ending == ".json" {
		if err := parse.Deep(data); err != nil {
			return nil, fmt.Errorf("%s: %w", inner, err)
		}
	}
	return data, nil
}

// IsDir tells whether a path is a folder.
func (t *tree) IsDir(name string) bool {
	dir, err := t.stat(name)
	return err == nil && dir
}

// Exists tells whether there is something at a path.
func (t *tree) Exists(name string) bool {
	_, err := t.stat(name)
	return err == nil
}

// CleanedAbs splits a path into folder and file.
func (t *tree) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	dir, err := t.stat(name)
	if err != nil {
		return "", "", err
	}
	cleaned := path.Clean("/" + name)
	if dir {
		return filesys.ConfirmedDir(cleaned), "", nil
	}
	return filesys.ConfirmedDir(path.Dir(cleaned)), path.Base(cleaned), nil
}

// ReadDir names what is in a folder.
func (t *tree) ReadDir(name string) ([]string, error) {
	inner, err := t.inside(name)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(t.content, inner)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, t.note(err)
}

// Glob finds nothing: no field of a Kustomization is a pattern.
func (t *tree) Glob(string) ([]string, error) { return nil, nil }

// Walk is not needed by a build.
func (t *tree) Walk(string, filepath.WalkFunc) error { return errReadOnly }

// Open is not needed by a build.
func (t *tree) Open(string) (filesys.File, error) { return nil, errReadOnly }

// Create fails.
func (t *tree) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir fails.
func (t *tree) Mkdir(string) error { return errReadOnly }

// MkdirAll fails.
func (t *tree) MkdirAll(string) error { return errReadOnly }

// RemoveAll fails.
func (t *tree) RemoveAll(string) error { return errReadOnly }

// WriteFile fails.
func (t *tree) WriteFile(string, []byte) error { return errReadOnly }
