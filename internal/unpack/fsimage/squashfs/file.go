// SPDX-License-Identifier: Apache-2.0

package squashfs

import (
	"io"
	"sync"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

const (
	stored      = 1 << 24 // bit of the size of a block that is not compressed
	maxBlocks   = 1 << 20 // of one file
	fragmentLen = 16      // of an entry of the table of fragments
)

// Open reads where the blocks of a file are.
func (d *driver) Open(n volume.Node) (io.ReaderAt, error) {
	i := n.Inode.(inode)
	blocks := n.Size / d.blockSize
	if i.fragment == noFragment && n.Size%d.blockSize > 0 {
		blocks++
	}
	if blocks > maxBlocks {
		return nil, volume.Unsupported("a file has more than %d blocks", maxBlocks)
	}
	f := &file{d: d, size: n.Size, inode: i, held: -1}
	raw := make([]byte, 4)
	place := int64(i.block)
	for range blocks {
		if err := i.rest.read(raw); err != nil {
			return nil, err
		}
		size := little.Uint32(raw)
		f.blocks = append(f.blocks, block{place, size})
		if place += int64(size &^ stored); place < 0 || place > d.size {
			return nil, volume.Malformed("the blocks of a file are said to be behind its end")
		}
	}
	return f, nil
}

// block is where the bytes of a block are. Its size has the bit stored.
type block struct {
	place int64
	size  uint32
}

// file reads one block at a time and keeps the last.
type file struct {
	d      *driver
	size   int64
	inode  inode
	blocks []block

	mu   sync.Mutex
	held int64 // number of the block in data
	data []byte
}

// ReadAt reads across blocks.
func (f *file) ReadAt(p []byte, offset int64) (done int, err error) {
	if offset < 0 || offset >= f.size {
		return 0, io.EOF
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for done < len(p) && offset < f.size {
		if err := f.hold(offset / f.d.blockSize); err != nil {
			return done, err
		}
		n := copy(p[done:], f.data[offset%f.d.blockSize:])
		done += n
		offset += int64(n)
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// hold reads the block with a number, unless it is there.
func (f *file) hold(number int64) error {
	if f.held == number {
		return nil
	}
	want := min(f.d.blockSize, f.size-number*f.d.blockSize)
	var data []byte
	var err error
	if number < int64(len(f.blocks)) {
		data, err = f.d.block(f.blocks[number], want)
	} else {
		data, err = f.end(want)
	}
	if err == nil && int64(len(data)) != want {
		err = volume.Malformed("a block of a file has %d bytes and not %d", len(data), want)
	}
	if err != nil {
		return err
	}
	f.held, f.data = number, data
	return nil
}

// block reads and decompresses a block. One without bytes is zeros.
func (d *driver) block(b block, want int64) ([]byte, error) {
	size := int64(b.size &^ stored)
	if size == 0 {
		return make([]byte, want), nil
	}
	if size > d.blockSize || b.place < 0 || size > d.size-b.place {
		return nil, volume.Malformed("a block of a file is too large or behind its end")
	}
	packed := make([]byte, size)
	if err := volume.ReadFull(d.r, packed, b.place); err != nil {
		return nil, err
	}
	if b.size&stored != 0 {
		return packed, nil
	}
	return d.decompress(packed, d.blockSize)
}

// end reads the last bytes of a file, which stand in one block with those of
// others.
func (f *file) end(want int64) ([]byte, error) {
	d := f.d
	if f.inode.fragment >= d.fragment {
		return nil, volume.Malformed("a file names fragment %d, and there are %d", f.inode.fragment, d.fragment)
	}
	const perBlock = metaSize / fragmentLen
	raw := make([]byte, fragmentLen)
	if err := volume.ReadFull(d.r, raw[:8], d.fragments+int64(f.inode.fragment/perBlock)*8); err != nil {
		return nil, err
	}
	stream := metaStream{d: d, block: int64(little.Uint64(raw)), offset: int(f.inode.fragment%perBlock) * fragmentLen}
	if err := stream.read(raw); err != nil {
		return nil, err
	}
	data, err := d.block(block{int64(little.Uint64(raw)), little.Uint32(raw[8:])}, d.blockSize)
	if err != nil {
		return nil, err
	}
	from := int64(f.inode.inside)
	if from+want > int64(len(data)) {
		return nil, volume.Malformed("the end of a file is not inside its fragment")
	}
	return data[from : from+want], nil
}
