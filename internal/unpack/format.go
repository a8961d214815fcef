// SPDX-License-Identifier: Apache-2.0

package unpack

import (
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

// CNABFile is the name of the description of a CNAB bundle.
const CNABFile = "bundle.json"

// Packed is a layer as its manifest describes it.
type Packed struct {
	Digest      digest.Digest
	Size        int64 // in bytes
	MediaType   string
	Annotations map[string]string
}

// Compression of an archive or a file.
type Compression string

// The kinds of compression.
const (
	Plain Compression = ""
	Gzip  Compression = "+gzip"
	Zstd  Compression = "+zstd"
	Xz    Compression = "+xz"
	Bzip2 Compression = "+bzip2"
)

// Format says how a layer is unpacked. The zero value is a plain tar archive.
type Format struct {
	// File is the path of the one file that the layer is, or "" if the layer is
	// an archive.
	File        string
	Compression Compression // of a tar archive, or of the file
	Zip         bool        // the archive is zip, not tar
	// Image is true for layers of a container image: they have whiteouts, and
	// absolute targets of symbolic links begin at the root of the tree.
	Image bool
	// Chart is true for Helm charts: all is in one top folder.
	Chart bool
}

// formatVersion is part of each key. It changes when the same layer would
// unpack to something else than before.
const formatVersion = "1"

// String gives a text that differs between formats. It is part of the key under
// which an unpacked layer is stored.
func (f Format) String() string {
	kind := "archive"
	switch {
	case f.File != "":
		return formatVersion + " file" + string(f.Compression) + " " + f.File
	case f.Zip:
		return formatVersion + " archive zip"
	case f.Image:
		kind = "image"
	case f.Chart:
		kind = "chart"
	}
	return formatVersion + " " + kind + " tar" + string(f.Compression)
}

// Key gives the key under which the unpacked layer is stored.
func Key(packed Packed, format Format) content.LayerKey {
	return content.LayerKey{Digest: packed.Digest, Format: format.String()}
}

// FormatOf decides how a layer of an artifact is unpacked:
//
//   - one that ORAS marked as a folder is a tar+gzip archive;
//   - one whose media type promises an archive of content, such as
//     "application/vnd.cncf.flux.content.v1.tar+gzip", is that archive;
//   - one with a title is the file of that name, also if its media type is that
//     of an image layer: ORAS gives that type to files by default;
//   - a layer of an OCI or Docker image is an archive with whiteouts;
//   - anything else is one file: "bundle.json" if it is a CNAB bundle, else
//     named after its digest, with an ending if its media type tells one.
//
// It gives a *content.UnsafeError if the title cannot be the name of a file.
func FormatOf(packed Packed) (Format, error) {
	mediaType := essence(packed.MediaType)
	if packed.Annotations[AnnotationUnpack] == "true" {
		return Format{Compression: Gzip}, nil
	}
	format, archive := archiveType(mediaType)
	if archive && !format.Image {
		return format, nil
	}
	if title, ok := packed.Annotations[AnnotationTitle]; ok {
		name, err := fileName(title)
		if err != nil {
			return Format{}, &content.UnsafeError{Layer: string(packed.Digest), Entry: title,
				Problem: "the title of the layer cannot be the name of a file: " + err.Error(), Err: err}
		}
		return Format{File: name}, nil
	}
	if archive {
		return format, nil
	}
	if isCNABBundle(mediaType) {
		return Format{File: CNABFile}, nil
	}
	return Format{File: packed.Digest.Algorithm().String() + "-" + packed.Digest.Encoded() + ending(mediaType)}, nil
}

// Ignored tells whether a layer is no content: the empty blob, or the signature
// of the Helm chart beside it.
func Ignored(mediaType string) bool {
	switch essence(mediaType) {
	case MediaTypeEmpty, "application/vnd.cncf.helm.chart.provenance.v1.prov":
		return true
	}
	return false
}

// fileName gives the path of a file that a publisher named.
func fileName(name string) (string, error) {
	clean, err := content.CleanPath(name)
	if err == nil {
		err = content.CheckPath(clean)
	}
	return clean, err
}
