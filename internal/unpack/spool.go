// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"errors"
	"io"

	"rukpak.io/rukpak/internal/content"
)

// spool puts all packed bytes into a temporary file, which the caller closes.
func (u *unpacking) spool() (temp content.Temp, size int64, err error) {
	temp, err = u.sink.Temp()
	if err != nil {
		return nil, 0, err
	}
	size, err = io.Copy(temp, onlyReader{u.source})
	if err != nil {
		_ = temp.Close() // the first error counts, and the session removes the file too
		return nil, 0, err
	}
	return temp, size, nil
}

// packedBytes gives the packed bytes as they come, or from a temporary file if
// they have to wait for their turn.
func (u *unpacking) packedBytes() (io.Reader, func(), error) {
	if u.format.Compression != Xz {
		return u.source, func() {}, nil
	}
	temp, size, err := u.spool()
	if err != nil {
		return nil, nil, err
	}
	again := &packedReader{ctx: u.source.ctx, r: io.NewSectionReader(temp, 0, size)}
	return again, func() { _ = temp.Close() }, nil // the session removes it too
}

// compressedFile takes what is inside as one file. How large it is shows at its
// end only.
func (u *unpacking) compressedFile(r io.Reader) error {
	temp, err := u.sink.Temp()
	if err != nil {
		return err
	}
	defer temp.Close() //nolint:errcheck // the session removes it too
	size, err := io.Copy(temp, &fileReader{r: r, limits: &u.budget.limits})
	if _, ok := errors.AsType[*content.StoreError](err); ok {
		return err
	}
	if err != nil {
		return u.name(explain(err), u.format.File)
	}
	return u.take(io.NewSectionReader(temp, 0, size), size)
}

// fileReader stops a file that is too large while its size is not known.
type fileReader struct {
	r      io.Reader
	limits *Limits
	read   int64
}

func (f *fileReader) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	f.read += int64(n)
	if limitErr := f.limits.check(limitFileBytes, f.read); limitErr != nil {
		return 0, limitErr
	}
	return n, err
}
