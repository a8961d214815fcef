// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sync/errgroup"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
)

// filesAtOnce are written to the store.
const filesAtOnce = 4

// gitlink is a place for a submodule.
type gitlink struct {
	inContent    string // path in the content
	inRepository string // path in the repository
	commit       plumbing.Hash
}

// blob is a file or link whose content is still to be read.
type blob struct {
	entry int // index in the layer
	hash  plumbing.Hash
}

// walk is the way through the folders of one commit. It opens no files, so that
// it works before these were fetched.
type walk struct {
	ctx     context.Context
	objects *objects
	to      source.Destination
	layer   *content.Layer
	mount   string // path in the content of what the walk begins at

	root    plumbing.Hash // of the repository
	start   string        // path in the repository where the walk begins
	blobs   []blob
	links   []gitlink
	modules plumbing.Hash // of .gitmodules, if there is one
}

// run goes through a folder of a commit.
func (w *walk) run(commit plumbing.Hash, subPath string) error {
	data, err := w.objects.small(commit, plumbing.CommitObject)
	if err != nil {
		return err
	}
	if w.root, err = treeOf(data); err != nil {
		return err
	}
	w.start = subPath
	at := w.root
	if err := w.findModules(); err != nil {
		return err
	}
	if subPath != "" {
		if at, err = w.descend(subPath); err != nil {
			return err
		}
	}
	return w.folder(at, w.mount, subPath)
}

func (w *walk) list(tree plumbing.Hash, dir string) ([]treeEntry, error) {
	if err := context.Cause(w.ctx); err != nil {
		return nil, err
	}
	data, err := w.objects.small(tree, plumbing.TreeObject)
	if err != nil {
		return nil, err
	}
	entries, err := parseTree(data)
	if err != nil {
		return nil, err
	}
	return entries, checkNames(dir, entries)
}

func (w *walk) findModules() error {
	data, err := w.objects.small(w.root, plumbing.TreeObject)
	if err != nil {
		return err
	}
	entries, err := parseTree(data)
	for _, e := range entries {
		if e.name == modulesFile && e.mode&modeType == modeFile {
			w.modules = e.hash
		}
	}
	return err
}

// subPathError is a folder that a commit does not have.
type subPathError struct{ subPath, problem string }

func (e *subPathError) Error() string {
	return fmt.Sprintf("subPath %q %s", e.subPath, e.problem)
}

// descend finds a folder. What stands beside it is not looked at.
func (w *walk) descend(subPath string) (plumbing.Hash, error) {
	at := w.root
	for part := range strings.SplitSeq(subPath, "/") {
		data, err := w.objects.small(at, plumbing.TreeObject)
		if err != nil {
			return at, err
		}
		entries, err := parseTree(data)
		if err != nil {
			return at, err
		}
		found := false
		for _, e := range entries {
			if e.name != part {
				continue
			}
			if e.mode&modeType != modeDir {
				return at, &subPathError{subPath, fmt.Sprintf("is none in the commit: %q is %s", part, kindOf(e.mode))}
			}
			at, found = e.hash, true
			break
		}
		if !found {
			return at, &subPathError{subPath, "is not in the commit"}
		}
	}
	return at, nil
}

func kindOf(mode uint32) string {
	switch mode & modeType {
	case modeDir:
		return "a folder"
	case modeFile:
		return "a file"
	case modeLink:
		return "a symbolic link"
	case modeSubmodule:
		return "a submodule"
	default:
		return fmt.Sprintf("of the unknown mode %o", mode)
	}
}

