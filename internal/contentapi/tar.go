// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	tarBlock = 512
	tarEnd   = 2 * tarBlock // of an archive, zero
)

// sendTar answers with a tree as a tar archive: the same bytes each time, so that a download that broke off (an API server
// ends a request after a minute) can go on by a range. Only "bytes=N-" is one that is kept to; all others get the whole.
func (c *call) sendTar(tree fs.FS) error {
	measured := &tarRange{ctx: c.r.Context(), tree: tree}
	size, err := measured.write(nil, 0)
	if err != nil {
		return err
	}
	from, ranged := rangeFrom(c.r.Header.Get("Range"))
	header := c.w.Header()
	header.Set("Accept-Ranges", "bytes")
	if ranged && from >= size {
		header.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusRequestedRangeNotSatisfiable, Reason: metav1.StatusReasonInvalid,
			Message: fmt.Sprintf("the range is not in the archive, which has %d bytes", size),
		}}
	}
	header.Set("Content-Type", archiveFormats["tar"].mediaType)
	header.Set("Content-Length", strconv.FormatInt(size-from, 10))
	code := http.StatusOK
	if ranged {
		code = http.StatusPartialContent
		header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, size-1, size))
	}
	c.w.WriteHeader(code)
	buffered := bufio.NewWriterSize(c.w, 64<<10)
	if _, err := measured.write(buffered, from); err != nil {
		return err
	}
	return buffered.Flush()
}

// rangeFrom gives N of "bytes=N-".
func rangeFrom(text string) (from int64, ranged bool) {
	number, is := strings.CutPrefix(text, "bytes=")
	number, open := strings.CutSuffix(number, "-")
	from, err := strconv.ParseInt(number, 10, 64)
	if !is || !open || err != nil || from < 0 {
		return 0, false
	}
	return from, true
}

// tarRange writes an archive from any byte on, and reads nothing of the files that stand before it.
type tarRange struct {
	ctx  context.Context //nolint:containedctx // of one request
	tree fs.FS
	out  io.Writer // nil to measure only
	from int64
	at   int64
}

// write gives the size of the whole archive.
func (a *tarRange) write(out io.Writer, from int64) (size int64, err error) {
	a.out, a.from, a.at = out, from, 0
	err = fs.WalkDir(a.tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = a.ctx.Err()
		}
		if err != nil || name == "." {
			return err
		}
		return a.entry(name, entry)
	})
	if err == nil {
		err = a.bytes(make([]byte, tarEnd))
	}
	return a.at, err
}

func (a *tarRange) entry(name string, entry fs.DirEntry) error {
	header, err := headerOf(a.tree, ".", name, entry)
	if err != nil {
		return err
	}
	var encoded bytes.Buffer
	if err := tar.NewWriter(&encoded).WriteHeader(header); err != nil {
		return err
	}
	if err := a.bytes(encoded.Bytes()); err != nil || header.Typeflag != tar.TypeReg {
		return err
	}
	if a.out != nil && a.at+header.Size > a.from {
		if err := a.file(name, header.Size); err != nil {
			return err
		}
	}
	a.at += header.Size
	return a.bytes(make([]byte, (tarBlock-header.Size%tarBlock)%tarBlock))
}

// file writes of a file what is in the range.
func (a *tarRange) file(name string, size int64) error {
	skip := max(0, a.from-a.at)
	reader := &seekable{open: func() (fs.File, error) { return a.tree.Open(name) }}
	defer reader.close()
	if err := reader.begin(); err != nil {
		return err
	}
	if _, err := reader.Seek(skip, io.SeekStart); err != nil {
		return err
	}
	_, err := io.CopyN(a.out, reader, size-skip)
	return err
}

func (a *tarRange) bytes(text []byte) error {
	skip := min(int64(len(text)), max(0, a.from-a.at))
	a.at += int64(len(text))
	if a.out == nil {
		return nil
	}
	_, err := a.out.Write(text[skip:])
	return err
}
