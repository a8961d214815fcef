// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bufio"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"rukpak.io/rukpak/internal/content"
)

// Bits of the flags of an entry, ways of packing it, and what it is on Unix.
const (
	zipEncrypted  = 1<<0 | 1<<6 | 1<<13
	zipDescriptor = 1 << 3 // sizes and checksum follow the bytes

	zipStored   = 0
	zipDeflated = 8

	unixType   = 0o170000
	unixFile   = 0o100000
	unixFolder = 0o040000
	unixLink   = 0o120000
)

// zip reads a zip archive, which has its list of entries at the end.
func (u *unpacking) zip() error {
	temp, size, err := u.spool()
	if err != nil {
		return err
	}
	defer temp.Close() //nolint:errcheck // the session removes it too
	archive := zipArchive{r: temp, size: size}
	end, err := archive.end()
	if err != nil {
		return err
	}
	entries, err := archive.entries(end, func(n int64) error { return u.budget.limits.check(limitFiles, n) })
	if err != nil {
		return err
	}
	if err := u.apart(archive, entries, int64(end.offset)); err != nil {
		return err
	}
	u.writers = newWriters(u.sink)
	err = u.zipEntries(archive, entries)
	if writeErr := u.writers.wait(u.layer.Entries); writeErr != nil {
		return writeErr
	}
	return err
}

// apart makes sure that no two entries share bytes, by which a small archive
// could unpack to an endless one, and that each is what its own header says.
func (u *unpacking) apart(archive zipArchive, entries []zipEntry, end int64) error {
	order := make([]int, len(entries))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(min(max(entries[a].offset-entries[b].offset, -1), 1)) })
	free := int64(0) // where the bytes of the last entry end
	for _, i := range order {
		e := &entries[i]
		if e.offset < free {
			return u.name(errors.New("it shares bytes of the archive with another entry"), e.name)
		}
		data, err := archive.checkLocal(e)
		if err != nil {
			return u.name(err, e.name)
		}
		if e.packed > end-data {
			return u.name(errors.New("its bytes are not inside the archive"), e.name)
		}
		e.offset, free = data, data+e.packed
		if e.flags&zipDescriptor != 0 {
			if err := archive.checkDescriptor(free, e.crc); err != nil {
				return u.name(err, e.name)
			}
			free += zipDescriptorSize
		}
	}
	return nil
}

// checkLocal compares an entry with the header before its bytes, which readers
// of a stream believe. It gives the place of the bytes.
func (z zipArchive) checkLocal(e *zipEntry) (int64, error) {
	fixed, err := z.read(e.offset, zipLocalSize)
	if err != nil {
		return 0, err
	}
	if little.Uint32(fixed) != zipLocalSign {
		return 0, errors.New("the zip archive is malformed: there is no header before its bytes")
	}
	names := int64(little.Uint16(fixed[26:]))
	rest, err := z.read(e.offset+zipLocalSize, names+int64(little.Uint16(fixed[28:])))
	if err != nil {
		return 0, err
	}
	size, packed := int64(little.Uint32(fixed[22:])), int64(little.Uint32(fixed[18:]))
	if err := zip64Fields(rest[names:], &size, &packed); err != nil {
		return 0, err
	}
	differs := ""
	flags := little.Uint16(fixed[6:])
	switch {
	case string(rest[:names]) != e.name || otherName(rest[names:], []byte(e.name)):
		differs = "name"
	case little.Uint16(fixed[8:]) != e.method:
		differs = "compression"
	case (flags^e.flags)&(zipEncrypted|zipDescriptor) != 0:
		differs = "flags"
	case flags&zipDescriptor != 0: // the header was written before they were known
	case size != e.size || packed != e.packed || little.Uint32(fixed[14:]) != e.crc:
		differs = "size or checksum"
	}
	if differs != "" {
		return 0, fmt.Errorf("the directory and the header of the entry say different things of its %s", differs)
	}
	return e.offset + zipLocalSize + int64(len(rest)), nil
}

// checkDescriptor compares the checksum that follows the bytes of an entry,
// perhaps behind a number that says so.
func (z zipArchive) checkDescriptor(offset int64, crc uint32) error {
	data, err := z.read(offset, zipDescriptorSize)
	if err != nil {
		return err
	}
	if little.Uint32(data) == zipDescriptorSign {
		data = data[4:]
	}
	if little.Uint32(data) != crc {
		return errors.New("the directory and what follows the bytes of the entry say different things of its checksum")
	}
	return nil
}

func (u *unpacking) zipEntries(archive zipArchive, entries []zipEntry) error {
	inflate := flate.NewReader(bytes.NewReader(nil))
	seen := zipNames{}
	unpacked := int64(0)
	for i := range entries {
		e := &entries[i]
		err := u.source.ctx.Err()
		if unpacked += e.size; err == nil && unpacked > ratioFloor {
			err = u.budget.limits.check(limitRatio, unpacked/archive.size)
		}
		if err == nil {
			err = u.zipEntry(archive, e, seen, inflate)
		}
		if err != nil {
			return u.name(err, e.name)
		}
	}
	return nil
}

