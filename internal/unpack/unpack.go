// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bufio"
	"context"
	"errors"
	"io"

	"rukpak.io/rukpak/internal/content"
)

// Sink takes files.
type Sink interface {
	// AddFile stores the next size bytes of r. Errors of r are returned as they
	// are; io.ErrUnexpectedEOF if r ends too early.
	AddFile(r io.Reader, size int64) (content.Sum, error)
	// Temp makes a file for what has to be read in another order than it comes.
	Temp() (content.Temp, error)
}

// Layer unpacks one layer from r, which gives an error instead of io.EOF if the
// bytes do not have the layer's digest. Files go to sink, entries to the result.
//
// Errors are a *content.UnsafeError, a *LimitError, or what r, sink and ctx gave.
// An error of r wins over the others, and r is read to its end to learn of it: a
// layer is never called unsafe because of bytes that are not its own.
func Layer(ctx context.Context, packed Packed, format Format, r io.Reader, sink Sink, budget *Budget) (content.Layer, error) {
	u := &unpacking{
		packed: packed,
		format: format,
		source: &packedReader{ctx: ctx, r: r},
		sink:   sink,
		budget: budget,
		layer:  content.Layer{Key: Key(packed, format), Packed: packed.Size},
	}
	err := u.run()
	if _, ok := errors.AsType[*content.StoreError](err); ok {
		return content.Layer{}, err
	}
	u.source.drain()
	if u.source.err != nil {
		return content.Layer{}, u.source.err
	}
	if err != nil && ctx.Err() != nil { // given up while working on what had been read before
		return content.Layer{}, context.Cause(ctx)
	}
	if err != nil {
		return content.Layer{}, u.name(err, "")
	}
	return u.layer, nil
}

// unpacking is the work on one layer.
type unpacking struct {
	packed Packed
	format Format
	source *packedReader
	sink   Sink
	budget *Budget
	layer  content.Layer

	writers *writers
	chart   string // the top folder of a Helm chart, when its first entry was seen
}

func (u *unpacking) run() error {
	switch {
	case u.format.Zip:
		return u.zip()
	case u.format.File == "":
		return u.decompressed(u.ahead)
	case u.format.Compression == Plain:
		return u.file()
	default:
		return u.decompressed(u.compressedFile)
	}
}

// decompressed calls do with the bytes inside, and makes sure that it reads all.
func (u *unpacking) decompressed(do func(io.Reader) error) error {
	packed, done, err := u.packedBytes()
	if err != nil {
		return err
	}
	defer done()
	buffered := bufio.NewReaderSize(packed, 64<<10)
	inside, free, err := decompress(u.source.ctx, buffered, u.format.Compression)
	if err != nil {
		return explain(err)
	}
	defer free()
	if err := do(&unpackedReader{r: inside, packed: u.source, limits: &u.budget.limits}); err != nil {
		return err
	}
	if _, err := buffered.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the end of the archive")
	}
	return nil
}

// ahead reads the archive while other goroutines fetch and decompress before
// it, and write small files behind it. They have ended when it returns.
func (u *unpacking) ahead(r io.Reader) error {
	ahead := newReadAhead(r)
	defer ahead.close()
	u.writers = newWriters(u.sink)
	err := u.archive(ahead)
	if writeErr := u.writers.wait(u.layer.Entries); writeErr != nil {
		return writeErr
	}
	return err
}

// file takes the whole layer as one file.
func (u *unpacking) file() error { return u.take(u.source, u.packed.Size) }

// take stores the one file that the layer is.
func (u *unpacking) take(r io.Reader, size int64) error {
	entry := content.Entry{Path: u.format.File, Kind: content.File, Size: size}
	err := u.budget.entry()
	if err == nil {
		err = u.checkName(entry.Path)
	}
	if err == nil {
		err = u.budget.file(entry.Size)
	}
	if err == nil {
		entry.Sum, err = u.sink.AddFile(r, entry.Size)
	}
	if err != nil {
		return u.name(err, entry.Path)
	}
	u.layer.Entries = append(u.layer.Entries, entry)
	return nil
}

// checkName looks at the size of a name, or of what a link says.
func (u *unpacking) checkName(name string) error {
	if err := u.budget.limits.check(limitPathBytes, int64(len(name))); err != nil {
		return err
	}
	depth := int64(1)
	for i := range len(name) {
		if name[i] == '/' {
			depth++
		}
	}
	return u.budget.limits.check(limitPathDepth, depth)
}

// maxShown is how much of a name an error shows; a name may be a megabyte long.
const maxShown = 256

// name gives an error layer and entry, unless it has them already. An error
// without a type is about the content.
func (u *unpacking) name(err error, entry string) error {
	if len(entry) > maxShown {
		entry = entry[:maxShown] + "..."
	}
	if e, ok := errors.AsType[*LimitError](err); ok {
		if e.Layer == "" {
			e.Layer = string(u.packed.Digest)
		}
		if e.Entry == "" {
			e.Entry = entry
		}
		return e
	}
	if e, ok := errors.AsType[*content.UnsafeError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*content.StoreError](err); ok {
		return e
	}
	return &content.UnsafeError{Layer: string(u.packed.Digest), Entry: entry, Problem: err.Error(), Err: err}
}
