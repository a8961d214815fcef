// SPDX-License-Identifier: Apache-2.0

// Package ext4 reads ext2, ext3 and ext4 filesystems in place, for package
// fsimage. It is part of unpack, the second step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// It reads the descriptor and the inodes that a name leads over, and nothing
// else, so that its memory does not grow with the image. Checksums of metadata
// are not looked at: the digest of the image covers all of it.
package ext4

import (
	"encoding/binary"
	"io"
	"time"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

// Features without which an image cannot be read right.
const (
	featureCompression = 0x1
	featureFileType    = 0x2
	featureRecover     = 0x4
	featureJournal     = 0x8
	featureMetaGroups  = 0x10
	featureExtents     = 0x40
	feature64Bit       = 0x80
	featureMMP         = 0x100
	featureFlexGroups  = 0x200
	featureEAInode     = 0x400
	featureChecksum    = 0x2000
	featureLargeDir    = 0x4000
	featureInlineData  = 0x8000
	featureEncrypt     = 0x10000
	featureCaseFold    = 0x20000

	readable = featureFileType | featureMetaGroups | featureExtents | feature64Bit | featureMMP | featureFlexGroups |
		featureEAInode | featureChecksum | featureLargeDir | featureInlineData | featureEncrypt | featureCaseFold

	readOnlySparse = 0x1   // of the features that a reader may not know
	compatSparse2  = 0x200 // the same
)

// Places in the superblock, and sizes.
const (
	superOffset = 1024
	superSize   = 1024
	rootInode   = 2
	maxBlockLog = 6 // 64 KiB
)

var little = binary.LittleEndian

// driver is an open filesystem.
type driver struct {
	r           io.ReaderAt
	blockSize   int64
	blocks      uint64
	firstBlock  uint64 // that of the first group
	perGroup    uint64 // blocks
	inodes      uint32
	inodesGroup uint32
	inodeSize   int64
	descSize    int64
	features    uint32
	firstMeta   uint64                  // group from which on descriptors stand in their groups
	backup      func(group uint64) bool // tells whether a group begins with a copy of the superblock
}

// Open reads the superblock.
func Open(r io.ReaderAt, size int64) (volume.Driver, error) {
	super := make([]byte, superSize)
	if err := volume.ReadFull(r, super, superOffset); err != nil {
		return nil, err
	}
	d := &driver{
		r:           r,
		blocks:      uint64(little.Uint32(super[4:])),
		firstBlock:  uint64(little.Uint32(super[20:])),
		perGroup:    uint64(little.Uint32(super[32:])),
		inodes:      little.Uint32(super),
		inodesGroup: little.Uint32(super[40:]),
		inodeSize:   128,
		descSize:    32,
		features:    little.Uint32(super[96:]),
		firstMeta:   ^uint64(0),
	}
	if little.Uint32(super[76:]) == 0 { // the first revision had no features
		d.features = 0
	} else {
		d.inodeSize = int64(little.Uint16(super[88:]))
	}
	if d.has(feature64Bit) {
		d.blocks |= uint64(little.Uint32(super[336:])) << 32
		d.descSize = int64(little.Uint16(super[254:]))
	}
	if d.has(featureMetaGroups) {
		d.firstMeta = uint64(little.Uint32(super[260:]))
	}
	d.backup = backups(super)
	return d, d.check(little.Uint32(super[24:]), size)
}

func (d *driver) has(feature uint32) bool { return d.features&feature != 0 }

func (d *driver) check(blockLog uint32, size int64) error {
	if blockLog > maxBlockLog {
		return volume.Malformed("its block size is 2 to the power of %d", 10+uint64(blockLog))
	}
	d.blockSize = 1024 << blockLog
	if d.has(featureRecover) {
		return volume.Unsupported("it was in use when it was copied, so that its journal has to be replayed; run e2fsck -p on it and publish it again")
	}
	if unknown := d.features &^ readable; unknown != 0 {
		return volume.Unsupported("it has features that no reader here knows: %#x", unknown)
	}
	return d.checkSizes(size)
}

func (d *driver) checkSizes(size int64) error {
	switch {
	case d.inodeSize < 128 || d.inodeSize > d.blockSize || d.inodeSize&(d.inodeSize-1) != 0:
		return volume.Malformed("its inodes have %d bytes", d.inodeSize)
	case d.descSize < 32 || d.descSize > 1024 || d.has(feature64Bit) && d.descSize < 64:
		return volume.Malformed("its group descriptors have %d bytes", d.descSize)
	case d.perGroup == 0 || d.inodesGroup == 0 || uint64(d.inodesGroup) > uint64(d.blockSize)*8:
		return volume.Malformed("its groups have %d blocks and %d inodes", d.perGroup, d.inodesGroup)
	case d.blocks > uint64(size)/uint64(d.blockSize) || d.firstBlock >= d.blocks:
		return volume.Malformed("it is said to have %d blocks of %d bytes; it may be cut off", d.blocks, d.blockSize)
	}
	return nil
}

// backups tells in which groups copies of the superblock are.
func backups(super []byte) func(uint64) bool {
	sparse := little.Uint32(super[100:])&readOnlySparse != 0
	if little.Uint32(super[92:])&compatSparse2 != 0 {
		one, two := uint64(little.Uint32(super[588:])), uint64(little.Uint32(super[592:]))
		return func(group uint64) bool { return group == 0 || group == one || group == two }
	}
	return func(group uint64) bool {
		return !sparse || group <= 1 || powerOf(group, 3) || powerOf(group, 5) || powerOf(group, 7)
	}
}

func powerOf(n, base uint64) bool {
	for n > 1 && n%base == 0 {
		n /= base
	}
	return n == 1
}

// descriptor gives the place of the descriptor of a group.
func (d *driver) descriptor(group uint64) int64 {
	perBlock := uint64(d.blockSize / d.descSize)
	block, at := group/perBlock, int64(group%perBlock)*d.descSize
	super := uint64(superOffset / d.blockSize) // block of the superblock: with clusters not always the first
	if block < d.firstMeta {
		return int64(super+1+block)*d.blockSize + at
	}
	first := block * perBlock
	place := d.firstBlock + first*d.perGroup
	switch {
	case first == 0:
		place = super + 1
	case d.backup(first):
		place++
	}
	return int64(place)*d.blockSize + at
}

// inode is what is on disk of a file, as far as it is needed.
type inode struct {
	number uint32
	raw    []byte
	flags  uint32
}

func (i *inode) block() []byte { return i.raw[40:100] }

// node reads an inode.
func (d *driver) node(number uint32) (volume.Node, error) {
	if number == 0 || number > d.inodes {
		return volume.Node{}, volume.Malformed("a folder names inode %d, and there are %d", number, d.inodes)
	}
	desc := make([]byte, d.descSize)
	if err := volume.ReadFull(d.r, desc, d.descriptor(uint64((number-1)/d.inodesGroup))); err != nil {
		return volume.Node{}, err
	}
	table := uint64(little.Uint32(desc[8:]))
	if d.has(feature64Bit) {
		table |= uint64(little.Uint32(desc[40:])) << 32
	}
	if table >= d.blocks {
		return volume.Node{}, volume.Malformed("a table of inodes is said to be behind its end")
	}
	raw := make([]byte, d.inodeSize)
	if err := volume.ReadFull(d.r, raw, int64(table)*d.blockSize+int64((number-1)%d.inodesGroup)*d.inodeSize); err != nil {
		return volume.Node{}, err
	}
	i := &inode{number: number, raw: raw, flags: little.Uint32(raw[32:])}
	size := uint64(little.Uint32(raw[4:]))
	mode := volume.UnixMode(uint32(little.Uint16(raw)))
	if mode.IsRegular() || d.has(featureLargeDir) {
		size |= uint64(little.Uint32(raw[108:])) << 32
	}
	if size > maxSize {
		return volume.Node{}, volume.Malformed("inode %d is said to have %d bytes", number, size)
	}
	return volume.Node{ID: uint64(number), Mode: mode, Size: int64(size), ModTime: i.modified(), Inode: i}, nil
}

// maxSize is more than any file of ext4 can have.
const maxSize = 1 << 48

func (i *inode) modified() time.Time {
	seconds := int64(int32(little.Uint32(i.raw[16:])))
	nanoseconds := int64(0)
	if len(i.raw) >= 140 && little.Uint16(i.raw[128:]) >= 12 {
		extra := little.Uint32(i.raw[136:])
		seconds += int64(extra&3) << 32
		nanoseconds = int64(extra >> 2)
	}
	return time.Unix(seconds, nanoseconds).UTC()
}

// Root gives the root folder.
func (d *driver) Root() (volume.Node, error) { return d.node(rootInode) }

// Open gives the bytes of a file.
func (d *driver) Open(n volume.Node) (io.ReaderAt, error) { return d.bytes(n) }

// Link gives what a symbolic link says. A short one stands in the inode.
func (d *driver) Link(n volume.Node) (string, error) {
	i := n.Inode.(*inode)
	if n.Size > volume.MaxTarget {
		return "", volume.Malformed("a link says %d bytes", n.Size)
	}
	if short := i.block(); i.flags&(flagExtents|flagInline) == 0 && n.Size < int64(len(short)) {
		return string(short[:n.Size]), nil
	}
	bytes, err := d.bytes(n)
	if err != nil {
		return "", err
	}
	target := make([]byte, n.Size)
	err = volume.ReadFull(bytes, target, 0)
	return string(target), err
}
