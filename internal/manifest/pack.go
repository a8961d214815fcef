// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	// MaxPart is the largest part in bytes, such that a Secret with it stays
	// below the 1 MiB that the API server allows.
	MaxPart = 900 << 10
	// MaxSize is the largest size of what may be packed, in bytes: what a
	// revision of 100,000 small objects needs.
	MaxSize = 256 << 20
)

// Pack compresses and cuts into parts of at most MaxPart bytes. There is at least one.
func Pack(data []byte) ([][]byte, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("%d bytes are more than the %d that one revision may have; split the bundle", len(data), MaxSize)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	packed := encoder.EncodeAll(data, nil)
	var parts [][]byte
	for len(packed) > MaxPart {
		parts, packed = append(parts, packed[:MaxPart:MaxPart]), packed[MaxPart:]
	}
	return append(parts, packed), nil
}

// Unpack is the inverse of Pack. More than MaxSize bytes are an error.
func Unpack(parts [][]byte) ([]byte, error) {
	decoder, err := zstd.NewReader(bytes.NewReader(bytes.Join(parts, nil)), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxSize))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	data, err := io.ReadAll(io.LimitReader(decoder, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	if len(data) > MaxSize {
		return nil, fmt.Errorf("more than %d bytes when decompressed", MaxSize)
	}
	return data, nil
}
