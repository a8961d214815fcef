// SPDX-License-Identifier: Apache-2.0

// Package fat reads FAT12, FAT16 and FAT32 filesystems in place, for package
// fsimage. It is part of unpack, the second step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// Names are long ones where there are, else short ones in the letters that the
// entry asks for. They are found as they are listed: capital letters matter,
// unlike on the machines that made them.
package fat

import (
	"bytes"
	"encoding/binary"
	"io"
	"io/fs"
	"sort"

	"rukpak.io/rukpak/internal/unpack/fsimage/volume"
)

const (
	bootSize  = 512
	entrySize = 32
	// More clusters than these need wider numbers.
	maxFAT12 = 4085
	maxFAT16 = 65525
	maxFAT32 = 1<<28 - 16
)

var little = binary.LittleEndian

// Begins tells whether the first sector is that of a FAT filesystem, and not a
// partition table, which ends in the same two bytes.
func Begins(head []byte) bool {
	if len(head) < bootSize || head[510] != 0x55 || head[511] != 0xaa || head[0] != 0xeb && head[0] != 0xe9 {
		return false
	}
	return bytes.HasPrefix(head[54:], []byte("FAT")) || bytes.HasPrefix(head[82:], []byte("FAT32"))
}

// driver is an open filesystem. Places are in bytes.
type driver struct {
	r        io.ReaderAt
	width    int // bits of a number in the table
	table    int64
	root     int64 // FAT12 and FAT16: place of the root folder
	rootSize int64
	first    uint32 // FAT32: first cluster of the root folder
	data     int64  // place of cluster 2
	cluster  int64  // bytes of one
	clusters uint32
}

// Open reads the first sector.
func Open(r io.ReaderAt, size int64) (volume.Driver, error) {
	boot := make([]byte, bootSize)
	if err := volume.ReadFull(r, boot, 0); err != nil {
		return nil, err
	}
	sector, perCluster, err := units(boot)
	if err != nil {
		return nil, err
	}
	tableSize, total := int64(little.Uint16(boot[22:])), int64(little.Uint16(boot[19:]))
	if tableSize == 0 {
		tableSize = int64(little.Uint32(boot[36:]))
	}
	if total == 0 {
		total = int64(little.Uint32(boot[32:]))
	}
	d := &driver{r: r, cluster: sector * perCluster, table: int64(little.Uint16(boot[14:])) * sector}
	d.root = d.table + int64(boot[16])*tableSize*sector
	d.rootSize = int64(little.Uint16(boot[17:])) * entrySize
	d.data = d.root + (d.rootSize+sector-1)/sector*sector
	if d.table == 0 || boot[16] == 0 || total*sector > size || d.data >= total*sector {
		return nil, volume.Malformed("it is said to have %d sectors of %d bytes; it may be cut off", total, sector)
	}
	clusters := (total*sector - d.data) / d.cluster
	if clusters > maxFAT32 {
		return nil, volume.Malformed("it has %d clusters", clusters)
	}
	d.clusters = uint32(clusters)
	d.width = widthOf(clusters)
	if d.width == 32 {
		d.first = little.Uint32(boot[44:])
	}
	if (clusters+2)*int64(d.width)/8 > tableSize*sector {
		return nil, volume.Malformed("its table is too short for %d clusters", clusters)
	}
	return d, nil
}

// units gives the bytes of a sector, and the sectors of a cluster.
func units(boot []byte) (sector, perCluster int64, err error) {
	sector, perCluster = int64(little.Uint16(boot[11:])), int64(boot[13])
	if sector < 512 || sector > 4096 || sector&(sector-1) != 0 || perCluster == 0 || perCluster&(perCluster-1) != 0 {
		err = volume.Malformed("its sectors have %d bytes, its clusters %d sectors", sector, perCluster)
	}
	return sector, perCluster, err
}

func widthOf(clusters int64) int {
	switch {
	case clusters < maxFAT12:
		return 12
	case clusters < maxFAT16:
		return 16
	default:
		return 32
	}
}

// rootID is that of the root folder; others have that of their first cluster.
const rootID = 0

