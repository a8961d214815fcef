// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"mime"
	"strings"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
)

// Annotations of a layer that say how to unpack it.
const (
	AnnotationTitle  = "org.opencontainers.image.title" // name of the file that the layer is
	AnnotationUnpack = "io.deis.oras.content.unpack"    // "true": it is a folder, packed as tar+gzip
)

// MediaTypeEmpty is the type of the blob that stands for "nothing here".
const MediaTypeEmpty = "application/vnd.oci.empty.v1+json"

// Packed is a layer as its manifest describes it.
type Packed struct {
	Digest      digest.Digest
	Size        int64 // in bytes
	MediaType   string
	Annotations map[string]string
}

// Compression of an archive.
type Compression string

// The kinds of compression.
const (
	Plain Compression = ""
	Gzip  Compression = "+gzip"
	Zstd  Compression = "+zstd"
)

// Format says how a layer is unpacked.
type Format struct {
	// File is the path of the one file that the layer is, or "" if the layer is
	// a tar archive.
	File        string
	Compression Compression // of an archive
	// Image is true for layers of a container image: they have whiteouts, and
	// absolute targets of symbolic links begin at the root of the tree.
	Image bool
}

// formatVersion is part of each key. It changes when the same layer would
// unpack to something else than before.
const formatVersion = "1"

// String gives a text that differs between formats. It is part of the key under
// which an unpacked layer is stored.
func (f Format) String() string {
	switch {
	case f.File != "":
		return formatVersion + " file " + f.File
	case f.Image:
		return formatVersion + " image tar" + string(f.Compression)
	default:
		return formatVersion + " archive tar" + string(f.Compression)
	}
}

// Key gives the key under which the unpacked layer is stored.
func Key(packed Packed, format Format) content.LayerKey {
	return content.LayerKey{Digest: packed.Digest, Format: format.String()}
}

// FormatOf decides how a layer is unpacked:
//
//   - one that ORAS marked as a folder is a tar+gzip archive;
//   - one whose media type promises an archive of content, such as
//     "application/vnd.cncf.flux.content.v1.tar+gzip", is that archive;
//   - one with a title is the file of that name, also if its media type is that
//     of an image layer: ORAS gives that type to files by default;
//   - a layer of an OCI or Docker image is an archive with whiteouts;
//   - anything else is one file, named after its digest, with the ending
//     ".yaml" or ".json" if its media type says so.
//
// It gives a *content.UnsafeError if the title cannot be the name of a file.
func FormatOf(packed Packed) (Format, error) {
	mediaType := essence(packed.MediaType)
	if packed.Annotations[AnnotationUnpack] == "true" {
		return Format{Compression: Gzip}, nil
	}
	compression, archive := archiveType(mediaType)
	image := archive && isImageLayer(mediaType)
	if archive && !image {
		return Format{Compression: compression}, nil
	}
	if title, ok := packed.Annotations[AnnotationTitle]; ok {
		name, err := content.CleanPath(title)
		if err == nil {
			err = content.CheckPath(name)
		}
		if err != nil {
			return Format{}, &content.UnsafeError{Layer: string(packed.Digest), Entry: title,
				Problem: "the title of the layer cannot be the name of a file: " + err.Error(), Err: err}
		}
		return Format{File: name}, nil
	}
	if image {
		return Format{Compression: compression, Image: true}, nil
	}
	return Format{File: packed.Digest.Algorithm().String() + "-" + packed.Digest.Encoded() + ending(mediaType)}, nil
}

// essence gives a media type in lower case, without parameters.
func essence(mediaType string) string {
	if plain, _, err := mime.ParseMediaType(mediaType); err == nil {
		return plain
	}
	return strings.ToLower(strings.TrimSpace(mediaType))
}

func isImageLayer(mediaType string) bool {
	return strings.HasPrefix(mediaType, "application/vnd.oci.image.layer.") ||
		strings.HasPrefix(mediaType, "application/vnd.docker.image.rootfs.")
}

// archiveType tells whether a media type is that of a tar archive: it ends in
// "tar", perhaps with a compression, as in "x.tar+gzip" and "x.tar.gzip".
func archiveType(mediaType string) (Compression, bool) {
	_, subtype, _ := strings.Cut(mediaType, "/")
	switch subtype {
	case "x-tgz", "x-compressed-tar", "x-gtar-compressed":
		return Gzip, true
	case "x-gtar":
		return Plain, true
	}
	compression := Plain
	for ending, kind := range map[string]Compression{"gzip": Gzip, "gz": Gzip, "zstd": Zstd, "zst": Zstd} {
		for _, separator := range []string{"+", "."} {
			if rest, ok := strings.CutSuffix(subtype, separator+ending); ok {
				subtype, compression = rest, kind
			}
		}
	}
	rest, ok := strings.CutSuffix(subtype, "tar")
	if !ok || rest != "" && !strings.ContainsAny(rest[len(rest)-1:], ".+-") {
		return Plain, false
	}
	return compression, true
}

func ending(mediaType string) string {
	_, subtype, _ := strings.Cut(mediaType, "/")
	for _, kind := range []string{"yaml", "json"} {
		if subtype == kind || subtype == "x-"+kind || subtype == "vnd."+kind || strings.HasSuffix(subtype, "+"+kind) {
			return "." + kind
		}
	}
	return ""
}
