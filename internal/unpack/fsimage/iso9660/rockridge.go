// SPDX-License-Identifier: Apache-2.0

package iso9660

import (
	"strings"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

// maxContinued is how often the fields of one record may go on elsewhere.
const maxContinued = 32

// Flags of names and of the parts of links.
const (
	goesOn  = 1
	current = 2
	parent  = 4
	root    = 8
)

// findRockRidge looks whether the root says that it has the fields of Rock
// Ridge, which are then in all records.
func (d *driver) findRockRidge() error {
	data := make([]byte, d.blockSize)
	if err := volume.ReadFull(d.r, data, int64(d.root.extents[0].block)*d.blockSize); err != nil {
		return err
	}
	length := int(data[0])
	if length < recordSize+1 || recordSize+int(data[32]) > length {
		return volume.Malformed("its root has no record of itself")
	}
	fields := systemUse(data[:length], 0)
	if len(fields) < 7 || string(fields[:2]) != "SP" || fields[4] != 0xbe || fields[5] != 0xef {
		return nil
	}
	d.skip = int(fields[6])
	return d.each(fields, func(kind string, _ []byte) error {
		if kind == "RR" || kind == "PX" {
			d.rockRidge = true
		}
		return nil
	})
}

// each calls do for the fields, also those that stand elsewhere.
func (d *driver) each(fields []byte, do func(kind string, field []byte) error) error {
	for range maxContinued {
		var next []byte // where the fields go on
		for len(fields) >= 4 {
			length := int(fields[2])
			if length < 4 || length > len(fields) {
				break // padding
			}
			kind, field := string(fields[:2]), fields[4:length]
			fields = fields[length:]
			switch {
			case kind == "ST":
				fields = nil
			case kind == "CE" && len(field) >= 24:
				next = field
			default:
				if err := do(kind, field); err != nil {
					return err
				}
			}
		}
		if next == nil {
			return nil
		}
		length := int64(little.Uint32(next[16:]))
		if length > sector {
			return volume.Malformed("the fields of a record have %d bytes", length)
		}
		fields = make([]byte, length)
		place := int64(little.Uint32(next))*d.blockSize + int64(little.Uint32(next[8:]))
		if err := volume.ReadFull(d.r, fields, place); err != nil {
			return err
		}
	}
	return volume.Malformed("the fields of a record do not end")
}

// extend adds to a record what Rock Ridge says of it.
func (d *driver) extend(rec *record, fields []byte) error {
	var name strings.Builder
	var link target
	err := d.each(fields, func(kind string, field []byte) error {
		switch {
		case kind == "PX" && len(field) >= 4:
			rec.mode = little.Uint32(field)
		case kind == "NM" && len(field) >= 1:
			name.Write(field[1:])
		case kind == "SL" && len(field) >= 1:
			link.add(field[1:])
		case kind == "CL" && len(field) >= 4:
			rec.child = little.Uint32(field)
		case kind == "RE":
			rec.moved = true
		case kind == "ZF":
			rec.packed = true
		}
		if name.Len()+link.text.Len() > volume.MaxTarget {
			return volume.Malformed("a record has a name or a link of more than %d bytes", volume.MaxTarget)
		}
		return nil
	})
	if name.Len() > 0 {
		rec.name = name.String()
	}
	rec.target = link.text.String()
	return err
}

// target puts a link together.
type target struct {
	text   strings.Builder
	within bool // the next part goes on with the last
}

func (t *target) add(parts []byte) {
	for len(parts) >= 2 && int(parts[1])+2 <= len(parts) {
		flags, text := parts[0], string(parts[2:2+int(parts[1])])
		parts = parts[2+int(parts[1]):]
		if said := t.text.String(); !t.within && said != "" && said != "/" {
			t.text.WriteByte('/')
		}
		switch {
		case flags&root != 0:
			t.text.Reset()
			t.text.WriteByte('/')
		case flags&parent != 0:
			t.text.WriteString("..")
		case flags&current != 0:
			t.text.WriteByte('.')
		default:
			t.text.WriteString(text)
		}
		t.within = flags&goesOn != 0
	}
}
