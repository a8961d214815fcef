// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
)

func TestFilesFromElsewhereAreJudgedByTypeAndOnlyElseByTheirFirstBytes(t *testing.T) {
	plain := tarOf(t, reg("a", "text"))
	text := []byte(strings.Repeat("a: b\n", 300))
	zipped := zipOf(t, zipFile{name: "a", body: "text"})
	v7 := raw("a", []byte("text"), func(b []byte) { copy(b[257:], make([]byte, 8)) })
	long := tarOf(t, reg(strings.Repeat("long/", 300)+"a", "x"))
	for name, tc := range map[string]struct {
		mediaType string
		head      []byte
		name      string
		want      string
	}{
		"TarByBytes":                {"", plain, "a.bin", "1 archive tar"},
		"TarOfBeforeUstar":          {"", v7, "a", "1 archive tar"},
		"TarWithALongName":          {"", long, "a", "1 archive tar"},
		"TarCutByTheHead":           {"application/octet-stream", long[:600], "a", "1 archive tar"},
		"GzipByBytes":               {"application/octet-stream", gzipped(t, plain), "a", "1 archive tar+gzip"},
		"ZstdByBytes":               {"binary/octet-stream", zstded(t, plain), "a", "1 archive tar+zstd"},
		"XzByBytes":                 {"", xzed(t, plain), "a", "1 archive tar+xz"},
		"Bzip2ByBytes":              {"", bzipped2(t, plain), "a", "1 archive tar+bzip2"},
		"ZipByBytes":                {"Application/Octet-Stream; x=y", zipped, "a", "1 archive zip"},
		"EmptyZip":                  {"", zipOf(t), "a", "1 archive zip"},
		"CompressedFileStaysAsItIs": {"", gzipped(t, text), "a.yaml.gz", "1 file a.yaml.gz"},
		"TextStaysAsItIs":           {"", text, "a.yaml", "1 file a.yaml"},
		"NameDoesNotMakeAnArchive":  {"", text, "a.tar.gz", "1 file a.tar.gz"},
		"ShortFile":                 {"", []byte("x"), "a", "1 file a"},
		"EmptyFile":                 {"", nil, "a", "1 file a"},
		"Zeros":                     {"", make([]byte, 4096), "a", "1 file a"},
		"BrokenGzip":                {"", append([]byte{0x1f, 0x8b, 8}, text...), "a", "1 file a"},
		"TypeWinsOverBytes":         {"text/plain; charset=utf-8", plain, "a.txt", "1 file a.txt"},
		"TypeOfTarWinsOverBytes":    {"application/x-tar", text, "a", "1 archive tar"},
		"TypeOfZip":                 {"application/zip", text, "a", "1 archive zip"},
		"TypeOfTgz":                 {"application/x-tgz", nil, "a", "1 archive tar+gzip"},
		"TypeOfGzip":                {"application/gzip", gzipped(t, text), "conf/a.yaml.gz", "1 file+gzip conf/a.yaml"},
		"TypeOfGzipAroundTar":       {"application/x-gzip", gzipped(t, plain), "a.tgz", "1 archive tar+gzip"},
		"TypeOfZstd":                {"application/zstd", zstded(t, text), "a.zst", "1 file+zstd a"},
		"TypeOfXz":                  {"application/x-xz", xzed(t, text), "a.img.xz", "1 file+xz a.img"},
		"TypeOfXzAroundTar":         {"application/x-xz", xzed(t, plain), "a", "1 archive tar+xz"},
		"TypeOfBzip2":               {"application/x-bzip2", bzipped2(t, text), "a.bz2", "1 file+bzip2 a"},
		"TypeOfGzipOtherName":       {"application/gzip", gzipped(t, text), "a", "1 file+gzip a"},
		"Chart":                     {MediaTypeChart, nil, "a-1.tgz", "1 chart tar+gzip"},
		"DiskImage":                 {"application/vnd.efi.img", plain, "disk.img", "1 file disk.img"},
	} {
		t.Run(name, func(t *testing.T) {
			format, err := FormatOfFile(tc.mediaType, tc.head, tc.name)
			if err != nil || format.String() != tc.want {
				t.Errorf("got %q, %v; want %q", format, err, tc.want)
			}
		})
	}
}

