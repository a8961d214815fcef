// SPDX-License-Identifier: Apache-2.0

package iso9660

import (
	"encoding/binary"
	"time"
	"unicode/utf16"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

// Flags of a record.
const (
	flagFolder  = 0x02
	flagPartial = 0x80 // the file goes on in the next record
	recordSize  = 33   // without the name
	maxExtents  = 1024 // of one file
)

// record is a name in a folder.
type record struct {
	name     string
	extents  []extent
	folder   bool
	partial  bool
	modified time.Time

	// From Rock Ridge.
	mode   uint32
	target string
	child  uint32 // block of the folder that this stands for
	moved  bool   // another record stands for it
	packed bool
}

// extent is consecutive bytes.
type extent struct {
	block uint32
	size  uint32
}

func (r record) size() (sum int64) {
	for _, e := range r.extents {
		sum += int64(e.size)
	}
	return sum
}

// record reads the fixed part of a record, whose length is right.
func (d *driver) record(raw []byte) (record, error) {
	rec := record{folder: raw[25]&flagFolder != 0, partial: raw[25]&flagPartial != 0, modified: recorded(raw[18:25])}
	e := extent{little.Uint32(raw[2:]) + uint32(raw[1]), little.Uint32(raw[10:])}
	if raw[26] != 0 || raw[27] != 0 {
		return rec, volume.Unsupported("a file is interleaved with others")
	}
	if int64(e.block)*d.blockSize+int64(e.size) > d.size && e.size > 0 {
		return rec, volume.Malformed("a file is said to be behind its end; it may be cut off")
	}
	rec.extents = []extent{e}
	return rec, nil
}

// recorded reads a time: six numbers, and the zone in quarters of an hour.
func recorded(raw []byte) time.Time {
	if raw[1] == 0 || raw[2] == 0 {
		return time.Time{}
	}
	zone := time.FixedZone("", int(int8(raw[6]))*15*60)
	return time.Date(1900+int(raw[0]), time.Month(raw[1]), int(raw[2]), int(raw[3]), int(raw[4]), int(raw[5]), 0, zone).UTC()
}

// records reads all of a folder but the records of itself and its parent.
func (d *driver) records(folder record) ([]record, error) {
	size := folder.size()
	if size > volume.MaxFolder {
		return nil, volume.Unsupported("a folder has more than %d bytes", volume.MaxFolder)
	}
	var all []record
	block := make([]byte, d.blockSize)
	for at := int64(0); at < size; at += d.blockSize {
		block = block[:min(d.blockSize, size-at)]
		if err := volume.ReadFull(pieces{d, folder.extents}, block, at); err != nil {
			return nil, err
		}
		var err error
		if all, err = d.inBlock(all, block); err != nil {
			return nil, err
		}
	}
	if len(all) > 0 && all[len(all)-1].partial {
		return nil, volume.Malformed("a file has no last part")
	}
	return all, nil
}

// inBlock adds the records of one block; none stands in two.
func (d *driver) inBlock(all []record, block []byte) ([]record, error) {
	for len(block) > 0 && block[0] != 0 {
		length := int(block[0])
		if length > len(block) || length < recordSize+1 || recordSize+int(block[32]) > length {
			return nil, volume.Malformed("a record of a folder has %d bytes", length)
		}
		raw := block[:length]
		block = block[length:]
		if raw[32] == 1 && raw[33] <= 1 {
			continue // the folder itself, or its parent
		}
		rec, err := d.full(raw)
		if err != nil {
			return nil, err
		}
		if last := len(all) - 1; last >= 0 && all[last].partial {
			all[last].extents = append(all[last].extents, rec.extents...)
			all[last].partial = rec.partial
			if len(all[last].extents) > maxExtents || rec.name != all[last].name {
				return nil, volume.Malformed("a file has parts that do not belong together")
			}
			continue
		}
		if len(all) >= volume.MaxEntries {
			return nil, volume.Unsupported("a folder has more than %d entries", volume.MaxEntries)
		}
		all = append(all, rec)
	}
	return all, nil
}

// full reads a record with its name.
func (d *driver) full(raw []byte) (record, error) {
	rec, err := d.record(raw)
	if err != nil {
		return rec, err
	}
	name := raw[recordSize : recordSize+int(raw[32])]
	if d.joliet {
		units := make([]uint16, len(name)/2)
		for i := range units {
			units[i] = binary.BigEndian.Uint16(name[i*2:])
		}
		rec.name = string(utf16.Decode(units))
		if at := len(rec.name) - 2; at > 0 && rec.name[at] == ';' {
			rec.name = rec.name[:at]
		}
		return rec, nil
	}
	rec.name = plain(string(name))
	if d.rockRidge {
		err = d.extend(&rec, systemUse(raw, d.skip))
	}
	return rec, err
}

// systemUse gives what stands behind the name.
func systemUse(raw []byte, skip int) []byte {
	at := recordSize + int(raw[32])
	at += 1 - int(raw[32])%2 + skip
	return raw[min(at, len(raw)):]
}
