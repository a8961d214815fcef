// SPDX-License-Identifier: Apache-2.0

package ext4

import (
	"io"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

// Flags of an inode.
const (
	flagEncrypted = 0x800
	flagExtents   = 0x80000
	flagInline    = 0x10000000
)

// bytes gives those of a file, a folder or a long link.
func (d *driver) bytes(n volume.Node) (io.ReaderAt, error) {
	i := n.Inode.(*inode)
	switch {
	case i.flags&flagEncrypted != 0:
		return nil, volume.Unsupported("inode %d is encrypted", i.number)
	case i.flags&flagInline != 0:
		data, err := i.inline(n.Size)
		return padded{data, n.Size}, err
	case i.flags&flagExtents != 0:
		return &blockReader{d: d, size: n.Size, find: func(block uint64) (run, error) { return d.extent(i, block) }}, nil
	default:
		return &blockReader{d: d, size: n.Size, find: func(block uint64) (run, error) { return d.mapped(i, block) }}, nil
	}
}

// padded is bytes and zeros behind them.
type padded struct {
	data []byte
	size int64
}

func (p padded) ReadAt(to []byte, offset int64) (int, error) {
	if offset < 0 || offset >= p.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(to)), p.size-offset))
	clear(to[:n])
	if offset < int64(len(p.data)) {
		copy(to[:n], p.data[offset:])
	}
	if n < len(to) {
		return n, io.EOF
	}
	return n, nil
}

// run is consecutive blocks of a file.
type run struct {
	place uint64 // of the first block on disk
	count uint64
	hole  bool // they are zeros and have no place
}

// blockReader reads a file whose blocks stand anywhere.
type blockReader struct {
	d    *driver
	size int64
	find func(block uint64) (run, error)
}

// ReadAt reads across blocks and holes.
func (b *blockReader) ReadAt(p []byte, offset int64) (done int, err error) {
	if offset < 0 || offset >= b.size {
		return 0, io.EOF
	}
	atEnd := int64(len(p)) > b.size-offset
	p = p[:min(int64(len(p)), b.size-offset)]
	for done < len(p) {
		at := offset + int64(done)
		found, err := b.find(uint64(at / b.d.blockSize))
		if err != nil {
			return done, err
		}
		skip := at % b.d.blockSize
		n := int(min(uint64(len(p)-done), found.count*uint64(b.d.blockSize)-uint64(skip)))
		if err := b.d.readRun(p[done:done+n], found, skip); err != nil {
			return done, err
		}
		done += n
	}
	if atEnd {
		return done, io.EOF
	}
	return done, nil
}

func (d *driver) readRun(p []byte, found run, skip int64) error {
	if found.hole {
		clear(p)
		return nil
	}
	if found.place >= d.blocks || found.count > d.blocks-found.place {
		return volume.Malformed("a file is said to be behind its end")
	}
	return volume.ReadFull(d.r, p, int64(found.place)*d.blockSize+skip)
}

// Parts of the tree of extents.
const (
	extentMagic = 0xf30a
	extentSize  = 12
	extentDepth = 5
	extentUnset = 1 << 15 // lengths above are of blocks that were never written
	maxBlock    = 1 << 32
)

// extent finds the blocks from one on in the tree of an inode.
func (d *driver) extent(i *inode, block uint64) (run, error) {
	node := i.block()
	if block >= maxBlock {
		return run{}, volume.Malformed("inode %d is larger than it can be", i.number)
	}
	end := uint64(maxBlock) // first block that is not below this node
	for depth := -1; ; {
		entries := int(little.Uint16(node[2:]))
		level := int(little.Uint16(node[6:]))
		if little.Uint16(node) != extentMagic || (entries+1)*extentSize > len(node) || level > extentDepth || depth >= 0 && level != depth-1 {
			return run{}, volume.Malformed("the extents of inode %d are broken", i.number)
		}
		depth = level
		at := -1 // last entry that begins at the block or before
		for e := range entries {
			if first := uint64(little.Uint32(node[(e+1)*extentSize:])); first > block {
				end = min(end, first)
				break
			}
			at = e
		}
		if at < 0 {
			return run{hole: true, count: end - block}, nil
		}
		entry := node[(at+1)*extentSize:]
		if level == 0 {
			return leaf(entry, block, end), nil
		}
		place := uint64(little.Uint32(entry[4:])) | uint64(little.Uint16(entry[8:]))<<32
		if place >= d.blocks {
			return run{}, volume.Malformed("the extents of inode %d are said to be behind its end", i.number)
		}
		node = make([]byte, d.blockSize)
		if err := volume.ReadFull(d.r, node, int64(place)*d.blockSize); err != nil {
			return run{}, err
		}
	}
}

// leaf gives what an extent has from a block on, or the hole behind it.
func leaf(entry []byte, block, end uint64) run {
	first, count := uint64(little.Uint32(entry)), uint64(little.Uint16(entry[4:]))
	unset := count > extentUnset
	if unset {
		count -= extentUnset
	}
	skip := block - first
	if skip >= count {
		return run{hole: true, count: max(end-block, 1)}
	}
	place := uint64(little.Uint32(entry[8:])) | uint64(little.Uint16(entry[6:]))<<32
	return run{place: place + skip, count: count - skip, hole: unset}
}

// direct is how many blocks the inode of an older file names itself.
const direct = 12

// mapped finds a block of a file that has lists of blocks, and lists of lists.
func (d *driver) mapped(i *inode, block uint64) (run, error) {
	pointers := i.block()
	if block < direct {
		return single(little.Uint32(pointers[block*4:])), nil
	}
	block -= direct
	perBlock := uint64(d.blockSize / 4)
	span := uint64(1) // blocks below one pointer of the list
	for level := uint64(0); level < 3; level++ {
		if block < span*perBlock {
			return d.indirect(little.Uint32(pointers[(direct+level)*4:]), block, span)
		}
		block -= span * perBlock
		span *= perBlock
	}
	return run{}, volume.Malformed("inode %d is larger than it can be", i.number)
}

// indirect follows lists of blocks down to one block.
func (d *driver) indirect(list uint32, block, span uint64) (run, error) {
	perBlock := uint64(d.blockSize / 4)
	pointer := make([]byte, 4)
	for {
		if list == 0 {
			return run{hole: true, count: span*perBlock - block}, nil
		}
		if uint64(list) >= d.blocks {
			return run{}, volume.Malformed("a list of blocks is said to be behind its end")
		}
		if err := volume.ReadFull(d.r, pointer, int64(list)*d.blockSize+int64(block/span)*4); err != nil {
			return run{}, err
		}
		list = little.Uint32(pointer)
		if span == 1 {
			return single(list), nil
		}
		block, span = block%span, span/perBlock
	}
}

func single(block uint32) run { return run{place: uint64(block), count: 1, hole: block == 0} }
