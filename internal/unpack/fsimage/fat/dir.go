// SPDX-License-Identifier: Apache-2.0

package fat

import (
	"io"
	"io/fs"
	"strings"
	"time"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

// Attributes and other bytes of an entry.
const (
	attrReadOnly = 0x01
	attrLabel    = 0x08
	attrFolder   = 0x10
	attrLong     = 0x0f // a piece of a long name

	markEnd     = 0x00
	markDeleted = 0xe5
	markE5      = 0x05 // stands for 0xe5

	lowerName   = 0x08
	lowerEnding = 0x10

	longLast  = 0x40 // bit of the piece that comes first and is the last
	longPiece = 13   // letters
	maxPieces = 20
	maxFolder = 65536 * entrySize
)

// entry is what a folder says of a file.
type entry struct {
	cluster uint32
	root    bool
}

// bytesOf gives those of a folder, whose size stands nowhere.
func (d *driver) bytesOf(e entry) (io.ReaderAt, int64, error) {
	if e.root && d.width < 32 {
		return io.NewSectionReader(d.r, d.root, d.rootSize), d.rootSize, nil
	}
	most := maxFolder/d.cluster + 1
	c, err := d.chain(e.cluster, most)
	if err != nil {
		return nil, 0, err
	}
	if c.clusters >= most {
		return nil, 0, volume.Malformed("the clusters of a folder do not end")
	}
	return c, c.clusters * d.cluster, nil
}

// List reads a folder.
func (d *driver) List(n volume.Node) ([]volume.Entry, error) {
	bytes, size, err := d.bytesOf(n.Inode.(entry))
	if err != nil {
		return nil, err
	}
	all := make([]byte, min(size, maxFolder))
	if err := volume.ReadFull(bytes, all, 0); err != nil {
		return nil, err
	}
	var entries []volume.Entry
	var long longName
	for ; len(all) >= entrySize && all[0] != markEnd; all = all[entrySize:] {
		raw := all[:entrySize]
		switch attributes := raw[11]; {
		case raw[0] == markDeleted:
			long = longName{}
		case attributes&0x3f == attrLong:
			long.add(raw)
		case attributes&attrLabel != 0:
			long = longName{}
		default:
			name := long.take(raw)
			long = longName{}
			if name != "." && name != ".." {
				entries = append(entries, d.entry(raw, name))
			}
		}
	}
	return entries, nil
}

func (d *driver) entry(raw []byte, name string) volume.Entry {
	e := entry{cluster: uint32(little.Uint16(raw[26:]))}
	if d.width == 32 {
		e.cluster |= uint32(little.Uint16(raw[20:])) << 16
	}
	n := volume.Node{
		ID: uint64(e.cluster), Mode: 0o644, Size: int64(little.Uint32(raw[28:])), Inode: e,
		ModTime: modified(little.Uint16(raw[24:]), little.Uint16(raw[22:])),
	}
	if raw[11]&attrReadOnly != 0 {
		n.Mode = 0o444
	}
	if raw[11]&attrFolder != 0 {
		n.Mode, n.Size = fs.ModeDir|0o755, 0
	}
	return volume.Entry{Name: name, Type: n.Mode.Type(), Node: func() (volume.Node, error) {
		if n.Mode.IsDir() && e.cluster < 2 {
			return n, volume.Malformed("the folder %q has no clusters", name)
		}
		return n, nil
	}}
}

// modified reads a day and a time, without a zone.
func modified(day, clock uint16) time.Time {
	if day == 0 {
		return time.Time{}
	}
	return time.Date(1980+int(day>>9), time.Month(day>>5&15), int(day&31), int(clock>>11), int(clock>>5&63), int(clock&31)*2, 0, time.UTC)
}

// longName gathers the pieces of a long name, which come last first before the
// entry that they belong to.
type longName struct {
	pieces   [][]uint16 // the last first
	left     int        // pieces that have to come
	checksum byte
}

func (l *longName) add(raw []byte) {
	number := int(raw[0] &^ longLast)
	if raw[0]&longLast != 0 && number <= maxPieces {
		*l = longName{left: number, checksum: raw[13]}
	}
	if number == 0 || number != l.left || raw[13] != l.checksum {
		*l = longName{}
		return
	}
	l.left--
	letters := make([]uint16, 0, longPiece)
	for _, part := range [][]byte{raw[1:11], raw[14:26], raw[28:32]} {
		for i := 0; i < len(part); i += 2 {
			letters = append(letters, little.Uint16(part[i:]))
		}
	}
	l.pieces = append(l.pieces, letters)
}

// take gives the name of an entry: the long one if all of it came and it
// belongs to the entry.
func (l *longName) take(raw []byte) string {
	if len(l.pieces) == 0 || l.left != 0 || checksum(raw[:11]) != l.checksum {
		return short(raw)
	}
	var letters []uint16
	for i := len(l.pieces) - 1; i >= 0; i-- {
		letters = append(letters, l.pieces[i]...)
	}
	for i, letter := range letters {
		if letter == 0 {
			letters = letters[:i]
			break
		}
	}
	return string(utf16.Decode(letters))
}

func checksum(name []byte) (sum byte) {
	for _, b := range name {
		sum = sum>>1 | sum<<7
		sum += b
	}
	return sum
}

// short gives the name of eight letters and an ending of three. What letters
// beyond ASCII mean, the machine knew on which the image was made; here they are
// what they are to most.
func short(raw []byte) string {
	first := append([]byte{}, raw[:8]...)
	if first[0] == markE5 {
		first[0] = markDeleted
	}
	name, ending := letters(first), letters(raw[8:11])
	if raw[12]&lowerName != 0 {
		name = strings.ToLower(name)
	}
	if raw[12]&lowerEnding != 0 {
		ending = strings.ToLower(ending)
	}
	if ending != "" {
		name += "." + ending
	}
	return name
}

func letters(raw []byte) string {
	var out strings.Builder
	for _, b := range raw {
		out.WriteRune(charmap.CodePage437.DecodeByte(b))
	}
	return strings.TrimRight(out.String(), " ")
}
