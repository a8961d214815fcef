// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/unpack"
)

const (
	maxObjects = 500_000  // of one repository: their names are held in memory
	maxSmall   = 16 << 20 // of a commit or a folder's list, which are read into memory
	maxBuffer  = 1 << 20  // of a delta's base that is held in memory while it is used
)

// packError is a pack that is malformed, or does not hold what was asked for.
type packError struct{ err error }

func (e *packError) Error() string {
	return fmt.Sprintf("the pack that the server gives is damaged: %v", e.err)
}
func (e *packError) Unwrap() error { return e.err }

// tooManyError is more than a fixed bound allows.
type tooManyError struct{ text string }

func (e *tooManyError) Error() string { return e.text }

// objects are what the packs of one repository hold, on disk.
type objects struct {
	to       source.Destination
	packed   int64 // bytes that have arrived
	unpacked int64 // bytes of all objects

	files  []content.Temp // packs, and what deltas in them stand for
	places map[plumbing.Hash]place
}

// place is where the content of an object is.
type place struct {
	kind   plumbing.ObjectType
	file   int
	offset int64
	size   int64
	packed bool // it is an entry of a pack; else it is there as it is
}

func newObjects(to source.Destination) *objects {
	return &objects{to: to, places: map[plumbing.Hash]place{}}
}

func (o *objects) close() {
	for _, file := range o.files {
		_ = file.Close() // if it cannot be removed, the end of the session does it
	}
}

func (o *objects) create() (content.Temp, error) {
	file, err := o.to.Session.Temp()
	if err == nil {
		o.files = append(o.files, file)
	}
	return file, err
}

// grow counts what objects unpack to, so that a pack of a few bytes that stands
// for terabytes ends soon.
func (o *objects) grow(size int64) error {
	if size < 0 || size > 1<<50 {
		return &packError{errors.New("an object has an absurd size")}
	}
	o.unpacked += size
	return o.to.Budget.Whole(o.unpacked)
}

// add takes a pack. All objects in it can be opened then.
func (o *objects) add(ctx context.Context, pack io.Reader) error {
	file, err := o.create()
	if err != nil {
		return err
	}
	x := &indexing{
		objects: o, number: len(o.files) - 1,
		arriving: &arrivingPack{ctx: ctx, from: o.to.Budget.Arriving(pack, -1), disk: file},
		byOffset: map[int64][]delta{}, byHash: map[plumbing.Hash][]delta{},
	}
	defer func() { o.packed += x.arriving.read }()
	if err := x.read(); err != nil {
		return x.judge(err)
	}
	if _, err := io.Copy(io.Discard, x.arriving); err != nil { // the end of the answer
		return x.judge(err)
	}
	return x.resolve(ctx)
}

// arrivingPack writes a pack to disk as it is read, and keeps apart what fails.
type arrivingPack struct {
	ctx  context.Context
	from io.Reader
	disk io.Writer
	read int64
	err  error // but for io.EOF
}

func (a *arrivingPack) Read(p []byte) (int, error) {
	if a.err == nil {
		a.err = context.Cause(a.ctx)
	}
	if a.err != nil {
		return 0, a.err
	}
	n, err := a.from.Read(p)
	a.read += int64(n)
	if _, writeErr := a.disk.Write(p[:n]); writeErr != nil {
		err = writeErr
	}
	if err != nil && !errors.Is(err, io.EOF) {
		a.err = err
	}
	return n, err
}

// indexing is the work on one pack.
type indexing struct {
	objects  *objects
	number   int // of the file
	arriving *arrivingPack

	bases    []based
	deltas   int // whose content is not known yet
	byOffset map[int64][]delta
	byHash   map[plumbing.Hash][]delta
}

// delta is an entry that says how to change another object.
type delta struct {
	offset int64
	size   int64 // of what it says
}

// based is an object that deltas may have as their base.
type based struct {
	offset int64 // of the entry
	hash   plumbing.Hash
}

// judge gives what failed first: the server, the disk, a limit, or the form.
func (x *indexing) judge(err error) error {
	if x.arriving.err != nil {
		return x.arriving.err
	}
	if _, ok := errors.AsType[*unpack.LimitError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*tooManyError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*content.StoreError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*packError](err); ok {
		return err
	}
	return &packError{err}
}

