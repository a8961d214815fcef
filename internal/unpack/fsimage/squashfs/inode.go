// SPDX-License-Identifier: Apache-2.0

package squashfs

import (
	"time"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

// inode is what is on disk of a file or folder.
type inode struct {
	block   uint64 // of a folder: of its listing, of a file: its first
	offset  uint16 // of the listing of a folder in its block
	listing int64  // bytes of it

	fragment uint32     // that has the end of a file, or noFragment
	inside   uint32     // where the end begins in it
	rest     metaStream // what follows: sizes of blocks, or what a link says
}

const noFragment = 1<<32 - 1

// node reads an inode by its place: the block in the table, and in the block.
func (d *driver) node(place uint64) (volume.Node, error) {
	stream := metaStream{d: d, block: d.inodes + int64(place>>16&(1<<40-1)), offset: int(place & 0xffff)}
	head := make([]byte, 16)
	if err := stream.read(head); err != nil {
		return volume.Node{}, err
	}
	kind, more := int(little.Uint16(head)), false
	if kind > typeSocket {
		kind, more = kind-extended, true
	}
	if kind < typeFolder || kind > typeSocket {
		return volume.Node{}, volume.Malformed("an inode has the type %d", little.Uint16(head))
	}
	n := volume.Node{
		ID:      uint64(little.Uint32(head[12:])),
		Mode:    modes[kind] | volume.UnixMode(uint32(little.Uint16(head[2:]))&0o7777|0o100000),
		ModTime: time.Unix(int64(little.Uint32(head[8:])), 0).UTC(),
	}
	var i inode
	var err error
	switch kind {
	case typeFolder:
		err = i.folder(&stream, more)
	case typeFile:
		err = i.file(&stream, more, &n)
	case typeLink:
		fields := make([]byte, 8)
		err = stream.read(fields)
		n.Size = int64(little.Uint32(fields[4:]))
	}
	i.rest = stream
	n.Inode = i
	return n, err
}

func (i *inode) folder(stream *metaStream, more bool) error {
	fields := make([]byte, 16)
	if more {
		fields = make([]byte, 24)
	}
	if err := stream.read(fields); err != nil {
		return err
	}
	if more {
		i.listing, i.block, i.offset = int64(little.Uint32(fields[4:])), uint64(little.Uint32(fields[8:])), little.Uint16(fields[18:])
	} else {
		i.listing, i.block, i.offset = int64(little.Uint16(fields[8:])), uint64(little.Uint32(fields)), little.Uint16(fields[10:])
	}
	i.listing = max(i.listing-3, 0) // they count "." and ".." too
	return nil
}

func (i *inode) file(stream *metaStream, more bool, n *volume.Node) error {
	fields := make([]byte, 16)
	if more {
		fields = make([]byte, 40)
	}
	if err := stream.read(fields); err != nil {
		return err
	}
	if more {
		i.block, n.Size = little.Uint64(fields), int64(little.Uint64(fields[8:]))
		i.fragment, i.inside = little.Uint32(fields[28:]), little.Uint32(fields[32:])
	} else {
		i.block, n.Size = uint64(little.Uint32(fields)), int64(little.Uint32(fields[12:]))
		i.fragment, i.inside = little.Uint32(fields[4:]), little.Uint32(fields[8:])
	}
	return nil
}