func TestAFirstBlockOfBzip2FitsInTheHead(t *testing.T) {
	noise := make([]byte, 3<<20)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		noise[i] = byte(x)
	}
	for _, pack := range []func(testing.TB, []byte) []byte{gzipped, zstded, xzed, bzipped2} {
		data := pack(t, tarOf(t, reg("a", string(noise))))
		if format, ok := Sniff(data[:HeadSize]); !ok || format.File != "" {
			t.Errorf("got %q, %v", format, ok)
		}
	}
}

func TestNamesThatCannotBeFilesAreRefused(t *testing.T) {
	for _, name := range []string{"", "../a", "/a", ".", "a\nb"} {
		_, err := FormatOfFile("text/plain", nil, name)
		if _, ok := errors.AsType[*content.UnsafeError](err); !ok {
			t.Errorf("%q: got %v", name, err)
		}
	}
	if _, err := FormatOfFile("application/gzip", nil, ".gz"); err == nil {
		t.Error("a name that is an ending only was taken")
	}
}

func TestAFileIsTakenOutOfItsCompression(t *testing.T) {
	text := strings.Repeat("a: b\n", 100_000)
	for compression, pack := range map[Compression]func(testing.TB, []byte) []byte{Gzip: gzipped, Zstd: zstded, Xz: xzed, Bzip2: bzipped2} {
		for limits, want := range map[Limits]string{
			{Ratio: 100_000}:   "",
			{FileBytes: 1000}:  "file-bytes",
			{PathDepth: 1}:     "path-depth",
			{UnpackedBytes: 5}: "unpacked-bytes",
		} {
			data := pack(t, []byte(text))
			packed := Packed{Digest: digest.FromBytes(data), Size: int64(len(data))}
			format := Format{File: "conf/a.yaml", Compression: compression}
			layer, err := Layer(t.Context(), packed, format, bytes.NewReader(data), &memory{}, NewBudget(limits))
			if want != "" {
				if overLimit(err) != want || !strings.Contains(err.Error(), string(packed.Digest)) {
					t.Errorf("%s: got %v, want limit %q", compression, err, want)
				}
				continue
			}
			if err != nil || len(layer.Entries) != 1 || layer.Entries[0].Path != "conf/a.yaml" ||
				layer.Entries[0].Size != int64(len(text)) || layer.Entries[0].Sum.Digest() != digest.FromString(text) {
				t.Errorf("%s: got %v, %v", compression, layer.Entries, err)
			}
			for what, data := range map[string][]byte{"cut off": dropLast(data, 5), "followed": append(bytes.Clone(data), "garbage"...)} {
				_, err := Layer(t.Context(), packed, format, bytes.NewReader(data), &memory{}, NewBudget(limits))
				if _, ok := errors.AsType[*content.UnsafeError](err); !ok {
					t.Errorf("%s, %s: got %v", compression, what, err)
				}
			}
		}
	}
}

func TestLayersThatAreNoContentAreIgnored(t *testing.T) {
	for mediaType, want := range map[string]bool{
		MediaTypeEmpty: true, "application/vnd.cncf.helm.chart.provenance.v1.prov": true,
		MediaTypeChart: false, "": false, "application/json": false,
	} {
		if got := Ignored(mediaType); got != want {
			t.Errorf("%q: %v", mediaType, got)
		}
	}
}

// FuzzSniff looks for first bytes that panic or hang.
func FuzzSniff(f *testing.F) {
	plain := tarOf(f, reg("a", "text"))
	for _, seed := range [][]byte{plain, gzipped(f, plain), zstded(f, plain), zipOf(f), []byte("\xfd7zXZ\x00\x00\x00"), []byte("BZh91AY&SY")} {
		f.Add(seed, "application/gzip", "a.gz")
	}
	f.Fuzz(func(t *testing.T, head []byte, mediaType, name string) {
		format, err := FormatOfFile(mediaType, head, name)
		if err == nil && format.File != "" && content.CheckPath(format.File) != nil {
			t.Fatalf("%q is no path", format.File)
		}
	})
}
