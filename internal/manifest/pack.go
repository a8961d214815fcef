// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
)

const (
	// MaxPart is the largest part, in bytes. A Secret may hold a MiB, of which some is left to its metadata.
	MaxPart = 900 << 10
	// MaxParts is the largest number of parts: 56 MiB, compressed.
	MaxParts = 64
)

// Pack compresses b and cuts the result into parts of at most MaxPart bytes, at least one.
func Pack(b []byte) ([][]byte, error) {
	if len(b) > MaxBytes {
		return nil, tooLarge(len(b))
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	packed := encoder.EncodeAll(b, nil)
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	parts := slices.Collect(slices.Chunk(packed, MaxPart))
	if len(parts) > MaxParts {
		return nil, fmt.Errorf("%d bytes are still %d after compression, which needs %d Secrets; at most %d are used: split the bundle",
			len(b), len(packed), len(parts), MaxParts)
	}
	return parts, nil
}

// Unpack puts the parts that Pack made together again. It gives at most MaxBytes, whatever the parts are.
func Unpack(parts [][]byte) ([]byte, error) {
	readers := make([]io.Reader, len(parts))
	for i, part := range parts {
		readers[i] = bytes.NewReader(part)
	}
	decoder, err := zstd.NewReader(io.MultiReader(readers...), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	defer decoder.Close()
	var out bytes.Buffer
	switch n, err := io.Copy(&out, io.LimitReader(decoder, MaxBytes+1)); {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), err == nil && n > MaxBytes:
		return nil, fmt.Errorf("decompress: more than %d MiB", MaxBytes>>20)
	case err != nil:
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return out.Bytes(), nil
}
