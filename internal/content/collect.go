// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
)

// Collect removes what cannot be reached; see Store. Trees are reached if keep
// says so; recipes from their trees, layers from their recipes, and files from
// trees and layers. Records go before the files that they name, so that a kill
// in between leaves only files that nothing names, for the next collection.
func (d *Disk) Collect(ctx context.Context, keep func(digest.Digest) bool) (Collected, error) {
	d.collecting.Lock()
	defer d.collecting.Unlock()
	d.mu.Lock()
	d.pins.beginCollect()
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.pins.endCollect()
	}()
	c := &collection{disk: d, keep: keep, files: map[Sum]struct{}{}, layers: map[string]struct{}{}, before: time.Now().Add(-d.grace)}
	for _, step := range []func(context.Context) error{c.trees, c.recipes, c.layerRecords, c.blobs, c.chunks} {
		if err := step(ctx); err != nil {
			return c.done, err
		}
	}
	return c.done, nil
}

// collection is one run of Collect.
type collection struct {
	disk   *Disk
	keep   func(digest.Digest) bool
	before time.Time // what changed later is spared
	files  map[Sum]struct{}
	layers map[string]struct{} // paths of the records of layers that are reached
	done   Collected
}

func (c *collection) trees(ctx context.Context) error {
	return c.each(ctx, treesName, func(path string, entry fs.DirEntry) error {
		tree, ok := treeOf(entry.Name())
		if ok && (c.keep(tree) || c.spared(path, entry)) {
			return c.reachTree(tree)
		}
		removed, err := c.remove(path, func() { delete(c.disk.whole, tree); c.disk.recipes.forget(tree) })
		if removed {
			c.done.Trees++
			return err
		}
		if err == nil && ok {
			return c.reachTree(tree)
		}
		return err
	})
}

func (c *collection) reachTree(tree digest.Digest) error {
	b, err := c.disk.readTree(tree)
	if _, corrupt := errors.AsType[*CorruptError](err); corrupt || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	c.reachNode(b.root)
	return nil
}

func (c *collection) reachNode(n *node) {
	if n.entry.Kind == File {
		c.files[n.entry.Sum] = struct{}{}
	}
	for _, child := range n.children {
		c.reachNode(child)
	}
}

func (c *collection) recipes(ctx context.Context) error {
	return c.each(ctx, recipesName, func(path string, _ fs.DirEntry) error {
		tree, keys, err := recipeAt(path)
		if err == nil {
			_, err = os.Lstat(c.disk.treePath(tree))
		}
		if err != nil {
			removed, err := c.remove(path, func() {})
			if removed || err != nil {
				return err
			}
		}
		for _, key := range keys {
			c.layers[c.disk.layerPath(key)] = struct{}{}
		}
		return nil
	})
}

// layerRecords keeps those of a fetch that failed half-way for a while: it will
// be tried again.
func (c *collection) layerRecords(ctx context.Context) error {
	return c.each(ctx, layersName, func(path string, entry fs.DirEntry) error {
		if _, ok := c.layers[path]; ok || c.spared(path, entry) {
			return c.reachLayer(path)
		}
		removed, err := c.remove(path, func() {})
		if removed {
			c.done.Layers++
			return err
		}
		if err != nil {
			return err
		}
		return c.reachLayer(path)
	})
}

func (c *collection) reachLayer(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return c.disk.failed("open a record", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	return eachLayerFile(file, func(sum Sum) { c.files[sum] = struct{}{} })
}

// eachLayerFile calls each for the files of a layer's record. A damaged record
// reaches nothing: whoever reads it fetches the layer again.
func eachLayerFile(r io.Reader, each func(Sum)) error {
	rr, err := newRecordReader(r, layerHeader)
	for i := 0; err == nil; i++ {
		var line string
		if line, err = rr.next(); err != nil || i < 3 {
			continue
		}
		if e, parseErr := parseEntry(line); parseErr == nil && e.Kind == File {
			each(e.Sum)
		}
	}
	return nil
}

func (c *collection) blobs(ctx context.Context) error {
	return c.each(ctx, blobsName, func(_ string, shard fs.DirEntry) error {
		if !shard.IsDir() {
			return nil // replaced when something is stored there
		}
		return c.each(ctx, filepath.Join(blobsName, shard.Name()), func(path string, entry fs.DirEntry) error {
			return c.blob(path, shard.Name()+entry.Name())
		})
	})
}

func (c *collection) blob(path, name string) error {
	tree, ok := treeOf(name)
	var sum Sum
	if ok {
		sum = sumOf(tree)
		if _, reached := c.files[sum]; reached {
			return nil
		}
	}
	seen, err := os.Lstat(path)
	if err != nil {
		return nil //nolint:nilerr // it is gone already
	}
	c.disk.mu.Lock()
	defer c.disk.mu.Unlock()
	if ok && c.disk.pins.blobs[sum] > 0 {
		return nil
	}
	if err := os.RemoveAll(path); err != nil {
		return c.disk.failed("remove a file", err)
	}
	c.done.Files++
	c.done.Bytes += seen.Size()
	return nil
}

// chunks removes checksums of files that are gone.
func (c *collection) chunks(ctx context.Context) error {
	return c.each(ctx, chunksName, func(path string, entry fs.DirEntry) error {
		c.disk.mu.Lock()
		defer c.disk.mu.Unlock()
		if of, ok := treeOf(entry.Name()); ok {
			sum := sumOf(of)
			if _, err := os.Lstat(c.disk.blobPath(sum)); err == nil || c.disk.pins.blobs[sum] > 0 {
				return nil
			}
		}
		if err := os.RemoveAll(path); err != nil {
			return c.disk.failed("remove checksums", err)
		}
		return nil
	})
}

// remove deletes a record unless a session uses it.
func (c *collection) remove(path string, also func()) (bool, error) {
	c.disk.mu.Lock()
	defer c.disk.mu.Unlock()
	if c.disk.pins.records[path] > 0 {
		return false, nil
	}
	if err := os.RemoveAll(path); err != nil {
		return false, c.disk.failed("remove a record", err)
	}
	also()
	return true, nil
}

// spared tells whether something changed too short a while ago.
func (c *collection) spared(_ string, entry fs.DirEntry) bool {
	if c.disk.grace < 0 {
		return false
	}
	seen, err := entry.Info()
	return err == nil && seen.Mode().IsRegular() && seen.ModTime().After(c.before)
}

// each calls do for what is in a folder of the store, as long as the caller wants.
func (c *collection) each(ctx context.Context, name string, do func(path string, entry fs.DirEntry) error) error {
	dir := filepath.Join(c.disk.dir, name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return c.disk.failed("read a folder", err)
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := do(filepath.Join(dir, entry.Name()), entry); err != nil {
			return err
		}
	}
	return nil
}
