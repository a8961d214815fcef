// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"
	imagespec "github.com/opencontainers/image-spec/specs-go"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/unpack"
)

// What Push makes: an artifact of one layer.
const (
	ArtifactType     = "application/vnd.rukpak.bundle.v1"
	MediaTypeContent = "application/vnd.rukpak.content.v1.tar+gzip"
)

// Pushed is what a push came to.
type Pushed struct {
	source.Pinned
	Files int   // files and links
	Bytes int64 // of all files, unpacked
}

// Push packs a tree of files, which needs fs.ReadLinkFS if it has links, and
// pushes it under src.Ref. The same files give the same digest, whoever owns
// them and whenever they were written. Errors are *source.Error, but for those
// of reading the files.
func (f *Fetcher) Push(ctx context.Context, src Source, files fs.FS) (pushed Pushed, err error) {
	ref, err := parse(src.Ref)
	if err != nil {
		return Pushed{}, err
	}
	packed, err := os.CreateTemp("", "rukpak-push-")
	if err != nil {
		return Pushed{}, err
	}
	defer func() { err = errors.Join(err, packed.Close(), os.Remove(packed.Name())) }()
	if pushed.Files, pushed.Bytes, err = pack(packed, files); err != nil {
		return Pushed{}, err
	}
	layer, err := tarball.LayerFromFile(packed.Name(), tarball.WithMediaType(MediaTypeContent))
	if err != nil {
		return Pushed{}, err
	}
	manifest, err := artifactOf(layer)
	if err != nil {
		return Pushed{}, err
	}
	sum := digest.FromBytes(manifest)
	if given, byDigest := ref.(name.Digest); byDigest && given.DigestStr() != sum.String() {
		return Pushed{}, failed(source.Terminal, source.ReasonContentMismatch, ref, fmt.Errorf("the files have the digest %s", sum))
	}
	if err := f.write(ctx, src, ref, layer, manifest); err != nil {
		return Pushed{}, f.classify(ctx, src, ref, err)
	}
	pushed.Pinned = source.Pinned{Ref: ref.Context().Name() + "@" + sum.String(), Digest: sum}
	return pushed, nil
}

// write uploads with each set of credentials in turn, until the registry takes it.
func (f *Fetcher) write(ctx context.Context, src Source, ref name.Reference, layer v1.Layer, manifest []byte) error {
	candidates := f.candidates(src, ref.Context())
	var first error
	for _, auth := range append(candidates, authn.Anonymous) {
		err := f.writeAs(ctx, src, ref, auth, layer, manifest)
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
		return &accessError{tried: len(candidates), err: first}
	}
	return first
}

func (f *Fetcher) writeAs(ctx context.Context, src Source, ref name.Reference, auth authn.Authenticator, layer v1.Layer, manifest []byte) error {
	options := append(f.remoteOptions(src, ref.Context(), auth), remote.WithContext(ctx))
	config := static.NewLayer(specs.DescriptorEmptyJSON.Data, unpack.MediaTypeEmpty)
	for _, blob := range []v1.Layer{config, layer} {
		if err := remote.WriteLayer(ref.Context(), blob, options...); err != nil {
			return err
		}
	}
	return remote.Put(ref, rawManifest(manifest), options...)
}

// rawManifest is a manifest as it is pushed.
type rawManifest []byte

// RawManifest gives its bytes.
func (m rawManifest) RawManifest() ([]byte, error) { return m, nil }

// MediaType gives its type.
func (m rawManifest) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

func artifactOf(layer v1.Layer) ([]byte, error) {
	sum, err := layer.Digest()
	if err != nil {
		return nil, err
	}
	size, err := layer.Size()
	if err != nil {
		return nil, err
	}
	return json.Marshal(specs.Manifest{
		Versioned:    imagespec.Versioned{SchemaVersion: 2},
		MediaType:    specs.MediaTypeImageManifest,
		ArtifactType: ArtifactType,
		Config:       specs.DescriptorEmptyJSON,
		Layers:       []specs.Descriptor{{MediaType: MediaTypeContent, Digest: digest.Digest(sum.String()), Size: size}},
	})
}
