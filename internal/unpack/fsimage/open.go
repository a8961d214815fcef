// SPDX-License-Identifier: Apache-2.0

package fsimage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"rukpak.io/rukpak/internal/unpack/fsimage/ext4"
	"rukpak.io/rukpak/internal/unpack/fsimage/fat"
	"rukpak.io/rukpak/internal/unpack/fsimage/iso9660"
	"rukpak.io/rukpak/internal/unpack/fsimage/squashfs"
	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

// Kind is what an image is.
type Kind string

// The kinds of images.
const (
	Ext4     Kind = "ext4" // also ext2 and ext3
	SquashFS Kind = "squashfs"
	ISO9660  Kind = "iso9660"
	FAT      Kind = "fat"  // FAT12, FAT16 and FAT32
	Disk     Kind = "disk" // a partition table with any of the others
)

// ErrNoImage says that a file is none of the kinds of images.
var ErrNoImage = errors.New("it is no filesystem image that can be read in place (ext2 to ext4, squashfs, ISO 9660, FAT, or a disk with such partitions)")

// FS is the read-only view of an image. Its files implement io.ReaderAt.
type FS interface {
	fs.ReadFileFS
	fs.ReadDirFS
	fs.StatFS
	fs.ReadLinkFS
}

// drivers by kind; begins finds what is said to be there at its place.
var drivers = []struct {
	kind   Kind
	begins func(head []byte) bool
	open   func(r io.ReaderAt, size int64) (volume.Driver, error)
}{
	{SquashFS, magicAt(0, "hsqs"), squashfs.Open},
	{ISO9660, magicAt(16*2048+1, "CD001"), iso9660.Open},
	{Ext4, magicAt(1024+56, "\x53\xef"), ext4.Open},
	{FAT, fat.Begins, fat.Open},
}

// headSize is how much of an image has to be seen to tell what it is.
const headSize = 16*2048 + 8

func magicAt(offset int, magic string) func([]byte) bool {
	return func(head []byte) bool {
		return len(head) >= offset+len(magic) && string(head[offset:offset+len(magic)]) == magic
	}
}

// Open gives the view of an image. Its bytes have to be readable as long as the
// view is used. The error wraps ErrNoImage if it is none, volume.ErrMalformed or
// volume.ErrUnsupported if it cannot be read, or is that of r.
func Open(r io.ReaderAt, size int64) (FS, Kind, error) {
	head := make([]byte, min(size, headSize))
	if err := volume.ReadFull(r, head, 0); err != nil {
		return nil, "", err
	}
	if kind, view, err := openVolume(r, size, head); kind != "" {
		return view, kind, err
	}
	parts, err := partitions(r, size, head)
	if err != nil {
		return nil, Disk, err
	}
	if len(parts) == 0 {
		return nil, "", ErrNoImage
	}
	return newDisk(r, parts), Disk, nil
}

func openVolume(r io.ReaderAt, size int64, head []byte) (Kind, FS, error) {
	for _, driver := range drivers {
		if !driver.begins(head) {
			continue
		}
		opened, err := driver.open(r, size)
		if err == nil {
			var view *volume.FS
			if view, err = volume.New(opened); err == nil {
				return driver.kind, view, nil
			}
		}
		return driver.kind, nil, fmt.Errorf("%s: %w", driver.kind, err)
	}
	return "", nil, nil
}
