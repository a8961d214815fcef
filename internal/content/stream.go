// SPDX-License-Identifier: Apache-2.0

package content

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

// AddStream stores all that r gives as one file, for bytes whose number and
// digest nobody knows before they have come. An error of r is returned as it is.
func (s *Session) AddStream(r io.Reader) (Sum, int64, error) {
	buffer := buffers.Get().(*[smallFile]byte)
	defer buffers.Put(buffer)
	temp := s.tempPath()
	file, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o400)
	if err != nil {
		return Sum{}, 0, s.disk.failed("write a file", err)
	}
	hasher := sha256.New()
	size, copyErr := s.drain(file, hasher, r, buffer[:])
	if closeErr := file.Close(); copyErr == nil && closeErr != nil {
		copyErr = s.disk.failed("write a file", closeErr)
	}
	if copyErr != nil {
		_ = os.Remove(temp) // Close of the session removes it too
		return Sum{}, 0, copyErr
	}
	sum := Sum(hasher.Sum(nil))
	s.pinBlob(sum)
	s.came.Store(sum, struct{}{})
	if s.disk.hasBlob(sum, size) {
		_ = os.Remove(temp) // Close of the session removes it too
		return sum, size, nil
	}
	return sum, size, s.settle(temp, sum)
}

// drain keeps the errors of the reader and of the disk apart.
func (s *Session) drain(file *os.File, hasher hash.Hash, r io.Reader, buffer []byte) (size int64, err error) {
	for {
		n, err := r.Read(buffer)
		hasher.Write(buffer[:n])
		if _, err := file.Write(buffer[:n]); err != nil {
			return size, s.disk.failed("write a file", err)
		}
		size += int64(n)
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
}

// OpenFile gives the bytes of a file that this session's AddStream stored: of
// another it would tell whoever knows or guesses its digest. The read that
// completes them gives a *CorruptError if they are not what the sum says, so
// nothing read before counts until then.
func (s *Session) OpenFile(sum Sum) (file io.ReadCloser, size int64, ok bool) {
	if _, came := s.came.Load(sum); !came {
		return nil, 0, false
	}
	opened, err := os.Open(s.disk.blobPath(sum))
	if err != nil {
		return nil, 0, false
	}
	seen, err := opened.Stat()
	if err != nil || !seen.Mode().IsRegular() {
		_ = opened.Close() // nothing was written
		return nil, 0, false
	}
	return &checkedFile{file: opened, disk: s.disk, want: sum, sum: sha256.New()}, seen.Size(), true
}

// checkedFile digests a file while it is read from its beginning to its end.
type checkedFile struct {
	file *os.File
	disk *Disk
	want Sum
	sum  hash.Hash
}

// Read gives io.EOF only after bytes that have the digest.
func (c *checkedFile) Read(p []byte) (int, error) {
	n, err := c.file.Read(p)
	c.sum.Write(p[:n])
	switch {
	case errors.Is(err, io.EOF) && Sum(c.sum.Sum(nil)) != c.want:
		return n, c.disk.damaged(c.want, fmt.Sprintf("its digest is sha256:%x", c.sum.Sum(nil)))
	case err != nil && !errors.Is(err, io.EOF):
		return n, c.disk.damaged(c.want, fmt.Sprintf("reading it: %v", err))
	}
	return n, err
}

// Close closes the file.
func (c *checkedFile) Close() error { return c.file.Close() }
