// SPDX-License-Identifier: Apache-2.0

package ext4

import (
	"io/fs"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

// List reads a folder from its first block to its last. The index of a large
// one stands in blocks that look empty here.
func (d *driver) List(n volume.Node) ([]volume.Entry, error) {
	if n.Size > volume.MaxFolder {
		return nil, volume.Unsupported("a folder has more than %d bytes", volume.MaxFolder)
	}
	i := n.Inode.(*inode)
	if i.flags&flagInline != 0 {
		return d.inlineEntries(i, n.Size)
	}
	bytes, err := d.bytes(n)
	if err != nil {
		return nil, err
	}
	if n.Size%d.blockSize != 0 {
		return nil, volume.Malformed("a folder has %d bytes, which are no whole blocks", n.Size)
	}
	var entries []volume.Entry
	block := make([]byte, d.blockSize)
	for at := int64(0); at < n.Size; at += d.blockSize {
		if err := volume.ReadFull(bytes, block, at); err != nil {
			return nil, err
		}
		if entries, err = d.entries(entries, block); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

const entrySize = 8 // without the name

// entries adds those of one block.
func (d *driver) entries(entries []volume.Entry, block []byte) ([]volume.Entry, error) {
	for len(block) > 0 {
		if len(block) < entrySize {
			return nil, volume.Malformed("an entry of a folder is cut off")
		}
		length, name := d.length(block), int(block[6])
		if length < entrySize || length%4 != 0 || length > len(block) || entrySize+name > length {
			return nil, volume.Malformed("an entry of a folder has %d bytes", length)
		}
		if number := little.Uint32(block); number != 0 {
			if len(entries) >= volume.MaxEntries {
				return nil, volume.Unsupported("a folder has more than %d entries", volume.MaxEntries)
			}
			entry := volume.Entry{
				Name: string(block[entrySize : entrySize+name]),
				Node: func() (volume.Node, error) { return d.node(number) },
			}
			if err := d.setType(&entry, block[7]); err != nil {
				return nil, err
			}
			if entry.Name != "." && entry.Name != ".." {
				entries = append(entries, entry)
			}
		}
		block = block[length:]
	}
	return entries, nil
}

// length gives that of an entry. In the largest blocks it does not fit.
func (d *driver) length(entry []byte) int {
	length := int(little.Uint16(entry[4:]))
	if d.blockSize == 1<<16 && (length == 1<<16-1 || length == 0) {
		return 1 << 16
	}
	return length
}

var types = []fs.FileMode{
	fs.ModeIrregular, 0, fs.ModeDir, fs.ModeDevice | fs.ModeCharDevice, fs.ModeDevice, fs.ModeNamedPipe, fs.ModeSocket, fs.ModeSymlink,
}

// setType says what an entry is, which in old filesystems only the inode knows.
func (d *driver) setType(entry *volume.Entry, kind byte) error {
	if d.has(featureFileType) && kind > 0 && int(kind) < len(types) {
		entry.Type = types[kind]
		return nil
	}
	n, err := entry.Node()
	entry.Type = n.Mode.Type()
	return err
}
