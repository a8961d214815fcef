// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content/folder"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/source"
)

// ArtifactType is that of the artifacts that Push makes. Fetch does not ask for it.
const ArtifactType = "application/vnd.rukpak.bundle.v1"

// Pushed says what Push pushed.
type Pushed struct {
	Ref    string        // by digest
	Digest digest.Digest // of the manifest
	Files  int           // files and links
	Bytes  int64         // of the files
}

// Push packs a folder as an artifact of one layer and pushes it to src.Ref, a
// tag ("latest" if it has none). The same files give the same digest: owners
// and times are left out. Links inside the folder stay links; those that lead
// out, devices and the like, and a folder without any file, are refused.
//
// Errors of the folder are a *source.Error too, with ReasonUnsafeContent or
// ReasonEmptyContent.
func (f *Fetcher) Push(ctx context.Context, src Source, files fs.FS) (Pushed, error) {
	ref, err := parse(src.Ref)
	if err != nil {
		return Pushed{}, err
	}
	tag, ok := ref.(name.Tag)
	if !ok {
		return Pushed{}, failed(source.Terminal, source.ReasonInvalidReference, ref, errors.New("one can push to a tag, not to a digest"))
	}
	packed, err := pack(ctx, tag, files)
	if err != nil {
		return Pushed{}, err
	}
	defer os.Remove(packed.path) //nolint:errcheck // a left-over in the folder for temporary files does no harm
	if err := f.upload(ctx, src, tag, packed); err != nil {
		return Pushed{}, f.classify(ctx, src, ref, err)
	}
	return Pushed{
		Ref:    rules.Normal(tag.Context().Digest(packed.digest().String()).Name()),
		Digest: packed.digest(),
		Files:  packed.files,
		Bytes:  packed.bytes,
	}, nil
}

// pack lists a folder and packs it.
func pack(ctx context.Context, ref name.Reference, files fs.FS) (*packedFolder, error) {
	entries, err := folder.List(ctx, files)
	if err != nil {
		return nil, failed(source.Terminal, source.ReasonUnsafeContent, ref, fmt.Errorf("the folder cannot be pushed: %w", err))
	}
	packed, err := packFolder(files, entries)
	if err != nil {
		return nil, failed(source.Terminal, source.ReasonUnsafeContent, ref, fmt.Errorf("the folder cannot be pushed: %w", err))
	}
	if packed.files == 0 {
		return nil, errors.Join(failed(source.Terminal, source.ReasonEmptyContent, ref, errors.New("the folder holds no file")), os.Remove(packed.path))
	}
	return packed, nil
}

// upload tries the credentials in turn.
func (f *Fetcher) upload(ctx context.Context, src Source, tag name.Tag, packed *packedFolder) error {
	h := f.direct(src, tag)
	var first error
	for _, auth := range append(slices.Clone(h.credentials), authn.Anonymous) {
		err := f.uploadAs(ctx, h, tag, packed, auth)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil || !refused(err) {
			break
		}
	}
	if denied(first) {
		return &accessError{tried: len(h.credentials), err: first}
	}
	return first
}

func (f *Fetcher) uploadAs(ctx context.Context, h *hop, tag name.Tag, packed *packedFolder, auth authn.Authenticator) error {
	pusher, err := remote.NewPusher(f.remoteOptions(h, auth)...)
	if err != nil {
		return err
	}
	if err := pusher.Upload(ctx, tag.Context(), packed); err != nil {
		return err
	}
	if err := pusher.Upload(ctx, tag.Context(), static.NewLayer(emptyConfig, types.MediaType(emptyConfigType))); err != nil {
		return err
	}
	return pusher.Push(ctx, tag, artifact{packed})
}
