// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"rukpak.io/rukpak/provisioner"
)

// Files are the paths in a tree, each list sorted.
type Files struct {
	Manifests   []string // those of YAML and JSON
	Hidden      []string // files and folders with a dot, which are not looked into
	FolderLinks []string // links to folders, which are not followed
	Others      int      // files of other kinds
}

// FindFiles looks through all of a tree.
func FindFiles(ctx context.Context, content fs.FS) (Files, error) {
	var found Files
	err := fs.WalkDir(content, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("list the content: %w", err)
		case name == ".":
			return nil
		case strings.HasPrefix(path.Base(name), "."):
			found.Hidden = append(found.Hidden, name)
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		}
		return found.add(content, name, entry)
	})
	return found, err
}

func (f *Files) add(content fs.FS, name string, entry fs.DirEntry) error {
	if entry.Type()&fs.ModeSymlink != 0 {
		info, err := fs.Stat(content, name)
		switch {
		case err != nil && isManifest(name):
			return &provisioner.InputError{File: name, Reason: "is a link that leads nowhere: " + lastCause(err)}
		case err == nil && info.IsDir():
			f.FolderLinks = append(f.FolderLinks, name)
			return nil
		}
	}
	if !isManifest(name) {
		f.Others++
		return nil
	}
	f.Manifests = append(f.Manifests, name)
	return nil
}

func isManifest(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// Nothing is the error when there is no object.
func (f *Files) Nothing() error {
	what := fmt.Sprintf("none of the %d files", f.Others+len(f.Manifests))
	switch {
	case len(f.Manifests) > 0:
		what = fmt.Sprintf("none of the %d YAML and JSON files", len(f.Manifests))
	case f.Others > 0:
		what += " ends in .yaml, .yml or .json, so none"
	default:
		what = "there are no files: the content"
	}
	return &provisioner.InputError{Reason: what + " has an object; activating nothing would remove all that is there"}
}

// lastCause is what the file system says, without the path that the error names already.
func lastCause(err error) string {
	if failed, ok := err.(*fs.PathError); ok { //nolint:errorlint // only the outermost is to be taken off
		return failed.Err.Error()
	}
	return err.Error()
}
