// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opencontainers/go-digest"
)

// Session writes to a store. What it writes or finds is safe from Collect until
// Close. Its methods may be called from several goroutines. Errors are
// *StoreError, *UnsafeError, or those of the reader that was given.
type Session struct {
	*session
	scope string // of the layers that it finds and records
}

// session is what the views of one Session share.
type session struct {
	disk   *Disk
	dir    string
	temp   atomic.Int64
	pinned pinned   // guarded by disk.mu
	came   sync.Map // Sum of each file that AddStream stored

	closing sync.Once
	damages int // of the disk when the session began
}

// Begin opens a session.
func (d *Disk) Begin() (*Session, error) {
	d.mu.Lock()
	d.works++
	s := &Session{session: &session{disk: d, dir: filepath.Join(d.dir, workName, strconv.Itoa(d.works)), damages: d.damages}}
	d.mu.Unlock()
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, d.failed("make a folder", err)
	}
	return s, nil
}

// In gives the same session with layers of its own: it finds only those that
// were recorded in the same scope. Who has to show credentials for content, and
// shows them only while the store lacks it, needs a scope for each tenant: else
// to know a digest would be enough to read what another was given. Files are
// stored once all the same. A scope within a scope is one of its own.
func (s *Session) In(scope string) *Session {
	if s.scope != "" {
		scope += " of " + s.scope
	}
	return &Session{session: s.session, scope: scope}
}

// Key gives the key under which this session finds and records a layer.
func (s *Session) Key(key LayerKey) LayerKey {
	if suffix := " of " + s.scope; s.scope != "" && !strings.HasSuffix(key.Format, suffix) {
		key.Format += suffix
	}
	return key
}

// Close ends the session and removes what it left half-done.
func (s *Session) Close() {
	s.closing.Do(func() {
		_ = os.RemoveAll(s.dir) // else it is removed when the store is opened next
		s.disk.mu.Lock()
		defer s.disk.mu.Unlock()
		s.disk.pins.release(&s.pinned)
	})
}