func (u *unpacking) zipEntry(archive zipArchive, e *zipEntry, seen zipNames, inflate io.ReadCloser) error {
	if err := u.budget.entry(); err != nil {
		return err
	}
	if err := u.checkName(e.name); err != nil {
		return err
	}
	name, err := content.CleanPath(e.name)
	if err == nil {
		err = e.check(name)
	}
	if err == nil {
		err = seen.add(name)
	}
	if err != nil || name == "." {
		return err
	}
	body, err := archive.open(e, inflate)
	if err != nil {
		return err
	}
	entry := content.Entry{Path: name, Kind: content.File, Size: e.size, Exec: e.mode&0o111 != 0}
	switch {
	case strings.HasSuffix(e.name, "/"):
		entry = content.Entry{Path: name, Kind: content.Dir}
	case e.mode&unixType == unixLink:
		entry, err = u.zipLink(name, body, e.size)
	default:
		err = u.store(&entry, body)
	}
	if err == nil {
		err = body.verify(e.crc)
	}
	if err != nil {
		return err
	}
	u.layer.Entries = append(u.layer.Entries, entry)
	return nil
}

// zipLink reads what a link says, which is the bytes of its entry.
func (u *unpacking) zipLink(name string, r io.Reader, size int64) (content.Entry, error) {
	entry := content.Entry{Path: name, Kind: content.Link}
	if err := u.budget.limits.check(limitPathBytes, size); err != nil {
		return entry, err
	}
	var target strings.Builder
	if n, err := io.CopyN(&target, r, min(size, maxTarget)); err != nil || n < size {
		return entry, explain(errors.Join(err, errors.New("what the link says cannot be read")))
	}
	entry.Target = target.String()
	return entry, u.symlink(entry)
}

// maxTarget bounds what a link says whatever the limits are.
const maxTarget = 64 << 10

// check judges an entry by what the directory says of it.
func (e *zipEntry) check(name string) error {
	slash := strings.HasSuffix(e.name, "/")
	switch {
	case e.renamed:
		return errors.New("it has two names, of which readers may take either")
	case strings.Contains(e.name, `\`):
		return errors.New(`its name contains "\", which is a separator to some readers and a letter to others; pack it with "/"`)
	case e.flags&zipEncrypted != 0:
		return errors.New("it is encrypted; content has to be readable")
	case slash && e.size > 0:
		return errors.New("it is a folder and has bytes like a file")
	case name == "." && !slash:
		return errors.New("the root of the content can only be a folder")
	}
	return e.checkKind(slash)
}

func (e *zipEntry) checkKind(slash bool) error {
	folder := e.folder
	switch kind := e.mode & unixType; kind {
	case 0: // the name alone says it
		folder = folder || slash
	case unixFile, unixLink:
	case unixFolder:
		folder = true
	default:
		return fmt.Errorf("it is %s; only files, folders and links can be content", unixName(kind))
	}
	if folder != slash {
		return errors.New(`its attributes and its name differ in whether it is a folder; only the name of a folder ends in "/"`)
	}
	return nil
}

func unixName(kind uint32) string {
	switch kind {
	case 0o020000:
		return "a character device"
	case 0o060000:
		return "a block device"
	case 0o010000:
		return "a named pipe"
	case 0o140000:
		return "a socket"
	default:
		return fmt.Sprintf("of the Unix type %#o", kind)
	}
}

// zipBody reads the bytes of an entry.
type zipBody struct {
	r      io.Reader
	packed *bufio.Reader
	crc    hash.Hash32
}

func (z zipArchive) open(e *zipEntry, inflate io.ReadCloser) (*zipBody, error) {
	packed := bufio.NewReader(io.NewSectionReader(z.r, e.offset, e.packed))
	body := &zipBody{r: packed, packed: packed, crc: crc32.NewIEEE()}
	switch e.method {
	case zipStored:
		if e.size != e.packed {
			return nil, errors.New("it is stored as it is, and yet has two sizes")
		}
	case zipDeflated:
		if err := inflate.(flate.Resetter).Reset(packed, nil); err != nil {
			return nil, err
		}
		body.r = inflate
	default:
		return nil, fmt.Errorf("it is compressed by method %d; only stored and deflated entries can be read", e.method)
	}
	return body, nil
}

func (b *zipBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	_, _ = b.crc.Write(p[:n]) // never fails
	return n, err
}

// verify makes sure that all was read and was right.
func (b *zipBody) verify(crc uint32) error {
	if n, err := io.ReadFull(b.r, make([]byte, 1)); n > 0 {
		return errors.New("it has more bytes than it says")
	} else if !errors.Is(err, io.EOF) {
		return explain(err)
	}
	if _, err := b.packed.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.New("something follows its compressed bytes")
	}
	if b.crc.Sum32() != crc {
		return errors.New("its checksum is wrong")
	}
	return nil
}
