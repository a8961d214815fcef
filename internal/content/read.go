// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/opencontainers/go-digest"
)

// Open gives the read-only view of a tree; see Store.
func (d *Disk) Open(ctx context.Context, tree digest.Digest) (fs.FS, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := d.load(tree)
	if err != nil {
		return nil, err
	}
	return &treeFS{root: b.root, blobs: d, digest: tree}, nil
}

// Stat describes a tree that is whole; the error is like that of Open.
func (d *Disk) Stat(tree digest.Digest) (Tree, error) {
	d.mu.Lock()
	seen, ok := d.whole[tree]
	d.mu.Unlock()
	if ok {
		return seen, nil
	}
	b, err := d.load(tree)
	if err != nil {
		return Tree{}, err
	}
	return b.tree, nil
}

// Has tells whether the whole tree is there: its listing is intact and all its
// files have the right size. That is looked up once and remembered until
// something is found damaged.
func (d *Disk) Has(tree digest.Digest) bool {
	_, err := d.Stat(tree)
	return err == nil
}

// load reads and checks a listing, and that its files are there.
func (d *Disk) load(tree digest.Digest) (*builder, error) {
	if err := tree.Validate(); err != nil || tree.Algorithm() != digest.SHA256 {
		return nil, fmt.Errorf("content store: %q is not a SHA-256 digest", tree)
	}
	d.mu.Lock()
	_, known := d.whole[tree]
	damages := d.damages
	d.mu.Unlock()
	b, err := d.readTree(tree)
	if err != nil {
		return nil, err
	}
	if known {
		return b, nil
	}
	if err := d.checkFiles(b.root); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if damages == d.damages {
		d.whole[tree] = b.tree
	}
	return b, nil
}

// readTree reads a listing. One that is damaged is removed.
func (d *Disk) readTree(tree digest.Digest) (*builder, error) {
	path := d.treePath(tree)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		d.forget(tree)
		return nil, fmt.Errorf("content store: tree %s: %w", tree, fs.ErrNotExist)
	}
	if err != nil {
		return nil, d.failed("open a listing", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	b := newBuilder()
	if err := readTree(bufio.NewReader(file), tree, b.add); err != nil {
		return nil, d.discard(path, "listing of tree "+string(tree), err)
	}
	// The digest is checked after the entries were believed, so that nothing
	// of a damaged listing leaves this function.
	b.tree.Digest = tree
	return b, nil
}

// forget makes Has look again: somebody else removed the listing.
func (d *Disk) forget(tree digest.Digest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.whole, tree)
}

func (d *Disk) checkFiles(n *node) error {
	if n.entry.Kind == File && !d.hasBlob(n.entry.Sum, n.entry.Size) {
		return at(n, d.damaged(n.entry.Sum, "it is gone or its size is wrong"))
	}
	for _, child := range n.children {
		if err := d.checkFiles(child); err != nil {
			return err
		}
	}
	return nil
}
