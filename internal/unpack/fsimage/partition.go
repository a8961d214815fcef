// SPDX-License-Identifier: Apache-2.0

package fsimage

import (
	"bytes"
	"encoding/binary"
	"io"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

// Places in partition tables.
const (
	sector       = 512
	bootTable    = 446 // of the master boot record
	bootEntry    = 16
	bootEntries  = 4
	bootProtects = 0xee // type of the entry that covers a GPT
	gptMagic     = "EFI PART"
	gptSize      = 92
	maxParts     = 128
	firstLogical = 5 // number of the first partition inside an extended one
)

// partition is a piece of a disk.
type partition struct {
	number       int
	offset, size int64
}

// partitions reads the partition table; there may be none.
func partitions(r io.ReaderAt, size int64, head []byte) ([]partition, error) {
	for _, unit := range []int64{512, 4096} {
		if int64(len(head)) >= unit+gptSize && bytes.HasPrefix(head[unit:], []byte(gptMagic)) {
			return gptPartitions(r, size, unit, head[unit:])
		}
	}
	if !hasBootRecord(head) {
		return nil, nil
	}
	return bootPartitions(r, size, head)
}

// hasBootRecord tells whether the first sector can be a partition table: its
// entries are in use or not, and nothing else.
func hasBootRecord(head []byte) bool {
	if len(head) < sector || head[510] != 0x55 || head[511] != 0xaa {
		return false
	}
	used := 0
	for i := range bootEntries {
		entry := head[bootTable+i*bootEntry:]
		if entry[0] != 0 && entry[0] != 0x80 {
			return false
		}
		if entry[4] != 0 {
			used++
		}
	}
	return used > 0
}

func gptPartitions(r io.ReaderAt, size, unit int64, header []byte) ([]partition, error) {
	count, entrySize := binary.LittleEndian.Uint32(header[80:]), binary.LittleEndian.Uint32(header[84:])
	if entrySize < 128 || entrySize > 4096 || count > 1024 {
		return nil, volume.Malformed("its partition table has %d entries of %d bytes", count, entrySize)
	}
	start := binary.LittleEndian.Uint64(header[72:])
	if start > uint64(size/unit) {
		return nil, volume.Malformed("its partition table is said to be behind its end")
	}
	var parts []partition
	entry := make([]byte, entrySize)
	for i := range int(count) {
		if err := volume.ReadFull(r, entry, int64(start)*unit+int64(i)*int64(entrySize)); err != nil {
			return nil, err
		}
		if bytes.Equal(entry[:16], make([]byte, 16)) {
			continue
		}
		first, last := binary.LittleEndian.Uint64(entry[32:]), binary.LittleEndian.Uint64(entry[40:])
		if first > last || last >= uint64(size/unit) {
			return nil, volume.Malformed("partition %d is not inside the disk", i+1)
		}
		if len(parts) == maxParts {
			return nil, volume.Unsupported("it has more than %d partitions", maxParts)
		}
		parts = append(parts, partition{i + 1, int64(first) * unit, int64(last-first+1) * unit})
	}
	return parts, nil
}

func bootPartitions(r io.ReaderAt, size int64, head []byte) ([]partition, error) {
	var parts []partition
	for i := range bootEntries {
		kind, first, count := bootPartition(head, i)
		switch {
		case kind == 0 || kind == bootProtects || count == 0:
			continue
		case first > size || count > size-first:
			return nil, volume.Malformed("partition %d is not inside the disk", i+1)
		case kind == 0x05 || kind == 0x0f || kind == 0x85:
			logical, err := logicalPartitions(r, first, count)
			if err != nil {
				return nil, err
			}
			parts = append(parts, logical...)
		default:
			parts = append(parts, partition{i + 1, first, count})
		}
	}
	return parts, nil
}

// bootPartition gives an entry, in bytes.
func bootPartition(table []byte, i int) (kind byte, first, count int64) {
	entry := table[bootTable+i*bootEntry:]
	return entry[4], int64(binary.LittleEndian.Uint32(entry[8:])) * sector, int64(binary.LittleEndian.Uint32(entry[12:])) * sector
}

// logicalPartitions follows the chain in an extended partition, each link of
// which has one partition and says where the next link is.
func logicalPartitions(r io.ReaderAt, base, size int64) ([]partition, error) {
	var parts []partition
	table := make([]byte, sector)
	for at := int64(0); ; {
		if err := volume.ReadFull(r, table, base+at); err != nil {
			return nil, err
		}
		if table[510] != 0x55 || table[511] != 0xaa {
			return nil, volume.Malformed("the chain of its logical partitions is broken")
		}
		if kind, first, count := bootPartition(table, 0); kind != 0 && count > 0 {
			if at+first > size || count > size-at-first {
				return nil, volume.Malformed("partition %d is not inside the extended one", firstLogical+len(parts))
			}
			parts = append(parts, partition{firstLogical + len(parts), base + at + first, count})
		}
		kind, next, _ := bootPartition(table, 1)
		if kind == 0 || next == 0 {
			return parts, nil
		}
		if next <= at || next >= size || len(parts) == maxParts {
			return nil, volume.Malformed("the chain of its logical partitions does not end")
		}
		at = next
	}
}
