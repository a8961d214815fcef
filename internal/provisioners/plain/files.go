// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"rukpak.io/rukpak/provisioner"
)

// files are the paths in a tree, each list sorted.
type files struct {
	manifests   []string // to be read
	hidden      []string // files and folders with a dot
	folderLinks []string
	others      int // files of other kinds
}

func findFiles(ctx context.Context, content fs.FS) (files, error) {
	var found files
	err := fs.WalkDir(content, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("list the content: %w", err)
		case name == ".":
			return nil
		case strings.HasPrefix(path.Base(name), "."):
			found.hidden = append(found.hidden, name)
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

func (f *files) add(content fs.FS, name string, entry fs.DirEntry) error {
	if entry.Type()&fs.ModeSymlink != 0 {
		info, err := fs.Stat(content, name)
		switch {
		case err != nil && isManifest(name):
			return &provisioner.InputError{File: name, Reason: "is a link that leads nowhere: " + lastCause(err)}
		case err == nil && info.IsDir():
			f.folderLinks = append(f.folderLinks, name)
			return nil
		}
	}
	if !isManifest(name) {
		f.others++
		return nil
	}
	f.manifests = append(f.manifests, name)
	return nil
}

func isManifest(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// nothing is the error when there is no object.
func (f *files) nothing() error {
	what := fmt.Sprintf("none of the %d files", f.others+len(f.manifests))
	switch {
	case len(f.manifests) > 0:
		what = fmt.Sprintf("none of the %d YAML and JSON files", len(f.manifests))
	case f.others > 0:
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
