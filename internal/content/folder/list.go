// SPDX-License-Identifier: Apache-2.0

// Package folder is the way of content into and out of plain folders, for the
// command line: what a folder holds, as entries that can be packed and pushed,
// and the writing of a tree from the content store to a folder.
package folder

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
)

// List gives what is in a folder, sorted by path, the files without their sums.
// Links are listed as links and must stay inside; what is neither file, folder
// nor link cannot be content. Errors name the entry. files must implement
// fs.ReadLinkFS, as os.DirFS does, if it has links.
func List(ctx context.Context, files fs.FS) ([]content.Entry, error) {
	var entries []content.Entry
	err := fs.WalkDir(files, ".", func(path string, found fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if path == "." {
			return nil
		}
		entry, err := entryOf(files, path, found)
		if err != nil {
			return fmt.Errorf("%q: %w", path, err)
		}
		entries = append(entries, entry)
		return nil
	})
	content.Sort(entries)
	return entries, err
}

func entryOf(files fs.FS, path string, found fs.DirEntry) (content.Entry, error) {
	entry := content.Entry{Path: path}
	if err := content.CheckPath(path); err != nil {
		return entry, err
	}
	switch found.Type() {
	case fs.ModeDir:
		entry.Kind = content.Dir
		return entry, nil
	case fs.ModeSymlink:
		target, err := fs.ReadLink(files, path)
		if err != nil {
			return entry, err
		}
		entry.Kind, entry.Target = content.Link, target
		return entry, content.CheckLink(path, target, false)
	case 0:
		info, err := found.Info()
		if err != nil {
			return entry, err
		}
		entry.Kind, entry.Size, entry.Exec = content.File, info.Size(), info.Mode()&0o111 != 0
		return entry, nil
	default:
		return entry, fmt.Errorf("it is %s; only files, folders and links can be content", kindName(found.Type()))
	}
}

// Digest gives the digest that a content store gives to what is in a folder.
func Digest(ctx context.Context, files fs.FS) (digest.Digest, error) {
	entries, err := List(ctx, files)
	if err != nil {
		return "", err
	}
	for i := range entries {
		if entries[i].Kind != content.File {
			continue
		}
		if entries[i].Sum, entries[i].Size, err = sumOf(files, entries[i].Path); err != nil {
			return "", err
		}
	}
	return content.DigestOf(entries), nil
}

func sumOf(files fs.FS, path string) (content.Sum, int64, error) {
	file, err := files.Open(path)
	if err != nil {
		return content.Sum{}, 0, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	hash := sha256.New()
	size, err := io.Copy(hash, file)
	return content.Sum(hash.Sum(nil)), size, err
}

func kindName(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "of the mode " + mode.String()
	}
}
