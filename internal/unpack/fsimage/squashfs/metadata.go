// SPDX-License-Identifier: Apache-2.0

package squashfs

import (
	"sync"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

const (
	metaSize   = 8 << 10 // of a block of metadata, but for the last
	metaStored = 1 << 15 // bit of its size: it is not compressed
	metaKept   = 256     // blocks
)

// metaBlock is one block of metadata, and where the next is.
type metaBlock struct {
	data []byte
	next int64
}

// cache keeps blocks of metadata by their place.
type cache struct {
	mu     sync.Mutex
	blocks map[int64]metaBlock
}

// meta reads a block of metadata.
func (d *driver) meta(place int64) (metaBlock, error) {
	d.metadata.mu.Lock()
	known, ok := d.metadata.blocks[place]
	d.metadata.mu.Unlock()
	if ok {
		return known, nil
	}
	if !d.inside(place) {
		return metaBlock{}, volume.Malformed("its metadata is said to be behind its end")
	}
	head := make([]byte, 2)
	if err := volume.ReadFull(d.r, head, place); err != nil {
		return metaBlock{}, err
	}
	size := int64(little.Uint16(head) &^ metaStored)
	if size == 0 || size > metaSize {
		return metaBlock{}, volume.Malformed("a block of metadata has %d bytes", size)
	}
	data := make([]byte, size)
	if err := volume.ReadFull(d.r, data, place+2); err != nil {
		return metaBlock{}, err
	}
	if little.Uint16(head)&metaStored == 0 {
		var err error
		if data, err = d.decompress(data, metaSize); err != nil {
			return metaBlock{}, err
		}
	}
	if len(data) == 0 {
		return metaBlock{}, volume.Malformed("a block of metadata is empty")
	}
	read := metaBlock{data, place + 2 + size}
	d.metadata.mu.Lock()
	defer d.metadata.mu.Unlock()
	if len(d.metadata.blocks) >= metaKept || d.metadata.blocks == nil {
		d.metadata.blocks = map[int64]metaBlock{}
	}
	d.metadata.blocks[place] = read
	return read, nil
}

// metaStream reads metadata from a place on.
type metaStream struct {
	d      *driver
	block  int64
	offset int
}

func (m *metaStream) read(p []byte) error {
	for len(p) > 0 {
		read, err := m.d.meta(m.block)
		if err != nil {
			return err
		}
		if m.offset > len(read.data) {
			return volume.Malformed("its metadata points behind a block")
		}
		n := copy(p, read.data[m.offset:])
		p, m.offset = p[n:], m.offset+n
		if m.offset == len(read.data) {
			m.block, m.offset = read.next, 0
		}
	}
	return nil
}
