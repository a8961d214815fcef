// SPDX-License-Identifier: Apache-2.0

package content

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"sync"
)

// streamFile is a large file. Read from its beginning, the read that gives its
// last bytes gives an error instead if any byte was wrong, even to a reader that
// stops at the size and never asks for the end. Read from anywhere else, each
// piece is verified before bytes of it are given.
type streamFile struct {
	file  *os.File
	blobs blobSource
	info  info
	at    int64 // where Read goes on
	sum   hash.Hash
	done  int64 // bytes in sum, which were read one after another
	err   error

	mu     sync.Mutex
	pieces *chunkReader // when a read from anywhere came
}

var (
	_ io.ReaderAt = (*streamFile)(nil)
	_ io.Seeker   = (*streamFile)(nil)
)

func newStreamFile(file *os.File, blobs blobSource, about info) *streamFile {
	return &streamFile{file: file, blobs: blobs, info: about, sum: sha256.New()}
}

func (f *streamFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *streamFile) Close() error               { return f.file.Close() }

func (f *streamFile) Read(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if f.at != f.done {
		n, err := f.ReadAt(p, f.at)
		f.at += int64(n)
		if n > 0 && errors.Is(err, io.EOF) {
			err = nil
		}
		return n, err
	}
	n, err := f.next(p)
	f.at = f.done
	return n, err
}

// next reads what follows on the bytes that were digested.
func (f *streamFile) next(p []byte) (int, error) {
	e := &f.info.node.entry
	if left := e.Size - f.done; int64(len(p)) > left {
		p = p[:left]
	}
	if len(p) == 0 {
		return 0, io.EOF
	}
	n, err := f.file.Read(p)
	f.done += int64(n)
	f.sum.Write(p[:n])
	switch {
	case errors.Is(err, fs.ErrClosed):
		return 0, err
	case err != nil:
		return 0, f.fail(fmt.Sprintf("reading it: %v", err))
	case f.done == e.Size && Sum(f.sum.Sum(nil)) != e.Sum:
		return 0, f.fail(fmt.Sprintf("its digest is sha256:%x", f.sum.Sum(nil)))
	}
	return n, nil
}

// Seek says where Read goes on.
func (f *streamFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.info.node.entry.Size
	}
	if offset < 0 {
		return 0, &fs.PathError{Op: "seek", Path: f.info.as, Err: fs.ErrInvalid}
	}
	f.at = offset
	return offset, nil
}

// ReadAt reads from anywhere. It may be called from several goroutines.
func (f *streamFile) ReadAt(p []byte, offset int64) (int, error) {
	pieces, err := f.random()
	if err != nil {
		return 0, f.failed(err)
	}
	n, err := pieces.readAt(p, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		err = f.failed(err)
	}
	return n, err
}

func (f *streamFile) random() (*chunkReader, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pieces != nil {
		return f.pieces, nil
	}
	e := &f.info.node.entry
	sums, err := f.blobs.chunkSums(f.file, e.Sum, e.Size)
	if err != nil {
		return nil, err
	}
	f.pieces = &chunkReader{file: f.file, size: e.Size, sums: sums, damaged: func(reason string) error { return f.blobs.damaged(e.Sum, reason) }}
	return f.pieces, nil
}

func (f *streamFile) fail(reason string) error {
	f.err = f.failed(f.blobs.damaged(f.info.node.entry.Sum, reason))
	return f.err
}

func (f *streamFile) failed(err error) error {
	return &fs.PathError{Op: "read", Path: f.info.as, Err: at(f.info.node, err)}
}
