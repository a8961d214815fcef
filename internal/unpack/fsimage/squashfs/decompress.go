// SPDX-License-Identifier: Apache-2.0

package squashfs

import (
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/mikelolasagasti/xz"
	"github.com/pierrec/lz4/v4"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

// decompressor gives what is in a block, and an error if that is more than most.
type decompressor func(packed []byte, most int64) ([]byte, error)

// decompressorOf gives that of an image by the number in the superblock.
func decompressorOf(number uint16, blockSize int64) (decompressor, error) {
	switch number {
	case 1:
		return streamed(func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }), nil
	case 2:
		return nil, volume.Unsupported("it is compressed with lzma; pack it with gzip, lzo, xz, lz4 or zstd")
	case 3:
		return unpackLZO, nil
	case 4:
		dictionary := uint32(max(blockSize, metaSize))
		return streamed(func(r io.Reader) (io.Reader, error) { return xz.NewReader(r, dictionary) }), nil
	case 5:
		return unpackLZ4, nil
	case 6:
		return unpackZstd, nil
	default:
		return nil, volume.Unsupported("it is compressed by method %d", number)
	}
}

func broken(err error) error { return volume.Malformed("a block cannot be decompressed: %v", err) }

var errTooLong = errors.New("it has more bytes than a block")

func streamed(open func(io.Reader) (io.Reader, error)) decompressor {
	return func(packed []byte, most int64) ([]byte, error) {
		r, err := open(bytes.NewReader(packed))
		if err != nil {
			return nil, broken(err)
		}
		var out bytes.Buffer
		n, err := io.Copy(&out, io.LimitReader(r, most+1))
		if err == nil && n > most {
			err = errTooLong
		}
		if err != nil {
			return nil, broken(err)
		}
		return out.Bytes(), nil
	}
}

func unpackLZ4(packed []byte, most int64) ([]byte, error) {
	out := make([]byte, most)
	n, err := lz4.UncompressBlock(packed, out)
	if err != nil {
		return nil, broken(err)
	}
	return out[:n], nil
}

// zstdDecoder is for all images: it takes whole blocks, from any goroutine.
var zstdDecoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(2*maxBlock), zstd.WithDecoderLowmem(true))

func unpackZstd(packed []byte, most int64) ([]byte, error) {
	out, err := zstdDecoder.DecodeAll(packed, nil)
	if err == nil && int64(len(out)) > most {
		err = errTooLong
	}
	if err != nil {
		return nil, broken(err)
	}
	return out, nil
}
