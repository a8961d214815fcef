// SPDX-License-Identifier: Apache-2.0

// Package squashfs reads squashfs 4 filesystems in place, for package fsimage.
// It is part of unpack, the second step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// Blocks are decompressed when something in them is read. Each is at most 1 MiB,
// and few are kept.
package squashfs

import (
	"encoding/binary"
	"io"
	"io/fs"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

const (
	superSize = 96
	maxBlock  = 1 << 20
	minBlock  = 4 << 10
)

var little = binary.LittleEndian

// driver is an open filesystem.
type driver struct {
	r          io.ReaderAt
	size       int64 // bytes that belong to the filesystem
	blockSize  int64
	decompress decompressor
	root       uint64
	inodes     int64 // place of the table of inodes
	folders    int64 // place of the table of folders
	fragments  int64 // place of the index of the table of fragments
	fragment   uint32
	metadata   cache
}

// Open reads the superblock.
func Open(r io.ReaderAt, size int64) (volume.Driver, error) {
	super := make([]byte, superSize)
	if err := volume.ReadFull(r, super, 0); err != nil {
		return nil, err
	}
	d := &driver{
		r:         r,
		size:      int64(little.Uint64(super[40:])),
		blockSize: int64(little.Uint32(super[12:])),
		root:      little.Uint64(super[32:]),
		inodes:    int64(little.Uint64(super[64:])),
		folders:   int64(little.Uint64(super[72:])),
		fragments: int64(little.Uint64(super[80:])),
		fragment:  little.Uint32(super[16:]),
	}
	if version := little.Uint16(super[28:]); version != 4 {
		return nil, volume.Unsupported("it is squashfs %d; only squashfs 4 can be read", version)
	}
	switch {
	case d.size < superSize || d.size > size:
		return nil, volume.Malformed("it is said to have %d bytes, and has %d; it may be cut off", d.size, size)
	case d.blockSize < minBlock || d.blockSize > maxBlock || d.blockSize&(d.blockSize-1) != 0:
		return nil, volume.Malformed("its blocks have %d bytes", d.blockSize)
	case !d.inside(d.inodes) || !d.inside(d.folders) || d.fragment > 0 && !d.inside(d.fragments):
		return nil, volume.Malformed("its tables are said to be behind its end")
	}
	var err error
	d.decompress, err = decompressorOf(little.Uint16(super[20:]), d.blockSize)
	return d, err
}

func (d *driver) inside(place int64) bool { return place >= superSize && place < d.size }

// Types of inodes. Those with more fields follow after the others.
const (
	typeFolder = iota + 1
	typeFile
	typeLink
	typeBlockDevice
	typeCharDevice
	typePipe
	typeSocket
	extended = 7
)

var modes = []fs.FileMode{
	typeFolder: fs.ModeDir, typeFile: 0, typeLink: fs.ModeSymlink, typeBlockDevice: fs.ModeDevice,
	typeCharDevice: fs.ModeDevice | fs.ModeCharDevice, typePipe: fs.ModeNamedPipe, typeSocket: fs.ModeSocket,
}

// Root gives the root folder.
func (d *driver) Root() (volume.Node, error) { return d.node(d.root) }

// Link gives what a symbolic link says.
func (d *driver) Link(n volume.Node) (string, error) {
	if n.Size > volume.MaxTarget {
		return "", volume.Malformed("a link says %d bytes", n.Size)
	}
	target := make([]byte, n.Size)
	stream := n.Inode.(inode).rest // a copy: others read the same link
	err := stream.read(target)
	return string(target), err
}

// List reads a folder.
func (d *driver) List(n volume.Node) ([]volume.Entry, error) {
	i := n.Inode.(inode)
	left := i.listing
	if left > volume.MaxFolder {
		return nil, volume.Unsupported("a folder has more than %d bytes", volume.MaxFolder)
	}
	stream := metaStream{d: d, block: d.folders + int64(i.block), offset: int(i.offset)}
	var entries []volume.Entry
	for left > 0 {
		header := make([]byte, 12)
		if err := stream.read(header); err != nil {
			return nil, err
		}
		left -= int64(len(header))
		count, block := little.Uint32(header), little.Uint32(header[4:])
		if count > 255 {
			return nil, volume.Malformed("a part of a folder has %d entries", uint64(count)+1)
		}
		for range count + 1 {
			entry, size, err := d.entry(&stream, uint64(block))
			if err != nil {
				return nil, err
			}
			if left -= size; left < 0 || len(entries) >= volume.MaxEntries {
				return nil, volume.Malformed("a folder has more in it than it says, or too much")
			}
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// entry reads one name and where its inode is.
func (d *driver) entry(stream *metaStream, block uint64) (volume.Entry, int64, error) {
	fixed := make([]byte, 8)
	if err := stream.read(fixed); err != nil {
		return volume.Entry{}, 0, err
	}
	name := make([]byte, int(little.Uint16(fixed[6:]))+1)
	if err := stream.read(name); err != nil {
		return volume.Entry{}, 0, err
	}
	kind := int(little.Uint16(fixed[4:]))
	if kind < typeFolder || kind > typeSocket {
		return volume.Entry{}, 0, volume.Malformed("%q has the type %d", name, kind)
	}
	place := block<<16 | uint64(little.Uint16(fixed))
	return volume.Entry{
		Name: string(name), Type: modes[kind].Type(),
		Node: func() (volume.Node, error) { return d.node(place) },
	}, int64(len(fixed) + len(name)), nil
}
