// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"context"
	"errors"
	"io"
)

// packedReader reads the packed bytes of a layer. It counts them, remembers the
// first error, so that a fault of the source is never taken for one of the
// content, and ends when the caller gives up.
type packedReader struct {
	ctx  context.Context
	r    io.Reader
	read int64
	err  error // first error but io.EOF
	end  bool
}

func (p *packedReader) Read(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	if err := p.ctx.Err(); err != nil {
		p.err = context.Cause(p.ctx)
		return 0, p.err
	}
	n, err := p.r.Read(b)
	p.read += int64(n)
	switch {
	case errors.Is(err, io.EOF):
		p.end = true
		return n, io.EOF
	case err != nil:
		p.err = err
	}
	return n, err
}

// drain reads to the end. Only there has the source verified the digest.
func (p *packedReader) drain() {
	for p.err == nil && !p.end {
		if _, err := io.Copy(io.Discard, onlyReader{p}); err != nil {
			return
		}
	}
}

// onlyReader hides all methods but Read.
type onlyReader struct{ io.Reader }

// unpackedReader counts unpacked bytes and stops a bomb early.
type unpackedReader struct {
	r      io.Reader
	packed *packedReader
	limits *Limits
	read   int64
}

func (u *unpackedReader) Read(b []byte) (int, error) {
	n, err := u.r.Read(b)
	u.read += int64(n)
	if limitErr := u.check(); limitErr != nil {
		return 0, limitErr
	}
	return n, err
}

func (u *unpackedReader) check() error {
	if err := u.limits.check(limitUnpacked, u.read); err != nil {
		return err
	}
	if u.read <= ratioFloor || u.packed.read == 0 {
		return nil
	}
	return u.limits.check(limitRatio, u.read/u.packed.read)
}
