// SPDX-License-Identifier: Apache-2.0

// Package iso9660 reads ISO 9660 filesystems in place, with the names of Rock
// Ridge or else Joliet, for package fsimage. It is part of unpack, the second
// step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// Without either, names are shown as Linux does: in small letters, without the
// version.
package iso9660

import (
	"encoding/binary"
	"io"
	"io/fs"
	"strings"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

const (
	sector         = 2048
	firstSector    = 16
	maxDescriptors = 64
	rootPlace      = 156 // in a descriptor
)

// Types of descriptors.
const (
	primary       = 1
	supplementary = 2
	terminator    = 255
)

var little = binary.LittleEndian

// driver is an open filesystem.
type driver struct {
	r         io.ReaderAt
	size      int64
	blockSize int64
	root      record
	joliet    bool
	rockRidge bool
	skip      int // bytes before the fields of Rock Ridge
}

// Open reads the descriptors of the volume.
func Open(r io.ReaderAt, size int64) (volume.Driver, error) {
	d := &driver{r: r, size: size}
	main, joliet, err := descriptors(r)
	if err != nil {
		return nil, err
	}
	d.blockSize = int64(little.Uint16(main[128:]))
	if d.blockSize != 512 && d.blockSize != 1024 && d.blockSize != sector {
		return nil, volume.Malformed("its blocks have %d bytes", d.blockSize)
	}
	if d.root, err = d.record(main[rootPlace : rootPlace+34]); err != nil {
		return nil, err
	}
	if err := d.findRockRidge(); err != nil {
		return nil, err
	}
	if joliet != nil && !d.rockRidge {
		d.joliet = true
		d.root, err = d.record(joliet[rootPlace : rootPlace+34])
	}
	return d, err
}

// descriptors gives that of the filesystem, and that of Joliet if there is one.
func descriptors(r io.ReaderAt) (main, joliet []byte, err error) {
	for i := range int64(maxDescriptors) {
		data := make([]byte, sector)
		if err := volume.ReadFull(r, data, (firstSector+i)*sector); err != nil {
			return nil, nil, err
		}
		if string(data[1:6]) != "CD001" {
			return nil, nil, volume.Malformed("its list of descriptors does not end")
		}
		switch data[0] {
		case primary:
			if main == nil {
				main = data
			}
		case supplementary:
			if escape := string(data[88:91]); escape == "%/@" || escape == "%/C" || escape == "%/E" {
				joliet = data
			}
		case terminator:
			if main == nil {
				return nil, nil, volume.Malformed("it has no primary descriptor")
			}
			return main, joliet, nil
		}
	}
	return nil, nil, volume.Malformed("it has more than %d descriptors", maxDescriptors)
}

// node describes what a record is about.
func (d *driver) node(rec record) (volume.Node, error) {
	n := volume.Node{Mode: 0o444, Size: rec.size(), ModTime: rec.modified, Inode: rec}
	if rec.folder {
		n.Mode = fs.ModeDir | 0o555
	}
	if rec.mode != 0 {
		n.Mode = volume.UnixMode(rec.mode)
	}
	if rec.child > 0 { // the folder stands elsewhere, since it was too deep
		moved, err := d.self(rec.child)
		if err != nil {
			return n, err
		}
		rec.extents, n.Inode, n.Size = moved.extents, moved, moved.size()
		n.Mode = fs.ModeDir | n.Mode.Perm()
	}
	if n.Mode.IsDir() {
		n.ID = uint64(rec.extents[0].block)
	}
	if n.Mode.Type() == fs.ModeSymlink {
		n.Size = int64(len(rec.target))
	}
	return n, nil
}

// self reads the record that a folder has of itself.
func (d *driver) self(block uint32) (record, error) {
	data := make([]byte, sector)
	if err := volume.ReadFull(d.r, data[:d.blockSize], int64(block)*d.blockSize); err != nil {
		return record{}, err
	}
	if data[0] < 34 {
		return record{}, volume.Malformed("a folder that was moved is not where it is said to be")
	}
	return d.record(data[:data[0]])
}

// Root gives the root folder.
func (d *driver) Root() (volume.Node, error) { return d.node(d.root) }

// Link gives what a symbolic link says.
func (d *driver) Link(n volume.Node) (string, error) { return n.Inode.(record).target, nil }

// Open gives the bytes of a file, which may be in several pieces.
func (d *driver) Open(n volume.Node) (io.ReaderAt, error) {
	rec := n.Inode.(record)
	if rec.packed {
		return nil, volume.Unsupported("the file is compressed with zisofs")
	}
	return pieces{d, rec.extents}, nil
}

type pieces struct {
	d       *driver
	extents []extent
}

// ReadAt reads across pieces.
func (p pieces) ReadAt(data []byte, offset int64) (done int, err error) {
	for _, e := range p.extents {
		if offset >= int64(e.size) {
			offset -= int64(e.size)
			continue
		}
		n := int(min(int64(len(data)-done), int64(e.size)-offset))
		if err := volume.ReadFull(p.d.r, data[done:done+n], int64(e.block)*p.d.blockSize+offset); err != nil {
			return done, err
		}
		if done += n; done == len(data) {
			return done, nil
		}
		offset = 0
	}
	return done, io.EOF
}

// List reads a folder.
func (d *driver) List(n volume.Node) ([]volume.Entry, error) {
	records, err := d.records(n.Inode.(record))
	if err != nil {
		return nil, err
	}
	entries := make([]volume.Entry, 0, len(records))
	for _, rec := range records {
		if rec.moved {
			continue // it is listed where it belongs
		}
		about, err := d.shallow(rec)
		if err != nil {
			return nil, err
		}
		entries = append(entries, volume.Entry{Name: rec.name, Type: about, Node: func() (volume.Node, error) { return d.node(rec) }})
	}
	return entries, nil
}

// shallow gives the type without reading more.
func (d *driver) shallow(rec record) (fs.FileMode, error) {
	if rec.child > 0 {
		return fs.ModeDir, nil
	}
	n, err := d.node(rec)
	return n.Mode.Type(), err
}

// plain gives a name as Linux shows it.
func plain(name string) string {
	name, _, _ = strings.Cut(name, ";")
	return strings.ToLower(strings.TrimSuffix(name, "."))
}
