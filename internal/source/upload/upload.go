// SPDX-License-Identifier: Apache-2.0

// Package upload makes content of files that a user brought by way of the
// content API, without any registry. It is a kind of source, the first step of
// the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// Keep unpacks what arrives into the content store, under the digest of its
// files; the source then finds it there. Nobody else has it: the store spares it
// for its grace time, and from then on only while a Bundle names it.
package upload

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/unpack"
)

// formatVersion is part of the key of a layer. It changes when the same files
// would give another layer than before.
const formatVersion = "1"

// key has the namespace in it: a digest is no secret, so who knows one of
// another namespace must not get its files by it.
func key(namespace string, files digest.Digest) content.LayerKey {
	return content.LayerKey{Digest: files, Format: formatVersion + " upload in " + namespace}
}

// Archive is what a user brings.
type Archive struct {
	Namespace string
	MediaType string // of a tar archive, such as "application/x-tar" or "application/gzip"
	Body      io.Reader
	Size      int64 // of the body as announced, or less than zero
}

// mediaTypes of archives, and the types that unpack knows them by.
var mediaTypes = map[string]string{
	"application/x-tar": "application/x-tar", "application/tar": "application/x-tar",
	"application/gzip": "application/x-tar+gzip", "application/x-gzip": "application/x-tar+gzip", "application/x-tar+gzip": "application/x-tar+gzip",
	"application/zstd": "application/x-tar+zstd", "application/x-tar+zstd": "application/x-tar+zstd",
}

// Keep unpacks an archive into the store, until the session's content is
// collected, and gives the tree of its files. Errors are those of unpack, or say
// what is wrong with the archive.
func Keep(ctx context.Context, session *content.Session, budget *unpack.Budget, archive Archive) (content.Tree, error) {
	mediaType, ok := mediaTypes[archive.MediaType]
	if !ok {
		return content.Tree{}, fmt.Errorf("its Content-Type is %q; it must be application/x-tar, application/gzip or application/zstd", archive.MediaType)
	}
	packed := unpack.Packed{MediaType: mediaType, Size: archive.Size}
	format, err := unpack.FormatOf(packed)
	if err != nil {
		return content.Tree{}, err
	}
	layer, err := unpack.Layer(ctx, packed, format, budget.Arriving(archive.Body, archive.Size), session, budget)
	if err != nil {
		return content.Tree{}, err
	}
	// Laid flat, so that names in another order or written twice are the same upload.
	if layer.Entries, err = content.Overlay([]content.Layer{layer}); err != nil {
		return content.Tree{}, err
	}
	tree := content.Tree{Digest: content.DigestOf(layer.Entries), Bytes: layer.Bytes()}
	for i := range layer.Entries {
		if layer.Entries[i].Kind != content.Dir {
			tree.Files++
		}
	}
	if tree.Files == 0 {
		return content.Tree{}, errors.New("there is no file in it")
	}
	layer.Key = key(archive.Namespace, tree.Digest)
	layer.Packed = tree.Bytes
	return tree, session.PutLayer(layer)
}

// Source is an upload as a Bundle names it.
type Source struct {
	Field     string // of the spec, for errors
	Namespace string
	Digest    digest.Digest
}

var _ source.Source = Source{}

// Resolve finds the upload.
func (s Source) Resolve(_ context.Context, to source.Destination) (source.Pinned, error) {
	if _, ok := to.Session.Layer(key(s.Namespace, s.Digest)); !ok {
		return source.Pinned{}, s.absent()
	}
	return source.Pinned{Ref: "upload@" + s.Digest.String(), Digest: s.Digest}, nil
}

// Fetch gives the files as one layer.
func (s Source) Fetch(_ context.Context, pinned source.Pinned, to source.Destination) ([]content.Layer, source.Stats, error) {
	stats := source.Stats{Layers: 1}
	layer, ok := to.Session.Layer(key(s.Namespace, pinned.Digest))
	if !ok {
		return nil, stats, s.absent()
	}
	return []content.Layer{layer}, stats, source.Classify(s.Field, to.Budget.Unpacked(layer))
}

func (s Source) absent() error {
	return &source.Error{Kind: source.Waiting, Reason: source.ReasonNotFound,
		Err: fmt.Errorf("%s: the store has no upload %s in namespace %q; upload the files again, with \"rukpak upload DIR\"", s.Field, s.Digest, s.Namespace)}
}
