// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/unpack"
)

// Platform is what an entry of an index is for.
type Platform struct {
	OS           string // "" means linux
	Architecture string // "" means that of the options
	Variant      string // "" means the plain one
}

func (p Platform) String() string {
	return strings.TrimSuffix(p.OS+"/"+p.Architecture+"/"+p.Variant, "/")
}

// chooseFor picks the entry of an index that a source asks for.
func (f *Fetcher) chooseFor(src Source, manifests []specs.Descriptor) (digest.Digest, error) {
	if src.Platform == nil {
		return choose(manifests, f.options.Architecture)
	}
	wanted := *src.Platform
	wanted.OS = cmp.Or(wanted.OS, "linux")
	wanted.Architecture = cmp.Or(wanted.Architecture, f.options.Architecture)
	return chooseExactly(manifests, wanted)
}

// chooseExactly picks the only entry for a platform.
func chooseExactly(manifests []specs.Descriptor, wanted Platform) (digest.Digest, error) {
	var found []specs.Descriptor
	for _, d := range manifests {
		if d.Platform == nil || aside(d) || d.Platform.OS != wanted.OS || d.Platform.Architecture != wanted.Architecture {
			continue
		}
		if wanted.Variant == d.Platform.Variant || wanted.Variant == "" && plainVariant(d.Platform) {
			found = append(found, d)
		}
	}
	if len(found) == 1 {
		return found[0].Digest, nil
	}
	return "", fmt.Errorf("the index has %d entries for %s, not one (it has: %s)", len(found), wanted, platforms(manifests))
}

// Selector is about layers that have all of what it says.
type Selector struct {
	MediaType string
	Title     string // name of the file that the layer is
	Index     *int   // place among the layers, from 0
}

func (s *Selector) selects(index int, d specs.Descriptor) bool {
	if s.MediaType != "" && !strings.EqualFold(plainType(s.MediaType), plainType(d.MediaType)) {
		return false
	}
	if s.Title != "" && s.Title != d.Annotations[unpack.AnnotationTitle] {
		return false
	}
	return s.Index == nil || *s.Index == index
}

func plainType(mediaType string) string {
	if plain, _, err := mime.ParseMediaType(mediaType); err == nil {
		return plain
	}
	return mediaType
}

// Selectors select a layer if one of them does; none selects all.
type Selectors []Selector

func (s Selectors) selects(index int, d specs.Descriptor) bool {
	return len(s) == 0 || slices.ContainsFunc(s, func(one Selector) bool { return one.selects(index, d) })
}

// maxShown is how many layers an error tells.
const maxShown = 10

// missed tells what there is, when nothing is selected.
func (s Selectors) missed(doc *document) error {
	var there []string
	for i, d := range doc.Layers[:min(len(doc.Layers), maxShown)] {
		text := fmt.Sprintf("%d: %s", i, d.MediaType)
		if title := d.Annotations[unpack.AnnotationTitle]; title != "" {
			text += fmt.Sprintf(" %q", title)
		}
		there = append(there, text)
	}
	if more := len(doc.Layers) - maxShown; more > 0 {
		there = append(there, fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("layers selects none of its layers (it has: %s)", cmp.Or(strings.Join(there, ", "), "none"))
}

// described is the name of the config blob where that is the content: the
// description of a CNAB bundle has no layers.
func described(doc *document) string {
	if doc.Config == nil || len(doc.Layers) > 0 || doc.Config.Digest.Validate() != nil {
		return ""
	}
	if doc.cnab {
		return unpack.CNABFile
	}
	format, err := unpack.FormatOf(unpack.Packed{Digest: doc.Config.Digest, MediaType: doc.Config.MediaType})
	if err != nil || format.File != unpack.CNABFile {
		return ""
	}
	return unpack.CNABFile
}

// withConfig adds the config blob as a file, if the source wants it.
func withConfig(src Source, ref name.Digest, doc *document, layers []layer, budget *unpack.Budget) ([]layer, error) {
	if src.Config == "" {
		src.Config = described(doc)
	}
	if src.Config == "" {
		return layers, nil
	}
	if err := content.CheckPath(src.Config); err != nil {
		return nil, failed(source.Terminal, source.ReasonInvalidReference, ref, fmt.Errorf("config %q: %w", src.Config, err))
	}
	if doc.Config == nil {
		return nil, failed(source.Terminal, source.ReasonNotFound, ref, errors.New("the manifest has no config blob"))
	}
	if err := check([]specs.Descriptor{*doc.Config}); err != nil {
		return nil, failed(source.Terminal, source.ReasonUnsupportedMediaType, ref, err)
	}
	if err := budget.Compressed(doc.Config.Size); err != nil {
		return nil, err
	}
	packed := unpack.Packed{Digest: doc.Config.Digest, Size: doc.Config.Size, MediaType: doc.Config.MediaType}
	return append(layers, layer{packed, unpack.Format{File: src.Config}}), nil
}
