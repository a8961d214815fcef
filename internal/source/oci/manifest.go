// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/unpack"
)

// Media types of manifests and indexes.
const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// maxIndexes is how deep indexes may hold indexes.
const maxIndexes = 3

// document is a manifest or an index.
type document struct {
	MediaType string             `json:"mediaType"`
	Config    *specs.Descriptor  `json:"config"`
	Layers    []specs.Descriptor `json:"layers"`
	Manifests []specs.Descriptor `json:"manifests"`

	cnab bool // it is the description of a CNAB bundle, as the index says that it stands in
}

// manifest gets what a digest names; of an index, the manifest that it has for us.
func (f *Fetcher) manifest(ctx context.Context, src Source, puller *remote.Puller, ref name.Digest) (*document, error) {
	cnab := false
	for range maxIndexes {
		got, err := puller.Get(ctx, ref)
		if err != nil {
			return nil, err
		}
		doc, index, err := parseDocument(got.Manifest, string(got.MediaType))
		if err != nil {
			return nil, failed(source.Terminal, source.ReasonUnsupportedMediaType, ref, err)
		}
		if !index {
			doc.cnab = cnab
			return doc, nil
		}
		chosen, found := descriptionOf(doc.Manifests)
		if cnab = found && src.Platform == nil; !cnab {
			chosen, err = f.chooseFor(src, doc.Manifests)
		}
		if err != nil {
			return nil, failed(source.Terminal, source.ReasonNoPlatform, ref, err)
		}
		ref = ref.Context().Digest(chosen.String())
	}
	return nil, failed(source.Terminal, source.ReasonUnsupportedMediaType, ref, fmt.Errorf("indexes inside indexes, more than %d deep", maxIndexes))
}

// parseDocument reads a manifest or an index. What it says of itself counts
// more than the header that it came with. One that is both is refused: readers
// would disagree on what it holds.
func parseDocument(data []byte, header string) (doc *document, index bool, err error) {
	doc = &document{}
	if err := json.Unmarshal(data, doc); err != nil {
		return nil, false, fmt.Errorf("it is not a manifest: %w", err)
	}
	if doc.Layers != nil && doc.Manifests != nil {
		return nil, false, errors.New("it is both a manifest and an index")
	}
	mediaType := doc.MediaType
	if mediaType == "" {
		mediaType = header
	}
	switch mediaType {
	case specs.MediaTypeImageManifest, dockerManifest:
		index = false
	case specs.MediaTypeImageIndex, dockerList:
		index = true
	default:
		if doc.MediaType != "" || doc.Layers == nil && doc.Manifests == nil {
			return nil, false, fmt.Errorf("it has the media type %q; only OCI and Docker manifests and indexes can be used", mediaType)
		}
		index = doc.Manifests != nil
	}
	if index != (doc.Manifests != nil) && (doc.Layers != nil || doc.Manifests != nil) {
		return nil, false, fmt.Errorf("its media type %q does not fit its fields", mediaType)
	}
	return doc, index, check(append(slices.Clone(doc.Layers), doc.Manifests...))
}

func check(descriptors []specs.Descriptor) error {
	for _, d := range descriptors {
		if err := d.Digest.Validate(); err != nil {
			return fmt.Errorf("descriptor %q: %w", d.Digest, err)
		}
		if d.Size < 0 {
			return fmt.Errorf("descriptor %s: the size is negative", d.Digest)
		}
	}
	return nil
}

// descriptionOf gives the entry of an index that describes a CNAB bundle: others
// are the images of that bundle, which have no platform to choose by.
func descriptionOf(manifests []specs.Descriptor) (digest.Digest, bool) {
	for _, d := range manifests {
		if d.Annotations["io.cnab.manifest.type"] == "config" {
			return d.Digest, true
		}
	}
	return "", false
}

// choose picks the entry of an index: the only usable one, else the only one for
// Linux on our architecture, of several variants the plain one. What an index
// says about another entry, such as a signature or a build record, is no content.
func choose(manifests []specs.Descriptor, architecture string) (digest.Digest, error) {
	usable := slices.DeleteFunc(slices.Clone(manifests), aside)
	if len(usable) == 1 {
		return usable[0].Digest, nil
	}
	var ours []specs.Descriptor
	for _, d := range usable {
		if d.Platform != nil && d.Platform.OS == "linux" && d.Platform.Architecture == architecture {
			ours = append(ours, d)
		}
	}
	if len(ours) > 1 {
		ours = slices.DeleteFunc(ours, func(d specs.Descriptor) bool { return !plainVariant(d.Platform) })
	}
	if len(ours) == 1 {
		return ours[0].Digest, nil
	}
	return "", fmt.Errorf("the index has %d entries and not exactly one for linux/%s (it has: %s); name one by digest", len(usable), architecture, platforms(usable))
}

func aside(d specs.Descriptor) bool {
	return d.Annotations["vnd.docker.reference.type"] != "" || d.Platform != nil && d.Platform.OS == "unknown" && d.Platform.Architecture == "unknown"
}

func plainVariant(p *specs.Platform) bool {
	return p.Variant == "" || p.Architecture == "arm64" && p.Variant == "v8"
}

// platforms lists them, sorted.
func platforms(manifests []specs.Descriptor) string {
	names := []string{}
	for _, d := range manifests {
		text := "no platform"
		if p := d.Platform; p != nil {
			text = strings.TrimSuffix(p.OS+"/"+p.Architecture+"/"+p.Variant, "/")
		}
		names = append(names, text)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 20 {
		names = append(names[:20], "...")
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// layer is one layer to have.
type layer struct {
	packed unpack.Packed
	format unpack.Format
}

// layersOf gives the layers that hold content, the lowest first, and counts
// their sizes before anything is fetched.
func layersOf(src Source, ref name.Digest, doc *document, budget *unpack.Budget) ([]layer, error) {
	var layers []layer
	for i, d := range doc.Layers {
		if !src.Layers.selects(i, d) {
			continue
		}
		if unpack.Ignored(d.MediaType) {
			continue
		}
		packed := unpack.Packed{Digest: d.Digest, Size: d.Size, MediaType: d.MediaType, Annotations: d.Annotations}
		format, err := unpack.FormatOf(packed)
		if err != nil {
			return nil, err
		}
		if err := budget.Compressed(d.Size); err != nil {
			return nil, err
		}
		layers = append(layers, layer{packed, format})
	}
	if len(layers) == 0 && len(src.Layers) > 0 {
		return nil, failed(source.Terminal, source.ReasonNotFound, ref, src.Layers.missed(doc))
	}
	return withConfig(src, ref, doc, layers, budget)
}
