// SPDX-License-Identifier: Apache-2.0

// Package bundle takes the content of another Bundle, or a folder of it, as a
// source. It is a kind of source, the first step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// Nothing is fetched: the files are in the content store already. What is pinned
// is the digest of the other Bundle's content.
package bundle

import (
	"context"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
)

// formatVersion is part of the key of a layer. It changes when the same files
// would give another layer than before.
const formatVersion = "1"

// Source is a Bundle as another one names it.
type Source struct {
	Field     string // of the spec, for errors
	Namespace string
	Name      string
	SubPath   string // "" for all
	// Content gives the digest of what the Bundle holds now. Errors are *source.Error.
	Content func(ctx context.Context) (digest.Digest, error)
	// Lost is told that the store lacks the content, so that it is fetched again.
	Lost func()
}

var _ source.Source = Source{}

// Resolve pins what the Bundle holds.
func (s Source) Resolve(ctx context.Context, _ source.Destination) (source.Pinned, error) {
	tree, err := s.Content(ctx)
	if err != nil {
		return source.Pinned{}, err
	}
	ref := "bundle/" + s.Namespace + "/" + s.Name
	if s.SubPath != "" {
		ref += "/" + s.SubPath
	}
	return source.Pinned{Ref: ref + "@" + tree.String(), Digest: tree}, nil
}

// Fetch gives the files as one layer. A digest alone opens nothing: either this
// source took it before, or the Bundle has it now.
func (s Source) Fetch(ctx context.Context, pinned source.Pinned, to source.Destination) ([]content.Layer, source.Stats, error) {
	stats := source.Stats{Layers: 1}
	key := content.LayerKey{Digest: pinned.Digest, Format: fmt.Sprintf("%s bundle %s/%s %q", formatVersion, s.Namespace, s.Name, s.SubPath)}
	layer, ok := to.Session.Layer(key)
	if !ok {
		taken, err := s.take(ctx, pinned.Digest, to.Session)
		if err != nil {
			return nil, stats, err
		}
		layer = content.Layer{Key: key, Entries: taken}
		if err := to.Session.PutLayer(layer); err != nil {
			return nil, stats, s.classify(err)
		}
	}
	return []content.Layer{layer}, stats, s.classify(to.Budget.Unpacked(layer))
}

func (s Source) take(ctx context.Context, pinned digest.Digest, session *content.Session) ([]content.Entry, error) {
	now, err := s.Content(ctx)
	if err != nil {
		return nil, err
	}
	if now != pinned {
		return nil, s.failed(source.Waiting, source.ReasonContentMismatch,
			fmt.Errorf("it was pinned as %s and holds %s now; make a new Bundle to use that", pinned, now))
	}
	entries, ok := session.TreeEntries(pinned)
	if !ok {
		s.Lost()
		return nil, s.failed(source.Transient, source.ReasonStoreFailed, fmt.Errorf("its content %s is not in the content store, and is fetched again first", pinned))
	}
	return s.below(entries)
}

// below picks what stands in the sub path.
func (s Source) below(entries []content.Entry) ([]content.Entry, error) {
	if s.SubPath == "" {
		return entries, nil
	}
	var picked []content.Entry
	found := false
	for _, e := range entries {
		if e.Path == s.SubPath {
			found = e.Kind == content.Dir
		}
		rest, ok := strings.CutPrefix(e.Path, s.SubPath+"/")
		if !ok {
			continue
		}
		e.Path = rest
		if e.Kind == content.Link && !inside(rest, e.Target) {
			return nil, s.failed(source.Terminal, source.ReasonUnsafeContent, fmt.Errorf("the link %q leads out of the folder %q, to %q", rest, s.SubPath, e.Target))
		}
		picked = append(picked, e)
	}
	if !found {
		return nil, s.failed(source.Terminal, source.ReasonNotFound, fmt.Errorf("it has no folder %q", s.SubPath))
	}
	return picked, nil
}

func inside(name, target string) bool { return content.CheckLink(name, target, false) == nil }

func (s Source) failed(kind source.Kind, reason string, err error) error {
	return &source.Error{Kind: kind, Reason: reason, Err: fmt.Errorf("%s: Bundle %s/%s: %w", s.Field, s.Namespace, s.Name, err)}
}

func (s Source) classify(err error) error {
	return source.Classify(fmt.Sprintf("%s: Bundle %s/%s", s.Field, s.Namespace, s.Name), err)
}
