// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
)

// Names inside the folder of a store.
const (
	markerName  = "RUKPAK-CONTENT-STORE"
	lockName    = "lock"
	blobsName   = "blobs"   // blobs/ab/cdef...: files by digest
	layersName  = "layers"  // layers/<sha256 of the key>: records of layers
	recipesName = "recipes" // recipes/<sha256 of the keys>: which layers gave which tree
	treesName   = "trees"   // trees/<digest>: listings
	chunksName  = "chunks"  // chunks/<digest>: checksums of the pieces of a large file
	workName    = "work"    // half-made things; emptied when the store is opened
)

const marker = "rukpak content store 1\n"

// DefaultGrace is how long a tree that nobody keeps is left alone after it was
// written or fetched again.
const DefaultGrace = 10 * time.Minute

// Options of a disk store.
type Options struct {
	// Wait is how long to wait for another process that has the store open.
	// Zero means not at all.
	Wait time.Duration
	// Grace is how long Collect spares what was written; zero means
	// DefaultGrace, negative means not at all.
	Grace time.Duration
}

// Disk is a store in a folder of a local disk.
type Disk struct {
	dir   string
	grace time.Duration
	lock  *os.File

	mu      sync.Mutex
	pins    pins
	whole   map[digest.Digest]Tree // trees that were seen whole; cleared when something is found damaged
	damages int                    // how often that happened
	works   int                    // number of sessions begun
	working map[LayerKey]chan struct{}

	shared  *sharing // nil if what the disk lacks is nowhere else
	recipes recipes

	collecting sync.Mutex
}

// OpenDisk opens the store in a folder and makes it if the folder is absent or
// empty. It refuses a folder that holds something else, and one that another
// process has open. Left-overs of a killed process are removed, and whatever
// stands in the place of the store's own folders.
func OpenDisk(ctx context.Context, dir string, options Options) (*Disk, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("content store: %w", err)
	}
	d := &Disk{dir: dir, grace: options.Grace, whole: map[digest.Digest]Tree{}, working: map[LayerKey]chan struct{}{}}
	if d.grace == 0 {
		d.grace = DefaultGrace
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, d.failed("make the folder", err)
	}
	if err := d.claim(); err != nil {
		return nil, err
	}
	if d.lock, err = lockFile(ctx, filepath.Join(dir, lockName), options.Wait); err != nil {
		return nil, d.failed("lock it", err)
	}
	if err := d.prepare(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close lets other processes open the store. Views that are open stay readable.
func (d *Disk) Close() error { return d.lock.Close() }

// claim makes sure that the folder is a store's, since what is in a store gets deleted.
func (d *Disk) claim() error {
	path := filepath.Join(d.dir, markerName)
	switch data, err := os.ReadFile(path); {
	case err == nil && string(data) == marker:
		return nil
	case err == nil && len(data) > 0:
		return fmt.Errorf("content store %s: it was made by another version of RukPak; remove it, its content will be fetched again", d.dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return d.failed("read "+markerName, err)
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return d.failed("read the folder", err)
	}
	for _, e := range entries {
		if !slices.Contains([]string{markerName, lockName, "lost+found"}, e.Name()) {
			return fmt.Errorf("content store %s: the folder is not empty (%q) and not a content store; choose another folder", d.dir, e.Name())
		}
	}
	if err := os.WriteFile(path, []byte(marker), 0o600); err != nil {
		return d.failed("write "+markerName, err)
	}
	return nil
}

// prepare makes the folders of the store and removes what cannot be part of it.
func (d *Disk) prepare() error {
	if err := os.RemoveAll(filepath.Join(d.dir, workName)); err != nil {
		return d.failed("remove left-overs", err)
	}
	for _, name := range []string{blobsName, layersName, recipesName, treesName, chunksName, workName} {
		path := filepath.Join(d.dir, name)
		if seen, err := os.Lstat(path); err == nil && !seen.IsDir() {
			if err := os.Remove(path); err != nil {
				return d.failed("remove what is in the place of a folder", err)
			}
		}
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return d.failed("make a folder", err)
		}
	}
	return nil
}

func (d *Disk) failed(op string, err error) error {
	return &StoreError{Op: op, Dir: d.dir, Err: err}
}

func (d *Disk) blobPath(sum Sum) string {
	name := sum.String()
	return filepath.Join(d.dir, blobsName, name[:2], name[2:])
}

func (d *Disk) treePath(tree digest.Digest) string {
	return filepath.Join(d.dir, treesName, tree.Encoded())
}

// openBlob opens a file that must be there with this size.
func (d *Disk) openBlob(sum Sum, size int64) (*os.File, error) {
	file, err := os.Open(d.blobPath(sum))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, d.damaged(sum, "it is gone")
	}
	if err != nil {
		return nil, d.failed("open a file", err)
	}
	if seen, err := file.Stat(); err != nil || !seen.Mode().IsRegular() || seen.Size() != size {
		file.Close() //nolint:errcheck // nothing was written
		return nil, d.damaged(sum, "its size is wrong")
	}
	return file, nil
}

// hasBlob tells whether a file is there with this size.
func (d *Disk) hasBlob(sum Sum, size int64) bool {
	seen, err := os.Lstat(d.blobPath(sum))
	return err == nil && seen.Mode().IsRegular() && seen.Size() == size
}

// damaged removes a file that is not what its name says, so that nothing takes
// it for good again.
func (d *Disk) damaged(sum Sum, reason string) *CorruptError {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.damages++
	clear(d.whole)
	_ = os.RemoveAll(d.blobPath(sum)) // if it cannot be removed, it will be found again
	_ = os.Remove(d.chunksPath(sum))  // the next collection removes it too
	return &CorruptError{Name: "file " + string(sum.Digest()), Reason: reason}
}

// discard removes a record that is not what its name says.
func (d *Disk) discard(path, name string, reason error) *CorruptError {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.damages++
	clear(d.whole)
	_ = os.RemoveAll(path) // if it cannot be removed, it will be found again
	return &CorruptError{Name: name, Reason: reason.Error()}
}
