// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
)

const (
	ociLayer     = "application/vnd.oci.image.layer.v1.tar"
	fluxLayer    = "application/vnd.cncf.flux.content.v1.tar+gzip"
	plainArchive = "application/vnd.acme.config.tar"
)

// memory is a sink that keeps digests only.
type memory struct {
	mu    sync.Mutex
	bytes int64
	temps int // that are open
}

func (m *memory) Temp() (content.Temp, error) {
	m.temps++
	return &memoryTemp{of: m}, nil
}

type memoryTemp struct {
	bytes.Buffer
	of *memory
}

func (t *memoryTemp) ReadAt(p []byte, offset int64) (int, error) {
	return bytes.NewReader(t.Bytes()).ReadAt(p, offset)
}

func (t *memoryTemp) Close() error { t.of.temps--; return nil }

func (m *memory) AddFile(r io.Reader, size int64) (content.Sum, error) {
	hash := sha256.New()
	n, err := io.CopyN(hash, r, size)
	m.mu.Lock()
	m.bytes += n
	m.mu.Unlock()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return content.Sum(hash.Sum(nil)), err
}

// reg, dir, sym, hard and dev make headers; text of a regular file is in Linkname.
func reg(name, text string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Linkname: text, Mode: 0o644}
}
func dir(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755} }
func sym(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
}
func hard(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target}
}
func special(flag byte, name string) tar.Header { return tar.Header{Typeflag: flag, Name: name} }

func tarOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		text := ""
		if h.Typeflag == tar.TypeReg {
			text, h.Linkname = h.Linkname, ""
			h.Size = int64(len(text))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstded(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() //nolint:errcheck // it writes nowhere
	return w.EncodeAll(data, nil)
}

// packedBy has a tool compress bytes, for what no library here writes.
func packedBy(t testing.TB, data []byte, tool string, flags ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		t.Skipf("SKIPPED: %s is not installed", tool)
	}
	command := exec.Command(tool, append(flags, "-c")...)
	command.Stdin = bytes.NewReader(data)
	packed, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func xzed(t testing.TB, data []byte) []byte     { return packedBy(t, data, "xz") }
func bzipped2(t testing.TB, data []byte) []byte { return packedBy(t, data, "bzip2") }

func unpackBytes(t testing.TB, data []byte, mediaType string, annotations map[string]string, limits Limits) (content.Layer, error) {
	t.Helper()
	packed := Packed{Digest: digest.FromBytes(data), Size: int64(len(data)), MediaType: mediaType, Annotations: annotations}
	format, err := FormatOf(packed)
	if err != nil {
		return content.Layer{}, err
	}
	sink := &memory{}
	layer, err := Layer(t.Context(), packed, format, bytes.NewReader(data), sink, NewBudget(limits))
	if sink.temps != 0 {
		t.Errorf("%d temporary files were not closed", sink.temps)
	}
	return layer, err
}

func show(layer content.Layer) []string {
	lines := []string{}
	for _, e := range layer.Entries {
		line := fmt.Sprintf("%c %s", e.Kind, e.Path)
		switch {
		case e.Kind == content.File && e.Exec:
			line += fmt.Sprintf(" %d x", e.Size)
		case e.Kind == content.File:
			line += fmt.Sprintf(" %d", e.Size)
		case e.Target != "":
			line += " " + e.Target
		}
		lines = append(lines, line)
	}
	return lines
}

func TestArchives(t *testing.T) {
	script := reg("run.sh", "#!")
	script.Mode = 0o700
	for name, tc := range map[string]struct {
		mediaType string
		entries   []tar.Header
		want      []string
	}{
		"FilesFoldersAndLinks": {ociLayer, []tar.Header{dir("./"), dir("a/"), reg("./a/b", "text"), script, sym("a/l", "../run.sh"), hard("h", "./a/b")},
			[]string{"d a", "f a/b 4", "f run.sh 2 x", "l a/l ../run.sh", "h h a/b"}},
		"Whiteouts": {ociLayer, []tar.Header{reg("a/.wh.b", ""), reg("a/.wh..wh..opq", ""), reg(".wh.c", ""), reg(".wh..wh..opq", "")},
			[]string{"w a/b", "o a", "w c", "o ."}},
		"BookkeepingOfAufs": {ociLayer, []tar.Header{reg(".wh..wh.aufs", ""), dir(".wh..wh.plnk"), reg(".wh..wh.plnk/1.2", "x"), reg("a", "")},
			[]string{"f a 0"}},
		"WhiteoutNamesInAPlainArchiveAreFiles": {plainArchive, []tar.Header{reg("a/.wh.b", ""), reg(".wh..wh..opq", "")},
			[]string{"f a/.wh.b 0", "f .wh..wh..opq 0"}},
		"NamesThatOnlyLookLikeWhiteouts": {ociLayer, []tar.Header{reg("a.wh.b", ""), reg("wh.c", "")},
			[]string{"f a.wh.b 0", "f wh.c 0"}},
		"AbsoluteLinkInAnImage": {ociLayer, []tar.Header{sym("bin/sh", "/bin/busybox")}, []string{"l bin/sh /bin/busybox"}},
		"LinkToNothing":         {plainArchive, []tar.Header{sym("a", "gone/b")}, []string{"l a gone/b"}},
		"GlobalHeaderOfGit": {plainArchive, []tar.Header{{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "abc"}}, reg("a", "x")},
			[]string{"f a 1"}},
		"LongNames": {plainArchive, []tar.Header{reg(strings.Repeat("long/", 30)+"ü", "x")}, []string{"f " + strings.Repeat("long/", 30) + "ü 1"}},
		"Backslash": {ociLayer, []tar.Header{reg(`lib/systemd/system-a\x2db.slice`, "")}, []string{`f lib/systemd/system-a\x2db.slice 0`}},
		"Empty":     {ociLayer, nil, []string{}},
	} {
		for compression, pack := range map[string]func(testing.TB, []byte) []byte{
			"": func(_ testing.TB, b []byte) []byte { return b }, "+gzip": gzipped, "+zstd": zstded, "+xz": xzed, "+bzip2": bzipped2,
		} {
			t.Run(name+compression, func(t *testing.T) {
				layer, err := unpackBytes(t, pack(t, tarOf(t, tc.entries...)), tc.mediaType+compression, nil, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, show(layer)); diff != "" {
					t.Errorf("entries (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestFormatsByMediaType(t *testing.T) {
	title := map[string]string{AnnotationTitle: "conf/app.yaml"}
	folder := map[string]string{AnnotationTitle: "conf", AnnotationUnpack: "true"}
	hex := digest.FromString("x").Encoded()
	for name, tc := range map[string]struct {
		mediaType   string
		annotations map[string]string
		want        string
	}{
		"OCI layer":                {ociLayer, nil, "1 image tar"},
		"OCI layer gzip":           {ociLayer + "+gzip", nil, "1 image tar+gzip"},
		"OCI layer zstd":           {ociLayer + "+zstd", nil, "1 image tar+zstd"},
		"OCI nondistributable":     {"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", nil, "1 image tar+gzip"},
		"Docker layer":             {"application/vnd.docker.image.rootfs.diff.tar.gzip", nil, "1 image tar+gzip"},
		"Docker plain layer":       {"application/vnd.docker.image.rootfs.diff.tar", nil, "1 image tar"},
		"Docker foreign layer":     {"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", nil, "1 image tar+gzip"},
		"Flux":                     {fluxLayer, nil, "1 archive tar+gzip"},
		"Flux with a title":        {fluxLayer, title, "1 archive tar+gzip"},
		"Helm chart":               {"application/vnd.cncf.helm.chart.content.v1.tar+gzip", nil, "1 chart tar+gzip"},
		"Old Helm":                 {"application/tar+gzip", nil, "1 archive tar+gzip"},
		"Plain tar":                {"application/x-tar", nil, "1 archive tar"},
		"tgz":                      {"application/x-tgz", nil, "1 archive tar+gzip"},
		"tar+xz":                   {"application/vnd.acme.config.v1.tar+xz", nil, "1 archive tar+xz"},
		"tar+bzip2":                {"application/vnd.acme.config.v1.tar+bz2", nil, "1 archive tar+bzip2"},
		"txz":                      {"application/x-xz-compressed-tar", nil, "1 archive tar+xz"},
		"zip":                      {"application/zip", nil, "1 archive zip"},
		"zip of Windows":           {"application/x-zip-compressed", nil, "1 archive zip"},
		"zip by suffix":            {"application/vnd.acme.config.v1+zip", title, "1 archive zip"},
		"gzip is no zip":           {"application/gzip", title, "1 file conf/app.yaml"},
		"CNAB bundle":              {"application/vnd.cnab.bundle.config.v1+json", nil, "1 file bundle.json"},
		"CNAB config":              {"application/vnd.cnab.config.v1+json", nil, "1 file bundle.json"},
		"CNAB thick bundle":        {"application/vnd.cnab.bundle.thick.v1.tar+gzip", nil, "1 archive tar+gzip"},
		"WASM":                     {"application/wasm", nil, "1 file sha256-" + hex + ".wasm"},
		"WASM with a title":        {"application/wasm", map[string]string{AnnotationTitle: "filter.wasm"}, "1 file filter.wasm"},
		"WASM of wasm-to-oci":      {"application/vnd.wasm.content.layer.v1+wasm", nil, "1 file sha256-" + hex + ".wasm"},
		"WASM of modules":          {"application/vnd.module.wasm.content.layer.v1+wasm", nil, "1 file sha256-" + hex + ".wasm"},
		"ISO image":                {"application/x-iso9660-image", nil, "1 file sha256-" + hex + ".iso"},
		"squashfs image":           {"application/vnd.squashfs", nil, "1 file sha256-" + hex + ".squashfs"},
		"disk image":               {"application/vnd.efi.img", nil, "1 file sha256-" + hex + ".img"},
		"Upper case, parameters":   {"Application/X-TAR; charset=binary", nil, "1 archive tar"},
		"ORAS file":                {ociLayer, title, "1 file conf/app.yaml"},
		"ORAS folder":              {ociLayer + "+gzip", folder, "1 archive tar+gzip"},
		"ORAS folder, own type":    {"application/vnd.acme.thing", folder, "1 archive tar+gzip"},
		"YAML with a title":        {"application/yaml", title, "1 file conf/app.yaml"},
		"YAML":                     {"application/yaml", nil, "1 file sha256-" + hex + ".yaml"},
		"YAML, text":               {"text/x-yaml; charset=utf-8", nil, "1 file sha256-" + hex + ".yaml"},
		"YAML by suffix":           {"application/vnd.acme.v1+yaml", nil, "1 file sha256-" + hex + ".yaml"},
		"JSON":                     {"application/json", nil, "1 file sha256-" + hex + ".json"},
		"JSON by suffix":           {"application/vnd.acme.v1+json", nil, "1 file sha256-" + hex + ".json"},
		"Guitar is no tar":         {"application/vnd.guitar", nil, "1 file sha256-" + hex},
		"gzip alone is no archive": {"application/gzip", nil, "1 file sha256-" + hex},
		"Unknown":                  {"application/octet-stream", nil, "1 file sha256-" + hex},
		"None":                     {"", nil, "1 file sha256-" + hex},
	} {
		t.Run(name, func(t *testing.T) {
			format, err := FormatOf(Packed{Digest: digest.FromString("x"), MediaType: tc.mediaType, Annotations: tc.annotations})
			if err != nil || format.String() != tc.want {
				t.Errorf("got %q, %v; want %q", format, err, tc.want)
			}
		})
	}
}

func TestTitlesThatLeaveTheTree(t *testing.T) {
	for _, title := range []string{"../x", "/etc/passwd", "a/../../b", "", ".", "a\x00b", "a\nb"} {
		_, err := unpackBytes(t, []byte("x"), ociLayer, map[string]string{AnnotationTitle: title}, Limits{})
		unsafe, ok := errors.AsType[*content.UnsafeError](err)
		if !ok || !strings.Contains(err.Error(), "title of the layer") || unsafe.Layer == "" {
			t.Errorf("%q: %v", title, err)
		}
	}
}

func TestASingleFileIsTakenAsItIs(t *testing.T) {
	layer, err := unpackBytes(t, []byte("a: b\n"), ociLayer, map[string]string{AnnotationTitle: "./app.yaml"}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := []content.Entry{{Path: "app.yaml", Kind: content.File, Size: 5, Sum: sha256.Sum256([]byte("a: b\n"))}}
	if diff := cmp.Diff(want, layer.Entries); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestTheSourcesErrorWinsOverThatOfTheContent(t *testing.T) {
	wrong := errors.New("the digest is wrong")
	whole := gzipped(t, tarOf(t, reg("a", strings.Repeat("text", 1000)), reg("../evil", "x")))
	for name, data := range map[string][]byte{
		"Unsafe":    whole,
		"Garbage":   []byte(strings.Repeat("garbage", 100)),
		"Truncated": whole[:len(whole)/2],
		"Empty":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			packed := Packed{Digest: digest.FromBytes(data), Size: int64(len(data)), MediaType: ociLayer + "+gzip"}
			r := io.MultiReader(bytes.NewReader(data), failing{wrong})
			_, err := Layer(t.Context(), packed, Format{Compression: Gzip}, r, &memory{}, NewBudget(Limits{}))
			if !errors.Is(err, wrong) {
				t.Errorf("got %v", err)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestTheDisksErrorIsPassedOn(t *testing.T) {
	full := &content.StoreError{Op: "write", Dir: "/x", Err: errors.New("full")}
	data := tarOf(t, reg("a", "text"))
	packed := Packed{Digest: digest.FromBytes(data), Size: int64(len(data))}
	for _, format := range []Format{{}, {File: "a"}, {Zip: true}, {Compression: Xz}, {File: "a", Compression: Xz}} {
		_, err := Layer(t.Context(), packed, format, bytes.NewReader(data), broken{full}, NewBudget(Limits{}))
		if got, ok := errors.AsType[*content.StoreError](err); !ok || got != full {
			t.Errorf("%s: %v", format, err)
		}
	}
}

type broken struct{ err error }

func (b broken) Temp() (content.Temp, error) { return nil, b.err }

func (b broken) AddFile(io.Reader, int64) (content.Sum, error) { return content.Sum{}, b.err }

func TestGivingUpEndsTheWork(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	data := tarOf(t, reg("a", "text"))
	time.AfterFunc(20*time.Millisecond, cancel)
	endless := io.MultiReader(bytes.NewReader(data[:len(data)-1024]), forever{})
	_, err := Layer(ctx, Packed{Digest: digest.FromBytes(data)}, Format{}, endless, &memory{}, NewBudget(Limits{UnpackedBytes: -1, Ratio: -1}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// forever gives zeros without end: padding that never ends.
type forever struct{}

func (forever) Read(b []byte) (int, error) { clear(b); return len(b), nil }
