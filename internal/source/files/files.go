// SPDX-License-Identifier: Apache-2.0

// Package files makes content of files that stand in objects of the API: in a
// Bundle itself, in a ConfigMap, in a Secret. It is a kind of source, the first
// step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// Such objects are small and change, so what is pinned is a digest over names
// and bytes, and a fetch refuses an object that has another one by then.
package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
)

// formatVersion is part of the key of a layer. It changes when the same files
// would give another layer than before.
const formatVersion = "1"

// Source is files in memory.
type Source struct {
	// Name says where they stand, for people: "ConfigMap team-a/values".
	Name string
	// Ref is the same for a reference: "configmap/team-a/values".
	Ref string
	// Files by path.
	Files map[string][]byte
}

var _ source.Source = Source{}

// Resolve pins the files as they are now.
func (s Source) Resolve(context.Context, source.Destination) (source.Pinned, error) {
	if len(s.Files) == 0 {
		return source.Pinned{}, s.failed(source.Waiting, source.ReasonEmptyContent, errors.New("it holds no file"))
	}
	for _, name := range s.names() {
		if err := content.CheckPath(name); err != nil {
			return source.Pinned{}, s.failed(source.Terminal, source.ReasonUnsafeContent, fmt.Errorf("file %q: %w", name, err))
		}
	}
	if err := s.nested(); err != nil {
		return source.Pinned{}, err
	}
	sum := s.digest()
	return source.Pinned{Ref: s.Ref + "@" + sum.String(), Digest: sum}, nil
}

// nested refuses a file below another file.
func (s Source) nested() error {
	for _, name := range s.names() {
		for i, c := range name {
			if _, ok := s.Files[name[:i]]; c == '/' && ok {
				return s.failed(source.Terminal, source.ReasonUnsafeContent, fmt.Errorf("%q is both a file and the folder of %q", name[:i], name))
			}
		}
	}
	return nil
}

// Fetch gives the files as one layer.
func (s Source) Fetch(_ context.Context, pinned source.Pinned, to source.Destination) ([]content.Layer, source.Stats, error) {
	stats := source.Stats{Layers: 1}
	key := content.LayerKey{Digest: pinned.Digest, Format: formatVersion + " files"}
	if layer, ok := to.Session.Layer(key); ok {
		return []content.Layer{layer}, stats, s.classify(to.Budget.Unpacked(layer))
	}
	if got := s.digest(); got != pinned.Digest {
		return nil, stats, s.failed(source.Waiting, source.ReasonContentMismatch,
			fmt.Errorf("it was pinned as %s and is %s now; make a new Bundle to use it", pinned.Digest, got))
	}
	layer := content.Layer{Key: key}
	for _, name := range s.names() {
		data := s.Files[name]
		sum, err := to.Session.AddFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return nil, stats, s.classify(err)
		}
		layer.Entries = append(layer.Entries, content.Entry{Path: name, Kind: content.File, Size: int64(len(data)), Sum: sum})
		layer.Packed += int64(len(data))
	}
	stats.Fetched, stats.Bytes = 1, layer.Packed
	if err := to.Budget.Unpacked(layer); err != nil {
		return nil, stats, s.classify(err)
	}
	return []content.Layer{layer}, stats, s.classify(to.Session.PutLayer(layer))
}

func (s Source) names() []string { return slices.Sorted(maps.Keys(s.Files)) }

// digest covers names and bytes, each with its length, so that no two sets of
// files have the same.
func (s Source) digest() digest.Digest {
	var all strings.Builder
	for _, name := range s.names() {
		fmt.Fprintf(&all, "%d %s %x\n", len(name), name, sha256.Sum256(s.Files[name]))
	}
	return digest.FromString(all.String())
}

func (s Source) failed(kind source.Kind, reason string, err error) error {
	return &source.Error{Kind: kind, Reason: reason, Err: fmt.Errorf("%s: %w", s.Name, err)}
}

func (s Source) classify(err error) error { return source.Classify(s.Name, err) }
