// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/mikelolasagasti/xz"
)

// maxWindow bounds the memory that a zstd stream may ask for. Streams made with
// levels up to 19 ask for less; only "--ultra" and "--long" ask for more.
const maxWindow = 8 << 20

// maxDictionary bounds the memory that an xz stream may ask for: "xz -9" asks
// for that much. Since it is a lot, few are decompressed at once. Whoever waits
// for a turn has all packed bytes on disk, so no slow source holds a turn up.
const (
	maxDictionary = 64 << 20
	xzAtOnce      = 2
)

var xzTurns = make(chan struct{}, xzAtOnce)

// decompress gives the bytes inside and a function that frees its memory.
func decompress(ctx context.Context, r io.Reader, compression Compression) (io.Reader, func(), error) {
	switch compression {
	case Plain:
		return r, func() {}, nil
	case Gzip:
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, err
		}
		return z, func() { _ = z.Close() }, nil // Close repeats the error of Read
	case Zstd:
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	case Xz:
		return decompressXz(ctx, r)
	case Bzip2:
		return bzip2.NewReader(r), func() {}, nil
	default:
		return nil, nil, fmt.Errorf("unknown compression %q", compression)
	}
}

func decompressXz(ctx context.Context, r io.Reader) (io.Reader, func(), error) {
	select {
	case xzTurns <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	done := func() { <-xzTurns }
	z, err := xz.NewReader(r, maxDictionary)
	if err != nil {
		done()
		return nil, nil, err
	}
	return z, done, nil
}

// explain says in words what a decompressor means.
func explain(err error) error {
	switch {
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return &LimitError{Limit: "zstd-window", Most: maxWindow, what: "bytes of zstd window", how: "pack it without --ultra and --long"}
	case errors.Is(err, xz.ErrMemlimit):
		return &LimitError{Limit: "xz-dictionary", Most: maxDictionary, what: "bytes of xz dictionary", how: "pack it with one of the presets of xz"}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, xz.ErrBuf):
		return errors.New("the archive is cut off")
	default:
		return err
	}
}