// read takes the entries as they arrive, and names all that are no deltas.
func (x *indexing) read() error {
	scanner := packfile.NewScanner(x.arriving)
	_, count, err := scanner.Header()
	if err != nil {
		return err
	}
	if int(count)+len(x.objects.places) > maxObjects {
		return &tooManyError{fmt.Sprintf("the repository has more than %d objects at this commit", maxObjects)}
	}
	for range count {
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return err
		}
		if err := x.objects.grow(header.Length); err != nil {
			return err
		}
		if err := x.entry(scanner, header); err != nil {
			return err
		}
	}
	_, err = scanner.Checksum()
	return err
}

func (x *indexing) entry(scanner *packfile.Scanner, header *packfile.ObjectHeader) error {
	change := delta{offset: header.Offset, size: header.Length}
	into := io.Discard
	var hasher plumbing.Hasher
	switch header.Type {
	case plumbing.OFSDeltaObject:
		x.deltas++
		x.byOffset[header.OffsetReference] = append(x.byOffset[header.OffsetReference], change)
	case plumbing.REFDeltaObject:
		x.deltas++
		x.byHash[header.Reference] = append(x.byHash[header.Reference], change)
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		hasher = plumbing.NewHasher(header.Type, header.Length)
		into = hasher
	default:
		return fmt.Errorf("an entry is of the unknown type %d", header.Type)
	}
	size, _, err := scanner.NextObject(into)
	if err != nil {
		return err
	}
	if size != header.Length {
		return fmt.Errorf("an object has %d bytes and should have %d", size, header.Length)
	}
	if into != io.Discard {
		hash := hasher.Sum()
		x.objects.places[hash] = place{kind: header.Type, file: x.number, offset: header.Offset, size: size, packed: true}
		x.bases = append(x.bases, based{header.Offset, hash})
	}
	return nil
}

// object is one that is open for reading.
type object struct {
	io.ReadCloser
	kind plumbing.ObjectType
	size int64
}

// open gives an object. It may be called from several goroutines, once all
// packs were added.
func (o *objects) open(hash plumbing.Hash) (*object, error) {
	at, ok := o.places[hash]
	if !ok {
		return nil, &packError{fmt.Errorf("the object %s is not in it", hash)}
	}
	return o.openAt(at)
}

func (o *objects) openAt(at place) (*object, error) {
	file := o.files[at.file]
	if !at.packed {
		return &object{io.NopCloser(io.NewSectionReader(file, at.offset, at.size)), at.kind, at.size}, nil
	}
	inside, err := openEntry(file, at.offset)
	if err != nil {
		return nil, err
	}
	return &object{inside, at.kind, at.size}, nil
}

// openEntry gives what an entry of a pack unpacks to.
func openEntry(file io.ReaderAt, offset int64) (io.ReadCloser, error) {
	scanner := packfile.NewScanner(io.NewSectionReader(file, 0, 1<<62))
	if _, err := scanner.SeekObjectHeader(offset); err != nil {
		return nil, &packError{err}
	}
	inside, err := scanner.ReadObject()
	if err != nil {
		return nil, &packError{err}
	}
	return inside, nil
}

// small reads a commit or the list of a folder.
func (o *objects) small(hash plumbing.Hash, kind plumbing.ObjectType) ([]byte, error) {
	opened, err := o.open(hash)
	if err != nil {
		return nil, err
	}
	defer opened.Close() //nolint:errcheck // all that matters was read
	switch {
	case opened.kind != kind:
		return nil, &wrongKindError{hash, kind, opened.kind}
	case opened.size > maxSmall:
		return nil, &tooManyError{fmt.Sprintf("the %s %s has more than %d bytes", kind, hash, maxSmall)}
	}
	data := make([]byte, opened.size)
	if _, err := io.ReadFull(bufio.NewReader(opened), data); err != nil {
		return nil, &packError{err}
	}
	return data, nil
}

// wrongKindError is a name that is that of something else.
type wrongKindError struct {
	hash      plumbing.Hash
	want, got plumbing.ObjectType
}

func (e *wrongKindError) Error() string {
	return fmt.Sprintf("%s is a %s, not a %s", e.hash, e.got, e.want)
}
