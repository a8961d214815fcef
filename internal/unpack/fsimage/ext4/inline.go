// SPDX-License-Identifier: Apache-2.0

package ext4

import (
	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

// Parts of an inode behind its fixed fields.
const (
	attributeMagic  = 0xea020000
	attributeSize   = 16 // without the name
	attributeSystem = 7  // the name begins with "system."
)

// inline gives the bytes of a file that stand in its inode: the first where
// others have their blocks, the rest in an attribute. What is not there is
// zeros, as in other files.
func (i *inode) inline(size int64) ([]byte, error) {
	data := i.block()
	if size <= int64(len(data)) {
		return data[:size], nil
	}
	rest, err := i.attribute("data")
	if err != nil {
		return nil, err
	}
	rest = rest[:min(int64(len(rest)), size-int64(len(data)))]
	return append(append([]byte{}, data...), rest...), nil
}

// attribute finds one of the system's.
func (i *inode) attribute(name string) ([]byte, error) {
	broken := volume.Malformed("the attributes of inode %d are broken", i.number)
	if len(i.raw) < 132 {
		return nil, broken
	}
	start := 128 + int(little.Uint16(i.raw[128:]))
	if start > len(i.raw)-4 || little.Uint32(i.raw[start:]) != attributeMagic {
		return nil, broken
	}
	values := i.raw[start+4:]
	for list := values; len(list) >= attributeSize && little.Uint32(list) != 0; {
		length := int(list[0])
		if attributeSize+length > len(list) {
			return nil, broken
		}
		if list[1] == attributeSystem && string(list[attributeSize:attributeSize+length]) == name {
			at, size := int(little.Uint16(list[2:])), uint64(little.Uint32(list[8:]))
			if at > len(values) || size > uint64(len(values)-at) || little.Uint32(list[4:]) != 0 {
				return nil, broken
			}
			return values[at : at+int(size)], nil
		}
		list = list[min((attributeSize+length+3)&^3, len(list)):]
	}
	return nil, broken
}

// inlineEntries gives those of a folder that stands in its inode. Before them is
// the number of its parent.
func (d *driver) inlineEntries(i *inode, size int64) ([]volume.Entry, error) {
	first := i.block()
	entries, err := d.entries(nil, first[4:])
	if err != nil || size <= int64(len(first)) {
		return entries, err
	}
	rest, err := i.attribute("data")
	if err != nil || len(rest) == 0 {
		return entries, err
	}
	return d.entries(entries, rest)
}
