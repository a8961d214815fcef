// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
)

// Shared is a store that several managers share. What follows here is for its
// sake: it carries layers and trees between disks, and package depot is one.
type Shared interface {
	// Layer brings a layer to the disk by way of a session, which it is recorded
	// in under just this key. It gives false if it has none, or cannot give it:
	// then the layer is fetched from its source.
	Layer(ctx context.Context, key LayerKey, into *Session) (Layer, bool)
}

type sharing struct {
	ctx  context.Context //nolint:containedctx // a session has none, and its users do not know of a network behind it
	with Shared
}

// Share makes sessions look for layers that the disk lacks in a shared store,
// until ctx ends. It is called before the first session begins.
func (d *Disk) Share(ctx context.Context, with Shared) { d.shared = &sharing{ctx, with} }

func (d *Disk) bring(key LayerKey, s *Session) (Layer, bool) {
	if d.shared == nil {
		return Layer{}, false
	}
	return d.shared.with.Layer(d.shared.ctx, key, &Session{session: s.session})
}

// EncodeLayer writes the record of a layer as DecodeLayer reads it. Its last
// line is a digest of all others.
func EncodeLayer(w io.Writer, layer Layer) error { return writeLayer(w, layer) }

// DecodeLayer reads what EncodeLayer wrote. Any other bytes, and the record of
// another layer, are an error.
func DecodeLayer(r io.Reader, want LayerKey) (Layer, error) { return readLayer(r, want) }

// EncodeTree writes the listing of a tree. The entries are sorted and complete.
func EncodeTree(w io.Writer, entries []Entry) error {
	_, err := writeTree(w, entries)
	return err
}

// DecodeTree reads the listing of a tree, whose digest must be want.
func DecodeTree(r io.Reader, want digest.Digest) ([]Entry, error) {
	var entries []Entry
	b := newBuilder()
	err := readTree(bufio.NewReader(r), want, func(e Entry) error {
		entries = append(entries, e)
		return b.add(e)
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// Lacks tells whether a file is to be brought, and keeps it from Collect in any case.
func (s *Session) Lacks(sum Sum, size int64) bool {
	s.pinBlob(sum)
	return !s.disk.hasBlob(sum, size)
}

// PutListing stores a tree by its entries, which are sorted and complete, and
// whose files were all added in this session. An error that is no *StoreError is
// a *CorruptError: a file is not there.
func (s *Session) PutListing(entries []Entry) (Tree, error) {
	tree, err := s.putEntries(entries)
	if err != nil {
		return Tree{}, err
	}
	return s.disk.Stat(tree.Digest)
}

// OpenFile opens a file by its digest. The read that gives its last bytes gives a
// *CorruptError instead if any byte is wrong. To know a digest is no right to the
// file, so this is for the store's own ends.
func (d *Disk) OpenFile(sum Sum, size int64) (io.ReadCloser, error) {
	file, err := d.openBlob(sum, size)
	if err != nil {
		return nil, err
	}
	if size == 0 {
		return file, nil
	}
	return newStreamFile(file, d, info{node: &node{entry: Entry{Kind: File, Size: size, Sum: sum}}, as: sum.String()}), nil
}

// LayersOf gives the layers, the lowest first, of which a tree was made on this
// disk, or none if that is not known.
func (d *Disk) LayersOf(tree digest.Digest) []LayerKey { return d.recipes.of(d, tree) }

// recipes remembers which layers gave which tree.
type recipes struct {
	once sync.Once
	mu   sync.Mutex
	keys map[digest.Digest][]LayerKey
}

func (r *recipes) note(tree digest.Digest, keys []LayerKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = map[digest.Digest][]LayerKey{}
	}
	r.keys[tree] = slices.Clone(keys)
}

func (r *recipes) forget(tree digest.Digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.keys, tree)
}

// of reads, the first time, what earlier processes wrote.
func (r *recipes) of(d *Disk, tree digest.Digest) []LayerKey {
	r.once.Do(func() {
		dir := filepath.Join(d.dir, recipesName)
		entries, _ := os.ReadDir(dir) // without it trees are shared without their layers
		for _, entry := range entries {
			found, keys, err := recipeAt(filepath.Join(dir, entry.Name()))
			if err == nil && !r.has(found) {
				r.note(found, keys)
			}
		}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys[tree]
}

func (r *recipes) has(tree digest.Digest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.keys[tree]
	return ok
}

func recipeAt(path string) (digest.Digest, []LayerKey, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	return readRecipe(file)
}

// Gone tells whether an error says that something is not stored.
func Gone(err error) bool {
	_, corrupt := errors.AsType[*CorruptError](err)
	return corrupt || errors.Is(err, fs.ErrNotExist)
}
