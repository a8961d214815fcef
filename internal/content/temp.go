// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"io"
	"os"
)

// Temp is a file for what has to be read in another order than it comes. Write
// appends, Close removes it; it is gone at the latest with its session. Errors
// are io.EOF or a *StoreError.
type Temp interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

type tempFile struct {
	file *os.File
	disk *Disk
}

// Temp makes a file that is empty.
func (s *Session) Temp() (Temp, error) {
	file, err := os.OpenFile(s.tempPath(), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, s.disk.failed("make a temporary file", err)
	}
	return &tempFile{file: file, disk: s.disk}, nil
}

func (t *tempFile) Write(p []byte) (int, error) {
	n, err := t.file.Write(p)
	return n, t.failed("write a temporary file", err)
}

func (t *tempFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := t.file.ReadAt(p, offset)
	if errors.Is(err, io.EOF) {
		return n, io.EOF
	}
	return n, t.failed("read a temporary file", err)
}

func (t *tempFile) Close() error {
	return t.failed("remove a temporary file", errors.Join(t.file.Close(), os.Remove(t.file.Name())))
}

func (t *tempFile) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return t.disk.failed(op, err)
}
