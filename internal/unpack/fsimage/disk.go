// SPDX-License-Identifier: Apache-2.0

package fsimage

import (
	"fmt"
	"io"
	"io/fs"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

// disk is a driver for a disk with partitions: a folder p1, p2, ... for each
// that has a filesystem which can be read, and a file for each other.
type disk struct {
	r     io.ReaderAt
	parts []partition
}

// newDisk gives the view of a disk.
func newDisk(r io.ReaderAt, parts []partition) FS {
	d := &joined{folders: map[string]FS{}}
	files := &disk{r: r}
	for _, part := range parts {
		name := fmt.Sprint("p", part.number)
		if view, _, err := openPart(r, part); err == nil {
			d.folders[name] = view
		} else {
			files.parts = append(files.parts, part)
		}
	}
	d.files, _ = volume.New(files) // its root is always a folder
	return d
}

func openPart(r io.ReaderAt, part partition) (FS, Kind, error) {
	section := io.NewSectionReader(r, part.offset, part.size)
	head := make([]byte, min(part.size, headSize))
	if err := volume.ReadFull(section, head, 0); err != nil {
		return nil, "", err
	}
	kind, view, err := openVolume(section, part.size, head)
	if kind == "" {
		err = ErrNoImage
	}
	return view, kind, err
}

const diskRoot = 1

// Root gives the folder of the partitions.
func (d *disk) Root() (volume.Node, error) {
	return volume.Node{ID: diskRoot, Mode: fs.ModeDir | 0o555}, nil
}

// List gives the partitions.
func (d *disk) List(volume.Node) ([]volume.Entry, error) {
	entries := make([]volume.Entry, len(d.parts))
	for i, part := range d.parts {
		entries[i] = volume.Entry{Name: fmt.Sprint("p", part.number), Node: func() (volume.Node, error) {
			return volume.Node{ID: diskRoot + 1 + uint64(i), Mode: 0o444, Size: part.size, Inode: part}, nil
		}}
	}
	return entries, nil
}

// Link is never asked for.
func (d *disk) Link(volume.Node) (string, error) { return "", fs.ErrInvalid }

// Open gives the bytes of a partition.
func (d *disk) Open(n volume.Node) (io.ReaderAt, error) {
	part := n.Inode.(partition)
	return io.NewSectionReader(d.r, part.offset, part.size), nil
}
