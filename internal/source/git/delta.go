// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"

	"rukpak.io/rukpak/internal/content"
)

var errDelta = errors.New("a delta is malformed")

// resolve works out what deltas stand for, from their bases on. What comes out
// is appended to one file, where it is a base for others.
func (x *indexing) resolve(ctx context.Context) error {
	if x.deltas == 0 {
		return nil
	}
	results, err := x.objects.create()
	if err != nil {
		return err
	}
	r := &resolving{indexing: x, results: results, number: len(x.objects.files) - 1, out: bufio.NewWriterSize(results, 64<<10)}
	work := x.bases
	for len(work) > 0 && x.deltas > 0 {
		base := work[len(work)-1]
		work = work[:len(work)-1]
		found, err := r.changes(ctx, base)
		if err != nil {
			return x.judge(err)
		}
		work = append(work, found...)
	}
	if x.deltas > 0 {
		return &packError{fmt.Errorf("%d deltas have no base in it", x.deltas)}
	}
	return nil
}

type resolving struct {
	*indexing
	results content.Temp
	number  int
	end     int64 // of the results
	out     *bufio.Writer
	buffer  []byte // for a base
	chunk   [32 << 10]byte
}

// changes applies all deltas that have this base.
func (r *resolving) changes(ctx context.Context, base based) ([]based, error) {
	deltas := append(r.byOffset[base.offset], r.byHash[base.hash]...)
	if len(deltas) == 0 {
		return nil, nil
	}
	delete(r.byOffset, base.offset)
	delete(r.byHash, base.hash)
	from, err := r.load(r.objects.places[base.hash])
	if err != nil {
		return nil, err
	}
	var found []based
	for _, change := range deltas {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		hash, err := r.apply(from, change)
		if err != nil {
			return nil, err
		}
		r.deltas--
		found = append(found, based{change.offset, hash})
	}
	return found, nil
}

// baseContent is what deltas copy from: bytes in memory, or in a file.
type baseContent struct {
	kind  plumbing.ObjectType
	size  int64
	bytes []byte
	file  io.ReaderAt // if there are no bytes
	start int64       // in the file
}

// load makes a base readable anywhere: a small one in memory, a large one in
// the file of results.
func (r *resolving) load(at place) (baseContent, error) {
	if !at.packed && at.size > maxBuffer {
		return baseContent{kind: at.kind, size: at.size, file: r.objects.files[at.file], start: at.offset}, nil
	}
	opened, err := r.objects.openAt(at)
	if err != nil {
		return baseContent{}, err
	}
	defer opened.Close() //nolint:errcheck // all that matters was read
	if at.size <= maxBuffer {
		if r.buffer == nil {
			r.buffer = make([]byte, maxBuffer)
		}
		data := r.buffer[:at.size]
		_, err := io.ReadFull(opened, data)
		return baseContent{kind: at.kind, size: at.size, bytes: data}, err
	}
	if err := r.objects.grow(at.size); err != nil {
		return baseContent{}, err
	}
	start := r.end
	if err := r.write(func(w io.Writer) error { return copyN(w, opened, at.size, r.chunk[:]) }, at.size); err != nil {
		return baseContent{}, err
	}
	return baseContent{kind: at.kind, size: at.size, file: r.results, start: start}, nil
}

// write appends to the results.
func (r *resolving) write(fill func(io.Writer) error, size int64) error {
	if err := fill(r.out); err != nil {
		return err
	}
	if err := r.out.Flush(); err != nil {
		return err
	}
	r.end += size
	return nil
}

// apply works out what one delta stands for, and names it.
func (r *resolving) apply(base baseContent, change delta) (plumbing.Hash, error) {
	entry, err := openEntry(r.objects.files[r.indexing.number], change.offset)
	if err != nil {
		return plumbing.Hash{}, err
	}
	defer entry.Close() //nolint:errcheck // all that matters was read
	says := bufio.NewReader(io.LimitReader(entry, change.size))
	size, err := deltaSizes(says, base.size)
	if err != nil {
		return plumbing.Hash{}, err
	}
	if err := r.objects.grow(size); err != nil {
		return plumbing.Hash{}, err
	}
	hasher := plumbing.NewHasher(base.kind, size)
	start := r.end
	err = r.write(func(w io.Writer) error { return applyDelta(io.MultiWriter(w, hasher), base, says, size, r.chunk[:]) }, size)
	if err != nil {
		return plumbing.Hash{}, err
	}
	hash := hasher.Sum()
	r.objects.places[hash] = place{kind: base.kind, file: r.number, offset: start, size: size}
	return hash, nil
}

// deltaSizes reads the head of a delta: the size of its base and of its result.
func deltaSizes(says io.ByteReader, base int64) (int64, error) {
	from, err := binary.ReadUvarint(says)
	if err != nil || from != uint64(base) { //nolint:gosec // a size is not negative
		return 0, errDelta
	}
	size, err := binary.ReadUvarint(says)
	if err != nil || size > 1<<50 {
		return 0, errDelta
	}
	return int64(size), nil
}

// applyDelta writes the result of a delta, behind its head: copies of parts of
// the base, and bytes that it brings along.
func applyDelta(w io.Writer, base baseContent, says *bufio.Reader, size int64, chunk []byte) error {
	for size > 0 {
		command, err := says.ReadByte()
		if err != nil || command == 0 {
			return errDelta
		}
		length := int64(command)
		if command&0x80 == 0 {
			if length > size {
				return errDelta
			}
			if err := copyN(w, says, length, chunk); err != nil {
				return err
			}
			size -= length
			continue
		}
		offset, length, err := copyCommand(command, says)
		if err != nil || length > size || offset+length > base.size {
			return errDelta
		}
		if err := base.copy(w, offset, length, chunk); err != nil {
			return err
		}
		size -= length
	}
	if _, err := says.ReadByte(); !errors.Is(err, io.EOF) {
		return errDelta
	}
	return nil
}

// copyCommand reads which part of the base is copied: the bits of the command
// say which bytes of the two numbers follow.
func copyCommand(command byte, says io.ByteReader) (offset, length int64, err error) {
	for i := range 7 {
		if command&(1<<i) == 0 {
			continue
		}
		b, err := says.ReadByte()
		if err != nil {
			return 0, 0, err
		}
		if i < 4 {
			offset |= int64(b) << (8 * i)
		} else {
			length |= int64(b) << (8 * (i - 4))
		}
	}
	if length == 0 {
		length = 0x10000
	}
	return offset, length, nil
}

// copy writes a part.
func (b baseContent) copy(w io.Writer, offset, length int64, chunk []byte) error {
	if b.file != nil {
		return copyN(w, io.NewSectionReader(b.file, b.start+offset, length), length, chunk)
	}
	_, err := w.Write(b.bytes[offset : offset+length])
	return err
}

// copyN copies so many bytes by way of chunk. A reader with fewer is a malformed
// delta.
func copyN(w io.Writer, r io.Reader, n int64, chunk []byte) error {
	for n > 0 {
		part := chunk[:min(n, int64(len(chunk)))]
		if _, err := io.ReadFull(r, part); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errDelta
		} else if err != nil {
			return err
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
		n -= int64(len(part))
	}
	return nil
}