// Exclusive waits until no other session works on a layer, so that of several
// that want the same one only the first fetches it. Whoever gets it calls Layer
// once more, works only if that says no, and then calls release.
func (s *Session) Exclusive(ctx context.Context, key LayerKey) (release func(), err error) {
	d := s.disk
	key = s.Key(key)
	for {
		d.mu.Lock()
		busy, ok := d.working[key]
		if !ok {
			done := make(chan struct{})
			d.working[key] = done
			d.mu.Unlock()
			return func() {
				d.mu.Lock()
				defer d.mu.Unlock()
				delete(d.working, key)
				close(done)
			}, nil
		}
		d.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Layer gives the record of a layer, if the store has it and all its files, or
// if a shared store gives them.
func (s *Session) Layer(key LayerKey) (Layer, bool) {
	if layer, ok := s.Stored(key); ok {
		return layer, true
	}
	return s.disk.bring(s.Key(key), s)
}

// Stored is Layer without a shared store.
func (s *Session) Stored(key LayerKey) (Layer, bool) {
	key = s.Key(key)
	path := s.disk.layerPath(key)
	s.pinRecord(path)
	file, err := os.Open(path)
	if err != nil {
		return Layer{}, false
	}
	defer file.Close() //nolint:errcheck // nothing was written
	layer, err := readLayer(file, key)
	if err != nil {
		_ = s.disk.discard(path, "", err)
		return Layer{}, false
	}
	s.pinBlobs(layer.Entries)
	for i := range layer.Entries {
		if e := &layer.Entries[i]; e.Kind == File && !s.disk.hasBlob(e.Sum, e.Size) {
			return Layer{}, false
		}
	}
	return layer, true
}

// PutLayer records a layer, all of whose files were added in this session.
func (s *Session) PutLayer(layer Layer) error {
	layer.Key = s.Key(layer.Key)
	path := s.disk.layerPath(layer.Key)
	s.pinRecord(path)
	return s.write(path, "write the record of a layer", func(w io.Writer) error { return writeLayer(w, layer) })
}

// Tree gives the tree that these layers, the lowest first, are known to give,
// if the store has all of it.
func (s *Session) Tree(keys []LayerKey) (Tree, bool) {
	path := s.disk.recipePath("", keys)
	s.pinRecord(path)
	tree, ok := s.disk.recipeTree(path)
	if !ok {
		return Tree{}, false
	}
	s.pinRecord(s.disk.treePath(tree))
	b, err := s.disk.readTree(tree)
	if err != nil {
		return Tree{}, false
	}
	s.pinNodes(b.root)
	found, err := s.disk.Stat(tree)
	if err != nil {
		return Tree{}, false
	}
	s.disk.touch(tree)
	return found, true
}

func (s *Session) pinNodes(n *node) {
	if n.entry.Kind == File {
		s.pinBlob(n.entry.Sum)
	}
	for _, child := range n.children {
		s.pinNodes(child)
	}
}

// PutTree lays layers over one another, the lowest first, and stores what one
// sees. All layers come from this session's Layer or PutLayer.
func (s *Session) PutTree(layers []Layer) (Tree, error) {
	entries, err := Overlay(layers)
	if err != nil {
		return Tree{}, err
	}
	keys := make([]LayerKey, len(layers))
	for i := range layers {
		keys[i] = layers[i].Key
	}
	tree, err := s.putEntries(entries)
	if err == nil {
		err = s.putRecipe("", keys, tree.Digest)
	}
	if err != nil {
		return Tree{}, err
	}
	return tree, s.stillWhole(tree)
}

// putEntries stores a listing.
func (s *Session) putEntries(entries []Entry) (Tree, error) {
	tree := Tree{Digest: DigestOf(entries)}
	path := s.disk.treePath(tree.Digest)
	s.pinRecord(path)
	err := s.write(path, "write a listing", func(w io.Writer) error {
		_, err := writeTree(w, entries)
		return err
	})
	if err != nil {
		return Tree{}, err
	}
	for i := range entries {
		if entries[i].Kind != Dir {
			tree.Files++
			tree.Bytes += entries[i].Size
		}
	}
	return tree, nil
}

// putRecipe records which layers gave a tree, and how: "" means one over the
// other.
func (s *Session) putRecipe(how string, keys []LayerKey, tree digest.Digest) error {
	path := s.disk.recipePath(how, keys)
	s.pinRecord(path)
	err := s.write(path, "write the record of a tree", func(w io.Writer) error { return writeRecipe(w, tree, keys) })
	if err == nil {
		s.disk.recipes.note(tree, keys)
	}
	return err
}

// stillWhole remembers that all files of a tree are there, unless a reader has
// found something damaged meanwhile: then it looks.
func (s *Session) stillWhole(tree Tree) error {
	s.disk.mu.Lock()
	if s.damages == s.disk.damages {
		s.disk.whole[tree.Digest] = tree
	}
	s.disk.mu.Unlock()
	_, err := s.disk.Stat(tree.Digest)
	return err
}

// write makes a file appear under its name at once, or not at all.
func (s *Session) write(path, op string, fill func(io.Writer) error) error {
	temp := s.tempPath()
	file, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o400)
	if err != nil {
		return s.disk.failed(op, err)
	}
	buffered := bufio.NewWriterSize(file, 32<<10)
	if err := errors.Join(fill(buffered), buffered.Flush(), file.Close()); err != nil {
		return s.disk.failed(op, errors.Join(err, os.Remove(temp)))
	}
	if err := replace(temp, path); err != nil {
		return s.disk.failed(op, errors.Join(err, os.Remove(temp)))
	}
	return nil
}

func (s *Session) tempPath() string {
	return filepath.Join(s.dir, strconv.FormatInt(s.temp.Add(1), 10))
}

// replace renames a file over whatever has its name, be it a folder.
func replace(temp, path string) error {
	err := os.Rename(temp, path)
	if err == nil {
		return nil
	}
	if seen, statErr := os.Lstat(path); statErr != nil || !seen.IsDir() {
		return err
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

func (d *Disk) layerPath(key LayerKey) string {
	return filepath.Join(d.dir, layersName, fmt.Sprintf("%x", sha256.Sum256([]byte(key.String()))))
}

func (d *Disk) recipePath(how string, keys []LayerKey) string {
	return filepath.Join(d.dir, recipesName, fmt.Sprintf("%x", sha256.Sum256([]byte(how+joinKeys(keys)))))
}

// recipeTree gives the tree that a recipe gives. A damaged recipe is removed.
func (d *Disk) recipeTree(path string) (digest.Digest, bool) {
	file, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer file.Close() //nolint:errcheck // nothing was written
	tree, _, err := readRecipe(file)
	if err != nil {
		_ = d.discard(path, "", err)
		return "", false
	}
	return tree, true
}

// touch begins the time anew for which Collect spares a tree.
func (d *Disk) touch(tree digest.Digest) {
	now := time.Now()
	_ = os.Chtimes(d.treePath(tree), now, now) // if it fails the tree may be fetched once more
}
