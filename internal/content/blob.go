// SPDX-License-Identifier: Apache-2.0

package content

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// smallFile is the size up to which a file is digested in memory before
// anything is written, so that files that the store already has cost no write.
const smallFile = 256 << 10

// buffers are lent to all writers; each is smallFile long.
var buffers = sync.Pool{New: func() any { return new([smallFile]byte) }}

// AddFile stores the size bytes that r gives, unless the store has them. An
// error of r is returned as it is; io.ErrUnexpectedEOF if r ends too early.
func (s *Session) AddFile(r io.Reader, size int64) (Sum, error) {
	buffer := buffers.Get().(*[smallFile]byte)
	defer buffers.Put(buffer)
	if size > smallFile {
		return s.addLarge(r, size, buffer[:])
	}
	data := buffer[:size]
	if _, err := io.ReadFull(r, data); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Sum{}, err
	}
	sum := Sum(sha256.Sum256(data))
	s.pinBlob(sum)
	if s.disk.hasBlob(sum, size) {
		return sum, nil
	}
	if done, err := s.create(sum, data); done || err != nil {
		return sum, err
	}
	temp := s.tempPath()
	file, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o400)
	if err != nil {
		return Sum{}, s.disk.failed("write a file", err)
	}
	if err := s.writeWhole(file, data); err != nil {
		return Sum{}, err
	}
	return sum, s.settle(temp, sum)
}

// create writes a small file under its own name, which saves the rename of most
// files. One that a crash cuts off is not as long as it should be, so that
// hasBlob does not count it, and the next writer replaces it. done is false if
// something has the name, or its folder is not there yet.
func (s *Session) create(sum Sum, data []byte) (done bool, err error) {
	file, err := os.OpenFile(s.disk.blobPath(sum), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o400)
	if err != nil {
		return false, nil //nolint:nilerr // the longer way says what is wrong
	}
	return true, s.writeWhole(file, data)
}

// writeWhole leaves no file behind unless it is whole.
func (s *Session) writeWhole(file *os.File, data []byte) error {
	_, err := file.Write(data)
	if err := errors.Join(err, file.Close()); err != nil {
		return s.disk.failed("write a file", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

// addLarge digests a file while it writes it.
func (s *Session) addLarge(r io.Reader, size int64, buffer []byte) (Sum, error) {
	temp := s.tempPath()
	file, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o400)
	if err != nil {
		return Sum{}, s.disk.failed("write a file", err)
	}
	hasher, chunks := sha256.New(), &chunkHasher{}
	digests := io.Writer(hasher)
	if size >= chunkFloor {
		digests = io.MultiWriter(hasher, chunks)
	}
	copyErr := s.copy(file, digests, r, size, buffer)
	if closeErr := file.Close(); copyErr == nil && closeErr != nil {
		copyErr = s.disk.failed("write a file", closeErr)
	}
	if copyErr != nil {
		_ = os.Remove(temp) // Close of the session removes it too
		return Sum{}, copyErr
	}
	sum := Sum(hasher.Sum(nil))
	s.pinBlob(sum)
	if size >= chunkFloor {
		_ = s.disk.putChunks(sum, chunks.finish()) // else the first who wants them makes them
	}
	if s.disk.hasBlob(sum, size) {
		_ = os.Remove(temp) // Close of the session removes it too
		return sum, nil
	}
	return sum, s.settle(temp, sum)
}

// copy keeps the errors of the reader and of the disk apart.
func (s *Session) copy(file *os.File, digests io.Writer, r io.Reader, size int64, buffer []byte) error {
	for left := size; left > 0; {
		n, err := io.ReadFull(r, buffer[:min(left, int64(len(buffer)))])
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		_, _ = digests.Write(buffer[:n]) // never fails
		if _, err := file.Write(buffer[:n]); err != nil {
			return s.disk.failed("write a file", err)
		}
		left -= int64(n)
	}
	return nil
}

// settle gives a complete file its name.
func (s *Session) settle(temp string, sum Sum) error {
	path := s.disk.blobPath(sum)
	err := replace(temp, path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		dir := filepath.Dir(path)
		if seen, statErr := os.Lstat(dir); statErr == nil && !seen.IsDir() {
			_ = os.Remove(dir) // if it fails, so does Mkdir
		}
		if mkErr := os.Mkdir(dir, 0o700); mkErr != nil && !errors.Is(mkErr, fs.ErrExist) {
			return s.disk.failed("make a folder", errors.Join(mkErr, os.Remove(temp)))
		}
		err = replace(temp, path)
	}
	if err != nil {
		return s.disk.failed("write a file", errors.Join(err, os.Remove(temp)))
	}
	return nil
}
