// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"strings"

	"rukpak.io/rukpak/internal/content"
)

// HeadSize is how many first bytes of a file Sniff and FormatOfFile want to
// see, or all if there are fewer: a block of bzip2 is the most that has to be
// there before anything inside can be read.
const HeadSize = 1 << 20

// magics are how compressed bytes begin.
var magics = []struct {
	bytes       string
	compression Compression
}{
	{"\x1f\x8b\x08", Gzip}, {"\x28\xb5\x2f\xfd", Zstd}, {"\xfd7zXZ\x00", Xz}, {"BZh", Bzip2},
}

// fileEndings are what a name loses with the compression.
var fileEndings = map[Compression][]string{Gzip: {".gz"}, Zstd: {".zst", ".zstd"}, Xz: {".xz"}, Bzip2: {".bz2"}}

// Sniff tells from the first bytes whether a file is an archive: tar, tar in
// one of the compressions, or zip. A file that is only compressed is none. It is
// for files of which nobody says what they are.
func Sniff(head []byte) (Format, bool) {
	if isTar(head) {
		return Format{}, true
	}
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06")) {
		return Format{Zip: true}, true
	}
	for _, magic := range magics {
		if bytes.HasPrefix(head, []byte(magic.bytes)) && isTar(inside(head, magic.compression)) {
			return Format{Compression: magic.compression}, true
		}
	}
	return Format{}, false
}

// FormatOfFile decides how a file is unpacked that comes from elsewhere than a
// registry, such as a web server or a bucket. The media type decides, as in
// FormatOf. Only where it says nothing ("", "application/octet-stream") do the
// first bytes, with Sniff. A type that says just how a file is compressed, such
// as "application/gzip", makes it a tar archive if there is one inside, else the
// one file that is inside, without the ending ".gz".
//
// head is the first HeadSize bytes. name is how the file is called if it stays
// one file; if that is no name for a file, the error is a *content.UnsafeError.
// A Helm chart is told by giving MediaTypeChart.
func FormatOfFile(mediaType string, head []byte, name string) (Format, error) {
	mediaType = essence(mediaType)
	if format, ok := archiveType(mediaType); ok {
		return format, nil
	}
	if saysNothing(mediaType) {
		if format, ok := Sniff(head); ok {
			return format, nil
		}
	}
	format := Format{File: name}
	if compression, ok := compressedType(mediaType); ok {
		if isTar(inside(head, compression)) {
			return Format{Compression: compression}, nil
		}
		format.Compression = compression
		for _, ending := range fileEndings[compression] {
			format.File = strings.TrimSuffix(format.File, ending)
		}
	}
	clean, err := fileName(format.File)
	if err != nil {
		return Format{}, &content.UnsafeError{Entry: name, Problem: "it cannot be the name of a file: " + err.Error(), Err: err}
	}
	format.File = clean
	return format, nil
}

// isTar tells whether the first block is a tar header with a right checksum.
func isTar(head []byte) bool {
	if len(head) < 512 || head[0] == 0 && head[257] == 0 {
		return false
	}
	header, err := tar.NewReader(bytes.NewReader(head)).Next()
	return err == nil && header != nil || bytes.HasPrefix(head[257:], []byte("ustar"))
}

// inside gives the first bytes of what is compressed, or nothing.
func inside(head []byte, compression Compression) []byte {
	r, free, err := decompress(context.Background(), bytes.NewReader(head), compression)
	if err != nil {
		return nil
	}
	defer free()
	first := make([]byte, 1024)
	n, _ := io.ReadFull(r, first) // what is cut off or broken shows when all of it is unpacked
	return first[:n]
}
