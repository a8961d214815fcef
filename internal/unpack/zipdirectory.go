// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Parts of a zip archive, by the numbers that they begin with.
const (
	zipLocalSign    = 0x04034b50
	zipEntrySign    = 0x02014b50
	zipEndSign      = 0x06054b50
	zip64EndSign    = 0x06064b50
	zip64LocateSign = 0x07064b50

	zipDescriptorSign = 0x08074b50
	zipDescriptorSize = 12 // without the number

	zipLocalSize    = 30
	zipEntrySize    = 46
	zipEndSize      = 22
	zip64EndSize    = 56
	zip64LocateSize = 20

	maxUint16 = 1<<16 - 1
	maxUint32 = 1<<32 - 1
)

// maxZipDirectory bounds the memory for the list of entries.
const maxZipDirectory = 32 << 20

// little reads numbers from the parts of a zip archive.
var little = binary.LittleEndian

// zipEntry is an entry as the directory at the end of the archive has it.
type zipEntry struct {
	name    string
	flags   uint16
	method  uint16
	crc     uint32
	packed  int64
	size    int64
	mode    uint32 // of Unix, or 0
	folder  bool   // says an attribute of DOS
	offset  int64  // of the local header
	renamed bool   // another field has another name
}

// zipEnd says where the directory is.
type zipEnd struct {
	entries      uint64
	size, offset uint64
	position     int64 // of the end itself
}

// zipArchive is a zip archive that is read from its end. Wherever readers of
// zip archives differ in what they make of one, it is refused.
type zipArchive struct {
	r    io.ReaderAt
	size int64
}

func (z zipArchive) read(offset, size int64) ([]byte, error) {
	if offset < 0 || size < 0 || offset > z.size-size {
		return nil, errors.New("the zip archive is malformed or cut off: a part of it would be outside")
	}
	data := make([]byte, size)
	n, err := z.r.ReadAt(data, offset)
	if int64(n) == size {
		err = nil
	}
	return data, err
}

// end reads the last part of the archive.
func (z zipArchive) end() (zipEnd, error) {
	tail, err := z.read(z.size-min(z.size, zipEndSize+maxUint16), min(z.size, zipEndSize+maxUint16))
	if err != nil {
		return zipEnd{}, err
	}
	at := -1
	if len(tail) >= zipEndSize {
		at = bytes.LastIndex(tail[:len(tail)-zipEndSize+4], little.AppendUint32(nil, zipEndSign))
	}
	if at < 0 {
		return zipEnd{}, errors.New("the zip archive is cut off, or is none: it has no directory at its end")
	}
	tail = tail[at:]
	if zipEndSize+int(little.Uint16(tail[20:])) != len(tail) {
		return zipEnd{}, errors.New("something follows the end of the zip archive")
	}
	if little.Uint16(tail[4:]) != little.Uint16(tail[6:]) || little.Uint16(tail[8:]) != little.Uint16(tail[10:]) {
		return zipEnd{}, errors.New("the zip archive is one of several parts; pack it as one file")
	}
	end := zipEnd{
		entries: uint64(little.Uint16(tail[10:])), size: uint64(little.Uint32(tail[12:])), offset: uint64(little.Uint32(tail[16:])),
		position: z.size - int64(len(tail)),
	}
	if end, err = z.end64(end); err != nil {
		return zipEnd{}, err
	}
	if end.size > maxZipDirectory {
		return zipEnd{}, &LimitError{Limit: "zip-directory", Most: maxZipDirectory, what: "bytes of names in a zip archive", how: "pack it as several archives, or as tar"}
	}
	if end.offset > uint64(end.position) || end.size != uint64(end.position)-end.offset {
		return zipEnd{}, errors.New("the zip archive is malformed: its directory is not where it says; something may stand before or inside the archive")
	}
	return end, nil
}

// end64 replaces numbers that are too large for the end by those of the record
// before it.
func (z zipArchive) end64(end zipEnd) (zipEnd, error) {
	large := end.entries == maxUint16 || end.size == maxUint32 || end.offset == maxUint32
	locate, err := z.read(end.position-zip64LocateSize, zip64LocateSize)
	if err != nil || little.Uint32(locate) != zip64LocateSign {
		return end, nil //nolint:nilerr // an archive without entries has no room for it
	}
	record, err := z.read(int64(little.Uint64(locate[8:])), zip64EndSize)
	if err != nil {
		return zipEnd{}, err
	}
	position := end.position - zip64LocateSize
	if at := little.Uint64(locate[8:]); little.Uint32(record) != zip64EndSign || little.Uint64(record[4:]) != uint64(position)-at-12 {
		return zipEnd{}, errors.New("the zip archive is malformed: its zip64 record is not where it says")
	}
	whole := zipEnd{
		entries: little.Uint64(record[32:]), size: little.Uint64(record[40:]), offset: little.Uint64(record[48:]),
		position: int64(little.Uint64(locate[8:])),
	}
	if !large && (whole.entries != end.entries || whole.size != end.size || whole.offset != end.offset) {
		return zipEnd{}, errors.New("the zip archive is malformed: its two ends differ")
	}
	return whole, nil
}

// entries reads the directory. check is asked before each entry.
func (z zipArchive) entries(end zipEnd, check func(n int64) error) ([]zipEntry, error) {
	r := bufio.NewReaderSize(io.NewSectionReader(z.r, int64(end.offset), int64(end.size)), 64<<10)
	var all []zipEntry
	for {
		entry, err := nextZipEntry(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = check(int64(len(all)) + 1)
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", len(all)+1, err)
		}
		all = append(all, entry)
	}
	if uint64(len(all)) != end.entries {
		return nil, fmt.Errorf("the zip archive is malformed: its end says that it has %d entries, its directory has %d", end.entries, len(all))
	}
	return all, nil
}

// nextZipEntry gives io.EOF only where an entry could begin.
func nextZipEntry(r io.Reader) (zipEntry, error) {
	var fixed [zipEntrySize]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return zipEntry{}, zipCut(err, io.EOF)
	}
	if little.Uint32(fixed[:]) != zipEntrySign {
		return zipEntry{}, errors.New("the zip archive is malformed: there is no entry of its directory where one should be")
	}
	name := make([]byte, little.Uint16(fixed[28:]))
	extra := make([]byte, little.Uint16(fixed[30:]))
	comment := make([]byte, little.Uint16(fixed[32:]))
	for _, part := range [][]byte{name, extra, comment} {
		if _, err := io.ReadFull(r, part); err != nil {
			return zipEntry{}, zipCut(err, nil)
		}
	}
	entry := zipEntry{
		name: string(name), flags: little.Uint16(fixed[8:]), method: little.Uint16(fixed[10:]), crc: little.Uint32(fixed[16:]),
		packed: int64(little.Uint32(fixed[20:])), size: int64(little.Uint32(fixed[24:])), offset: int64(little.Uint32(fixed[42:])),
	}
	attributes := little.Uint32(fixed[38:])
	entry.folder = attributes&0x10 != 0
	if system := fixed[5]; system == 3 || system == 19 { // Unix, macOS
		entry.mode, entry.folder = attributes>>16, false
	}
	if err := zip64Fields(extra, &entry.size, &entry.packed, &entry.offset); err != nil {
		return zipEntry{}, err
	}
	entry.renamed = otherName(extra, name)
	return entry, nil
}

func zipCut(err, atEntry error) error {
	if atEntry != nil && errors.Is(err, atEntry) {
		return io.EOF
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the directory of the zip archive is cut off")
	}
	return err
}
