// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// Of a large file, such as the image of a disk, often just a few pages are
// wanted. To verify those alone there is a list of checksums of its pieces,
// recorded when the file is stored. A checksum finds what disks and power
// failures do to a file, and is quick to compute beside the digest. It is as
// good as the list, which has the digest of the file and a checksum of its own;
// without a list, or with a damaged one, the whole file is digested and a new
// list made.
const (
	chunkSize  = 256 << 10
	chunkFloor = 8 << 20 // files below get a list when somebody wants it
	chunksKept = 8       // pieces that an open file keeps
	chunksHead = "rukpak chunks 1\n"
)

// chunkHasher makes the checksums of what is written to it.
type chunkHasher struct {
	sums []uint64
	now  *xxhash.Digest
	left int // bytes of the piece that are to come
}

// Write never fails.
func (c *chunkHasher) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if c.now == nil {
			c.now, c.left = xxhash.New(), chunkSize
		}
		n := min(len(rest), c.left)
		_, _ = c.now.Write(rest[:n])
		if rest, c.left = rest[n:], c.left-n; c.left == 0 {
			c.sums, c.now = append(c.sums, c.now.Sum64()), nil
		}
	}
	return len(p), nil
}

func (c *chunkHasher) finish() []uint64 {
	if c.now != nil {
		c.sums, c.now = append(c.sums, c.now.Sum64()), nil
	}
	return c.sums
}

func (d *Disk) chunksPath(sum Sum) string { return filepath.Join(d.dir, chunksName, sum.String()) }

func formatChunks(sum Sum, sums []uint64) []byte {
	data := append([]byte(chunksHead), sum[:]...)
	for _, one := range sums {
		data = binary.LittleEndian.AppendUint64(data, one)
	}
	return binary.LittleEndian.AppendUint64(data, xxhash.Sum64(data))
}

// putChunks stores a list.
func (d *Disk) putChunks(sum Sum, sums []uint64) error {
	data := formatChunks(sum, sums)
	temp, err := os.CreateTemp(filepath.Join(d.dir, workName), "chunks-")
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = replace(temp.Name(), d.chunksPath(sum))
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

// chunkSums gives the list of an open file, and makes it if there is none.
func (d *Disk) chunkSums(file *os.File, sum Sum, size int64) ([]uint64, error) {
	if sums, ok := d.readChunks(sum, size); ok {
		return sums, nil
	}
	hasher, chunks := sha256.New(), &chunkHasher{}
	if _, err := io.Copy(io.MultiWriter(hasher, chunks), io.NewSectionReader(file, 0, size)); err != nil {
		if errors.Is(err, fs.ErrClosed) {
			return nil, err
		}
		return nil, d.damaged(sum, fmt.Sprintf("reading it: %v", err))
	}
	if got := Sum(hasher.Sum(nil)); got != sum {
		return nil, d.damaged(sum, "its digest is "+string(got.Digest()))
	}
	sums := chunks.finish()
	_ = d.putChunks(sum, sums) // else it is made again the next time
	return sums, nil
}

func (d *Disk) readChunks(sum Sum, size int64) ([]uint64, bool) {
	data, err := os.ReadFile(d.chunksPath(sum))
	if err != nil {
		return nil, false
	}
	return parseChunks(data, sum, size)
}

// parseChunks takes a list only if all of it is as it was written for this file.
func parseChunks(data []byte, sum Sum, size int64) ([]uint64, bool) {
	count := int((size + chunkSize - 1) / chunkSize)
	if len(data) != len(chunksHead)+len(sum)+8*count+8 {
		return nil, false
	}
	body, last := data[:len(data)-8], data[len(data)-8:]
	if xxhash.Sum64(body) != binary.LittleEndian.Uint64(last) || !bytes.HasPrefix(body, append([]byte(chunksHead), sum[:]...)) {
		return nil, false
	}
	sums := make([]uint64, count)
	for i := range sums {
		sums[i] = binary.LittleEndian.Uint64(body[len(chunksHead)+len(sum)+8*i:])
	}
	return sums, true
}

// chunkReader reads a file from anywhere, piece by verified piece.
type chunkReader struct {
	file    *os.File
	size    int64
	sums    []uint64
	damaged func(reason string) error

	mu   sync.Mutex
	kept [chunksKept]chunk
	next int // place in kept that is used again next
}

type chunk struct {
	number int64
	data   []byte
}

func (c *chunkReader) readAt(p []byte, offset int64) (done int, err error) {
	if offset < 0 {
		return 0, fs.ErrInvalid
	}
	for done < len(p) {
		at := offset + int64(done)
		if at >= c.size {
			return done, io.EOF
		}
		n, err := c.copy(p[done:], at)
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// copy gives bytes of one piece.
func (c *chunkReader) copy(p []byte, at int64) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	number := at / chunkSize
	for i := range c.kept {
		if c.kept[i].data != nil && c.kept[i].number == number {
			return copy(p, c.kept[i].data[at%chunkSize:]), nil
		}
	}
	place := &c.kept[c.next]
	data := place.data[:0]
	place.data = nil
	if cap(data) == 0 {
		data = make([]byte, chunkSize)
	}
	data = data[:min(chunkSize, c.size-number*chunkSize)]
	if _, err := c.file.ReadAt(data, number*chunkSize); err != nil {
		if errors.Is(err, fs.ErrClosed) {
			return 0, err
		}
		return 0, c.damaged(fmt.Sprintf("reading it: %v", err))
	}
	if xxhash.Sum64(data) != c.sums[number] {
		return 0, c.damaged(fmt.Sprintf("its bytes from %d on are not those that were stored", number*chunkSize))
	}
	c.next = (c.next + 1) % chunksKept
	*place = chunk{number, data}
	return copy(p, data[at%chunkSize:]), nil
}