// Root gives the root folder.
func (d *driver) Root() (volume.Node, error) {
	return volume.Node{ID: rootID, Mode: fs.ModeDir | 0o555, Inode: entry{cluster: d.first, root: true}}, nil
}

// Link is never asked for: there are no links.
func (d *driver) Link(volume.Node) (string, error) { return "", fs.ErrInvalid }

// Open finds the clusters of a file.
func (d *driver) Open(n volume.Node) (io.ReaderAt, error) {
	need := (n.Size + d.cluster - 1) / d.cluster
	chain, err := d.chain(n.Inode.(entry).cluster, need)
	if err == nil && chain.clusters < need {
		err = volume.Malformed("a file has fewer clusters than bytes")
	}
	return chain, err
}

// run is consecutive clusters.
type run struct {
	first uint32
	count int64
	from  int64 // bytes of the file before it
}

// chain is the clusters of a file.
type chain struct {
	d        *driver
	runs     []run
	clusters int64
}

// maxRuns bounds the memory for one file in pieces all over the image.
const maxRuns = 1 << 18

// chain follows the table, for at most so many clusters.
func (d *driver) chain(cluster uint32, most int64) (*chain, error) {
	c := &chain{d: d}
	table := window{r: d.r}
	for c.clusters < most {
		if cluster < 2 || cluster-2 >= d.clusters {
			if c.clusters == 0 && cluster == 0 || d.ends(cluster) && c.clusters > 0 {
				return c, nil
			}
			return nil, volume.Malformed("a file names cluster %d, and there are %d", cluster, d.clusters)
		}
		if last := len(c.runs) - 1; last >= 0 && c.runs[last].first+uint32(c.runs[last].count) == cluster {
			c.runs[last].count++
		} else if len(c.runs) >= maxRuns {
			return nil, volume.Unsupported("a file is in more than %d pieces", maxRuns)
		} else {
			c.runs = append(c.runs, run{cluster, 1, c.clusters * d.cluster})
		}
		c.clusters++
		var err error
		if cluster, err = d.next(&table, cluster); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// ends tells whether a number in the table says that a file has no more.
func (d *driver) ends(cluster uint32) bool {
	switch d.width {
	case 12:
		return cluster >= 0xff8
	case 16:
		return cluster >= 0xfff8
	default:
		return cluster >= 0xffffff8
	}
}

func (d *driver) next(table *window, cluster uint32) (uint32, error) {
	var raw [4]byte
	switch d.width {
	case 12:
		err := table.read(raw[:2], d.table+int64(cluster)*3/2)
		return uint32(little.Uint16(raw[:])) >> (cluster % 2 * 4) & 0xfff, err
	case 16:
		err := table.read(raw[:2], d.table+int64(cluster)*2)
		return uint32(little.Uint16(raw[:])), err
	default:
		err := table.read(raw[:], d.table+int64(cluster)*4)
		return little.Uint32(raw[:]) & 0xfffffff, err
	}
}

// window reads numbers that stand close to one another with few reads.
type window struct {
	r    io.ReaderAt
	at   int64
	data []byte
}

const windowSize = 4 << 10

func (w *window) read(p []byte, at int64) error {
	if at < w.at || at+int64(len(p)) > w.at+int64(len(w.data)) {
		data := make([]byte, windowSize)
		n, err := w.r.ReadAt(data, at)
		if n < len(p) {
			return volume.ReadFull(w.r, p, at) // says what is wrong
		}
		_ = err // that of the end, or it comes again
		w.at, w.data = at, data[:n]
	}
	copy(p, w.data[at-w.at:])
	return nil
}

// ReadAt reads across runs.
func (c *chain) ReadAt(p []byte, offset int64) (done int, err error) {
	at := sort.Search(len(c.runs), func(i int) bool { return c.runs[i].from > offset }) - 1
	for ; at >= 0 && at < len(c.runs) && done < len(p); at++ {
		r := c.runs[at]
		skip := offset + int64(done) - r.from
		n := int(min(int64(len(p)-done), r.count*c.d.cluster-skip))
		if n <= 0 {
			break // behind the last
		}
		if err := volume.ReadFull(c.d.r, p[done:done+n], c.d.data+int64(r.first-2)*c.d.cluster+skip); err != nil {
			return done, err
		}
		done += n
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}