// folder takes what is in a folder.
func (w *walk) folder(tree plumbing.Hash, inContent, inRepository string) error {
	entries, err := w.list(tree, inContent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.entry(e, joined(inContent, e.name), joined(inRepository, e.name)); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(e treeEntry, inContent, inRepository string) error {
	if err := w.to.Budget.Entry(inContent); err != nil {
		return err
	}
	if err := content.CheckPath(inContent); err != nil {
		return &content.UnsafeError{Entry: inContent, Problem: err.Error(), Err: err}
	}
	entry := content.Entry{Path: inContent, Kind: content.Dir}
	switch e.mode & modeType {
	case modeDir:
		w.layer.Entries = append(w.layer.Entries, entry)
		return w.folder(e.hash, inContent, inRepository)
	case modeSubmodule:
		w.links = append(w.links, gitlink{inContent, inRepository, e.hash})
	case modeFile:
		entry.Kind, entry.Exec = content.File, e.mode&modeExec != 0
		w.blobs = append(w.blobs, blob{len(w.layer.Entries), e.hash})
	case modeLink:
		entry.Kind = content.Link
		w.blobs = append(w.blobs, blob{len(w.layer.Entries), e.hash})
	default:
		return &content.UnsafeError{Entry: inContent, Problem: "it is " + kindOf(e.mode)}
	}
	w.layer.Entries = append(w.layer.Entries, entry)
	return nil
}

// missing gives the blobs that are not there yet, each once.
func (w *walk) missing(submodules bool) []plumbing.Hash {
	wanted := w.blobs
	if submodules && len(w.links) > 0 && w.modules != plumbing.ZeroHash {
		wanted = append(wanted[:len(wanted):len(wanted)], blob{hash: w.modules})
	}
	var found []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	for _, b := range wanted {
		if _, ok := w.objects.places[b.hash]; !ok && !seen[b.hash] {
			seen[b.hash] = true
			found = append(found, b.hash)
		}
	}
	return found
}

// contents reads files and links.
func (w *walk) contents(keepPointers bool) error {
	r := &reader{walk: w, keepPointers: keepPointers, sums: map[plumbing.Hash]content.Sum{}}
	group, ctx := errgroup.WithContext(w.ctx)
	group.SetLimit(filesAtOnce)
	for _, b := range w.blobs {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return r.blob(&w.layer.Entries[b.entry], b.hash) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(w.ctx)
}

// reader puts the content of blobs into entries, from several goroutines.
type reader struct {
	*walk
	keepPointers bool

	mu   sync.Mutex
	sums map[plumbing.Hash]content.Sum // of what is in the store already
}

func (r *reader) blob(entry *content.Entry, hash plumbing.Hash) error {
	opened, err := r.objects.open(hash)
	if err != nil {
		return err
	}
	defer opened.Close() //nolint:errcheck // all that matters was read
	if opened.kind != plumbing.BlobObject {
		return &packError{&wrongKindError{hash, plumbing.BlobObject, opened.kind}}
	}
	if entry.Kind == content.Link {
		return r.link(entry, opened)
	}
	entry.Size = opened.size
	if err := r.to.Budget.File(entry.Path, entry.Size); err != nil {
		return err
	}
	r.mu.Lock()
	sum, known := r.sums[hash]
	r.mu.Unlock()
	if known {
		entry.Sum = sum
		return nil
	}
	if entry.Sum, err = r.file(entry, opened); err != nil {
		return err
	}
	r.mu.Lock()
	r.sums[hash] = entry.Sum
	r.mu.Unlock()
	return nil
}

func (r *reader) file(entry *content.Entry, opened *object) (content.Sum, error) {
	if opened.size > maxPointer {
		return r.to.Session.AddFile(opened, opened.size)
	}
	data := make([]byte, opened.size)
	if _, err := io.ReadFull(opened, data); err != nil {
		return content.Sum{}, &packError{err}
	}
	if isPointer(data) && !r.keepPointers {
		return content.Sum{}, &pointerError{entry.Path}
	}
	return r.to.Session.AddFile(bytes.NewReader(data), opened.size)
}

// link takes what a link says. Where it would lead out of what was chosen, it
// would lead nowhere, or to a file that is somebody else's.
func (r *reader) link(entry *content.Entry, opened *object) error {
	if err := r.to.Budget.Target(entry.Path, opened.size); err != nil {
		return err
	}
	data := make([]byte, min(opened.size, maxSmall))
	if _, err := io.ReadFull(opened, data); err != nil {
		return &packError{err}
	}
	entry.Target = string(data)
	err := content.CheckLink(entry.Path, entry.Target, false)
	if err == nil {
		return nil
	}
	problem := err.Error()
	if r.start != "" && !path.IsAbs(entry.Target) && content.CheckLink(joined(r.start, entry.Path), entry.Target, false) == nil {
		problem += fmt.Sprintf(" of subPath %q; choose one that holds both", r.start)
	}
	return &content.UnsafeError{Entry: entry.Path, Problem: problem, Err: errors.Unwrap(err)}
}
