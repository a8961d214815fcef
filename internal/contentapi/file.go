// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/internal/content"
)

// sniffLen is how many bytes tell what a file without a telling name is.
const sniffLen = 512

// file answers with the bytes of one file, or ranges of them.
func (c *call) file(found *opened, name string) error {
	reader := &seekable{open: func() (fs.File, error) { return found.tree.Open(name) }}
	defer reader.close()
	if err := reader.begin(); err != nil {
		return c.judge(err)
	}
	info, err := reader.file.Stat()
	if err != nil {
		return c.judge(err)
	}
	reader.size = info.Size()
	header := c.w.Header()
	if entry, ok := info.Sys().(*content.Entry); ok {
		header.Set("ETag", `"`+string(entry.Sum.Digest())+`"`)
		header.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(entry.Sum[:])+":")
	} else { // inside an image: nobody knows its digest, but that of all together does not change
		header.Set("ETag", fmt.Sprintf(`"%s %s"`, found.digest, url.QueryEscape(name)))
	}
	kind := mediaTypeOf(name)
	if kind == "" {
		first := make([]byte, sniffLen)
		n, err := io.ReadFull(reader, first)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return c.judge(err)
		}
		kind = sniffed(name, first[:n])
	}
	header.Set("Content-Type", kind)
	guard(header)
	http.ServeContent(&rangeWriter{ResponseWriter: c.w, size: reader.size}, c.r, "", time.Time{}, reader)
	if reader.err != nil {
		return c.judge(reader.err) // cuts the answer off
	}
	return nil
}

// rangeWriter says of a range that is not in the file what all else that is refused says: a Status.
type rangeWriter struct {
	http.ResponseWriter
	size    int64
	refused bool
}

// WriteHeader is called by http.ServeContent.
func (w *rangeWriter) WriteHeader(code int) {
	if code != http.StatusRequestedRangeNotSatisfiable {
		w.ResponseWriter.WriteHeader(code)
		return
	}
	w.refused = true
	text, _ := json.Marshal(metav1.Status{ // plain values, which do not fail
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code),
		Reason: metav1.StatusReasonInvalid, Message: fmt.Sprintf("the range is not in the file, which has %d bytes", w.size),
	})
	w.Header().Set("Content-Type", "application/json")
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(code)
	_, _ = w.ResponseWriter.Write(text) // who asked is gone if it fails
}

// Write writes all but the text that goes with a refused range.
func (w *rangeWriter) Write(data []byte) (int, error) {
	if w.refused {
		return len(data), nil
	}
	return w.ResponseWriter.Write(data)
}

// guard keeps a browser that shows content, which others wrote, from running it
// with the rights of who reads it.
func guard(header http.Header) {
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
}

// seekable lets a file be read from anywhere. A file that cannot seek is read
// from its beginning and what stands before is thrown away.
type seekable struct {
	open func() (fs.File, error)
	file fs.File
	size int64
	at   int64 // where the file stands
	want int64 // where to read next
	err  error // of reading, but for the end
}

func (s *seekable) begin() (err error) {
	s.close()
	s.at = 0
	s.file, err = s.open()
	return err
}

func (s *seekable) close() {
	if s.file != nil {
		_ = s.file.Close() // nothing was written
		s.file = nil
	}
}

// Seek remembers where to read next.
func (s *seekable) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.want
	case io.SeekEnd:
		offset += s.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d", offset)
	}
	s.want = offset
	return offset, nil
}

// Read goes to where it was sought, and reads.
func (s *seekable) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if err := s.move(); err != nil {
		return 0, s.note(err)
	}
	n, err := s.file.Read(p)
	s.at += int64(n)
	s.want = s.at
	return n, s.note(err)
}

func (s *seekable) note(err error) error {
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return err
}

func (s *seekable) move() error {
	if s.at == s.want {
		return nil
	}
	if seeker, ok := s.file.(io.Seeker); ok {
		at, err := seeker.Seek(s.want, io.SeekStart)
		s.at = at
		return err
	}
	if s.want < s.at {
		if err := s.begin(); err != nil {
			return err
		}
	}
	n, err := io.CopyN(io.Discard, s.file, s.want-s.at)
	s.at += n
	return err
}
