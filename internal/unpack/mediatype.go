// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"mime"
	"strings"
)

// MediaTypeChart is the type of a packed Helm chart, in a registry and
// elsewhere: who gets one from a chart repository names it so.
const MediaTypeChart = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// compressions by the words that media types have for them.
var compressions = map[string]Compression{
	"gzip": Gzip, "gz": Gzip, "zstd": Zstd, "zst": Zstd, "xz": Xz, "bzip2": Bzip2, "bz2": Bzip2,
}

// compressedTars are the types of archives that do not end in "tar".
var compressedTars = map[string]Compression{
	"x-gtar": Plain, "x-tgz": Gzip, "x-compressed-tar": Gzip, "x-gtar-compressed": Gzip,
	"x-xz-compressed-tar": Xz, "x-zstd-compressed-tar": Zstd,
	"x-bzip-compressed-tar": Bzip2, "x-bzip2-compressed-tar": Bzip2,
}

// essence gives a media type in lower case, without parameters.
func essence(mediaType string) string {
	if plain, _, err := mime.ParseMediaType(mediaType); err == nil {
		return plain
	}
	return strings.ToLower(strings.TrimSpace(mediaType))
}

func subtypeOf(mediaType string) string {
	_, subtype, _ := strings.Cut(mediaType, "/")
	return subtype
}

// saysNothing tells whether a media type stands for any bytes.
func saysNothing(mediaType string) bool {
	switch mediaType {
	case "", "application/octet-stream", "binary/octet-stream", "application/x-octet-stream", "application/binary", "application/x-binary",
		"application/x-download", "application/force-download", "application/unknown", "application/x-unknown":
		return true
	}
	return false
}

// archiveType tells whether a media type is that of an archive: it ends in
// "zip", or in "tar", perhaps with a compression, as in "x.tar+gzip" and
// "x.tar.gzip".
func archiveType(mediaType string) (Format, bool) {
	subtype := subtypeOf(mediaType)
	if compression, ok := compressedTars[subtype]; ok {
		return Format{Compression: compression}, true
	}
	if subtype == "x-zip-compressed" || endsWith(subtype, "zip") {
		return Format{Zip: true}, true
	}
	format := Format{Image: isImageLayer(mediaType), Chart: mediaType == MediaTypeChart}
	if at := strings.LastIndexAny(subtype, "+."); at >= 0 {
		if compression, ok := compressions[subtype[at+1:]]; ok {
			subtype, format.Compression = subtype[:at], compression
		}
	}
	if !endsWith(subtype, "tar") {
		return Format{}, false
	}
	return format, true
}

// endsWith tells whether the last word of a subtype is this one.
func endsWith(subtype, word string) bool {
	rest, ok := strings.CutSuffix(subtype, word)
	return ok && (rest == "" || strings.ContainsAny(rest[len(rest)-1:], ".+-"))
}

// compressedType tells whether a media type says that something is compressed,
// and nothing of what it is.
func compressedType(mediaType string) (Compression, bool) {
	word := strings.TrimPrefix(subtypeOf(mediaType), "x-")
	if word == "bzip" {
		return Bzip2, true
	}
	compression, ok := compressions[word]
	return compression, ok
}

func isImageLayer(mediaType string) bool {
	return strings.HasPrefix(mediaType, "application/vnd.oci.image.layer.") ||
		strings.HasPrefix(mediaType, "application/vnd.docker.image.rootfs.")
}

// isCNABBundle tells whether a layer is the description of a CNAB bundle, which
// has one name in all bundles.
func isCNABBundle(mediaType string) bool {
	return strings.HasPrefix(mediaType, "application/vnd.cnab.") && endsWith(subtypeOf(mediaType), "json")
}

// endings of filesystem images, which are read in place: see package fsimage.
var endings = map[string]string{
	"x-iso9660-image": ".iso", "vnd.efi.iso": ".iso", "vnd.squashfs": ".squashfs", "x-squashfs-image": ".squashfs",
	"x-raw-disk-image": ".img", "vnd.efi.img": ".img",
}

func ending(mediaType string) string {
	subtype := subtypeOf(mediaType)
	for _, kind := range []string{"yaml", "json", "wasm"} {
		if subtype == kind || subtype == "x-"+kind || subtype == "vnd."+kind || strings.HasSuffix(subtype, "+"+kind) {
			return "." + kind
		}
	}
	if known, ok := endings[subtype]; ok {
		return known
	}
	if strings.HasPrefix(subtype, "vnd.wasm.content.layer.") || strings.HasPrefix(subtype, "vnd.module.wasm.content.layer.") {
		return ".wasm"
	}
	return ""
}
