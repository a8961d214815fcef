// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"rukpak.io/rukpak/internal/content"
)

// Names by which image layers remove what is below them.
const (
	whiteoutPrefix = ".wh."
	whiteoutMeta   = ".wh..wh."     // bookkeeping of a file system that is long gone
	whiteoutOpaque = ".wh..wh..opq" // hides all that layers below have in this folder
)

// archive reads a tar archive to its end.
func (u *unpacking) archive(r io.Reader) error {
	tr := tar.NewReader(r)
	for {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return u.trailer(r)
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) { // CleanPath judges names
			return fmt.Errorf("entry %d: the tar archive is malformed: %w", len(u.layer.Entries)+1, explain(err))
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			continue // comments for the whole archive; git writes its commit here
		}
		if err := u.entry(header, tr); err != nil {
			return u.name(err, header.Name)
		}
	}
}

// trailer makes sure that only padding follows: another archive behind the
// first would be content to some readers and none to others.
func (u *unpacking) trailer(r io.Reader) error {
	buffer := make([]byte, 4096)
	for {
		n, err := r.Read(buffer)
		for _, b := range buffer[:n] {
			if b != 0 {
				return errors.New("something follows the end of the tar archive")
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return explain(err)
		}
	}
}

// place gives the path of an entry. done is true if there is nothing more to do
// with the entry.
func (u *unpacking) place(header *tar.Header) (name string, done bool, err error) {
	if u.format.Chart { // Helm packs charts on Windows with its separators, and reads them so
		header.Name = strings.ReplaceAll(header.Name, `\`, "/")
	}
	if err := u.checkName(header.Name); err != nil {
		return "", false, err
	}
	if name, err = content.CleanPath(header.Name); err != nil {
		return "", false, err
	}
	if u.format.Image {
		if done, err := u.whiteout(name); done || err != nil {
			return "", done, err
		}
	}
	folder := header.Typeflag == tar.TypeDir
	switch {
	case name == "." && !folder:
		return "", false, errors.New("the root of the content can only be a folder")
	case name == ".":
		return "", true, nil
	case u.format.Chart:
		err = u.inChart(name, folder)
	}
	return name, false, err
}

func (u *unpacking) entry(header *tar.Header, r io.Reader) error {
	if err := u.budget.entry(); err != nil {
		return err
	}
	name, done, err := u.place(header)
	if done || err != nil {
		return err
	}
	entry := content.Entry{Path: name}
	switch header.Typeflag {
	case tar.TypeDir:
		entry.Kind = content.Dir
	case tar.TypeReg, tar.TypeGNUSparse:
		err = u.regular(&entry, header, r)
	case tar.TypeSymlink:
		entry.Kind, entry.Target = content.Link, header.Linkname
		err = u.symlink(entry)
	case tar.TypeLink:
		entry.Kind = content.HardLink
		entry.Target, err = u.hardLink(header.Linkname)
	default:
		err = fmt.Errorf("it is %s; only files, folders and links can be content", typeName(header.Typeflag))
	}
	if err != nil {
		return err
	}
	u.layer.Entries = append(u.layer.Entries, entry)
	return nil
}

func (u *unpacking) regular(entry *content.Entry, header *tar.Header, r io.Reader) error {
	entry.Kind, entry.Size, entry.Exec = content.File, header.Size, header.Mode&0o111 != 0
	return u.store(entry, r)
}

// store hands the bytes of a file to the sink, a small one in the background.
func (u *unpacking) store(entry *content.Entry, r io.Reader) (err error) {
	if err := u.budget.file(entry.Size); err != nil {
		return err
	}
	if entry.Size <= smallFile {
		err = u.writers.add(len(u.layer.Entries), r, entry.Size)
	} else {
		entry.Sum, err = u.sink.AddFile(r, entry.Size)
	}
	if _, ok := errors.AsType[*content.StoreError](err); err != nil && !ok {
		return explain(err)
	}
	return err
}

func (u *unpacking) symlink(entry content.Entry) error {
	if err := u.budget.limits.check(limitPathBytes, int64(len(entry.Target))); err != nil {
		return err
	}
	return content.CheckLink(entry.Path, entry.Target, u.format.Image)
}

// hardLink gives the path that a hard link names. Whether it exists is seen
// when the layers are laid over one another.
func (u *unpacking) hardLink(target string) (string, error) {
	if err := u.checkName(target); err != nil {
		return "", err
	}
	clean, err := content.CleanPath(target)
	if err == nil {
		err = content.CheckPath(clean)
	}
	if err != nil {
		return "", fmt.Errorf("the hard link leaves the tree: its target is %q: %w", target, err)
	}
	return clean, nil
}

// whiteout takes an entry that only removes something. done is true if there is
// nothing more to do with the entry.
func (u *unpacking) whiteout(name string) (done bool, err error) {
	if !strings.Contains(name, whiteoutPrefix) {
		return false, nil
	}
	dir, base := path.Dir(name), path.Base(name)
	for part := range strings.SplitSeq(dir, "/") {
		if strings.HasPrefix(part, whiteoutMeta) {
			return true, nil
		}
		if strings.HasPrefix(part, whiteoutPrefix) {
			return false, errors.New("it is inside a whiteout")
		}
	}
	removed, ok := strings.CutPrefix(base, whiteoutPrefix)
	switch {
	case !ok:
		return false, nil
	case base == whiteoutOpaque:
		u.layer.Entries = append(u.layer.Entries, content.Entry{Path: dir, Kind: content.Opaque})
		return true, nil
	case strings.HasPrefix(base, whiteoutMeta):
		return true, nil
	}
	target := path.Join(dir, removed)
	if removed == "" || removed == "." || removed == ".." {
		return false, errors.New("the whiteout removes no name")
	}
	u.layer.Entries = append(u.layer.Entries, content.Entry{Path: target, Kind: content.Whiteout})
	return true, nil
}

func typeName(flag byte) string {
	switch flag {
	case tar.TypeChar:
		return "a character device"
	case tar.TypeBlock:
		return "a block device"
	case tar.TypeFifo:
		return "a named pipe"
	default:
		return fmt.Sprintf("of the tar type %q", flag)
	}
}
