// SPDX-License-Identifier: Apache-2.0

package depot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/content/objects"
)

// Restore brings a tree from the depot to the disk. It gives false if the depot
// lacks it or has it damaged: then its source is to be asked, and Keep makes it
// good. An error means that the depot or the disk cannot be used now.
func (d *Depot) Restore(ctx context.Context, tree digest.Digest) (bool, error) {
	if d.disk.Has(tree) {
		return true, nil
	}
	if err := d.enter(ctx, false); err != nil {
		return false, err
	}
	session, err := d.disk.Begin()
	if err != nil {
		return false, err
	}
	defer session.Close()
	var entries []content.Entry
	h, err := d.record(ctx, treeName(tree), treeHeader, func(r io.Reader) (err error) {
		entries, err = content.DecodeTree(r, tree)
		return err
	})
	if err == nil {
		err = d.bring(ctx, session, h, entries)
	}
	if err == nil {
		_, err = session.PutListing(entries)
	}
	return d.outcome(treeName(tree), err)
}

// outcome tells absence and damage, which a source can heal, from trouble.
func (d *Depot) outcome(name string, err error) (bool, error) {
	switch {
	case err == nil:
		return true, nil
	case content.Gone(err), objects.Is(err, objects.Damaged):
		if !errors.Is(err, fs.ErrNotExist) {
			d.options.Log.Info("the shared store cannot give what it has", "object", name, "reason", err.Error())
		}
		return false, nil
	}
	return false, err
}

// Layer brings a layer from the depot to the disk; see content.Shared.
func (d *Depot) Layer(ctx context.Context, key content.LayerKey, into *content.Session) (content.Layer, bool) {
	layer, err := d.layer(ctx, key, into)
	ok, err := d.outcome(layerName(key), err)
	if err != nil && ctx.Err() == nil {
		d.options.Log.Info("the shared store cannot be asked; the source is instead", "layer", key.String(), "reason", err.Error())
	}
	return layer, ok
}

func (d *Depot) layer(ctx context.Context, key content.LayerKey, into *content.Session) (content.Layer, error) {
	if err := d.enter(ctx, false); err != nil {
		return content.Layer{}, err
	}
	var layer content.Layer
	h, err := d.record(ctx, layerName(key), layerHeader, func(r io.Reader) (err error) {
		layer, err = content.DecodeLayer(r, key)
		return err
	})
	if err == nil {
		err = d.bring(ctx, into, h, layer.Entries)
	}
	if err == nil {
		err = into.PutLayer(layer)
	}
	return layer, err
}

// record reads a record: its head, and by decode what follows.
func (d *Depot) record(ctx context.Context, name, header string, decode func(io.Reader) error) (h head, err error) {
	err = d.sure(ctx, name, func(r io.Reader) (err error) {
		buffered := bufio.NewReaderSize(r, 64<<10)
		if h, err = readHead(buffered, header); err != nil {
			return err
		}
		return decode(buffered)
	})
	if err == nil {
		d.noteHead(name, h)
	}
	return h, err
}

// headOf reads no more of a record than its head, and that only once.
func (d *Depot) headOf(ctx context.Context, name, header string) (head, error) {
	d.mu.Lock()
	h, ok := d.heads[name]
	d.mu.Unlock()
	if ok {
		return h, nil
	}
	return d.record(ctx, name, header, func(io.Reader) error { return nil })
}

// wanted are files that are on their way.
type wanted struct {
	mu    sync.Mutex
	files map[content.Sum]int64
}

func (w *wanted) size(sum content.Sum) (int64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	size, ok := w.files[sum]
	return size, ok
}

func (w *wanted) came(sum content.Sum) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.files, sum)
}

func (w *wanted) left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.files)
}

// bring fetches the files of entries that the disk lacks.
func (d *Depot) bring(ctx context.Context, session *content.Session, h head, entries []content.Entry) error {
	lacking := &wanted{files: filesOf(entries)}
	for sum, size := range filesOf(entries) {
		if !session.Lacks(sum, size) {
			delete(lacking.files, sum)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, name := range h.packs {
		group.Go(func() error {
			if lacking.left() == 0 {
				return nil
			}
			err := d.sure(ctx, name, func(r io.Reader) error { return unpackInto(ctx, session, name, r, lacking) })
			if errors.Is(err, fs.ErrNotExist) {
				return nil // others may have its files
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if left := lacking.left(); left > 0 {
		return &objects.Error{Place: d.place.String(), Op: "give a tree", Kind: objects.Damaged, Err: fmt.Errorf("%d of its files are not there", left)}
	}
	return nil
}

// unpackInto stores the files of a pack that are wanted. Reading ends with the
// last one.
func unpackInto(ctx context.Context, session *content.Session, name string, r io.Reader, lacking *wanted) error {
	buffered := bufio.NewReaderSize(r, 64<<10)
	files, err := readIndex(buffered, name)
	if err != nil {
		return err
	}
	last := -1
	for i, f := range files {
		if size, ok := lacking.size(f.sum); ok && size == f.size {
			last = i
		}
	}
	for _, f := range files[:last+1] {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := unpackFile(session, buffered, f, lacking); err != nil {
			return err
		}
	}
	return nil
}

func unpackFile(session *content.Session, r io.Reader, f file, lacking *wanted) error {
	if size, ok := lacking.size(f.sum); !ok || size != f.size {
		n, err := io.CopyN(io.Discard, r, f.size)
		if errors.Is(err, io.EOF) && n < f.size {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	sum, err := session.AddFile(io.LimitReader(r, f.size), f.size)
	if err != nil {
		return err
	}
	if sum != f.sum {
		return fmt.Errorf("the file %s in it has the digest %s", f.sum, sum)
	}
	lacking.came(sum)
	return nil
}
