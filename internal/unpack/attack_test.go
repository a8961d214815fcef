// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
)

// raw makes a tar archive by hand, for what the writer refuses to write. edit
// changes the header block before its checksum is computed.
func raw(name string, body []byte, edit func(block []byte)) []byte {
	block := make([]byte, 512)
	copy(block, name)
	copy(block[100:], "0000644\x00")
	copy(block[108:], "0000000\x00")
	copy(block[116:], "0000000\x00")
	copy(block[124:], fmt.Sprintf("%011o\x00", len(body)))
	copy(block[136:], "00000000000\x00")
	block[156] = '0'
	copy(block[257:], "ustar\x0000")
	if edit != nil {
		edit(block)
	}
	copy(block[148:], "        ")
	sum := 0
	for _, b := range block {
		sum += int(b)
	}
	copy(block[148:], fmt.Sprintf("%06o\x00 ", sum))
	body = append(bytes.Clone(body), make([]byte, (512-len(body)%512)%512)...)
	return append(append(block, body...), make([]byte, 1024)...)
}

func paxed(records string, then []byte) []byte {
	pax := raw("pax", []byte(records), func(b []byte) { b[156] = 'x' })
	return append(pax[:len(pax)-1024], then...)
}

func TestUnsafeContentIsRefusedByName(t *testing.T) {
	fine := tarOf(t, reg("a", "text"))
	for name, tc := range map[string]struct {
		data      []byte
		mediaType string
		entry     string // as the error shows it
		want      string
	}{
		"DotDot":                {tarOf(t, reg("../evil", "x")), ociLayer, "../evil", `contains ".."`},
		"DotDotInside":          {tarOf(t, reg("a/../../evil", "x")), ociLayer, "a/../../evil", `contains ".."`},
		"DotDotFolder":          {tarOf(t, dir("../")), plainArchive, "../", `contains ".."`},
		"Absolute":              {tarOf(t, reg("/etc/passwd", "x")), ociLayer, "/etc/passwd", "absolute"},
		"AbsoluteFolder":        {tarOf(t, dir("/")), plainArchive, "/", "absolute"},
		"LinkOut":               {tarOf(t, sym("a/l", "../../x")), ociLayer, "a/l", `target "../../x" is outside`},
		"AbsoluteLink":          {tarOf(t, sym("l", "/etc/passwd")), plainArchive, "l", `target "/etc/passwd" is absolute`},
		"EmptyLink":             {raw("l", nil, func(b []byte) { b[156] = '2' }), plainArchive, "l", "link target is empty"},
		"HardLinkOut":           {tarOf(t, hard("h", "../../etc/shadow")), ociLayer, "h", `hard link leaves the tree: its target is "../../etc/shadow"`},
		"AbsoluteHardLink":      {tarOf(t, hard("h", "/etc/shadow")), ociLayer, "h", `hard link leaves the tree: its target is "/etc/shadow"`},
		"HardLinkToTheRoot":     {tarOf(t, hard("h", "./")), ociLayer, "h", "hard link leaves the tree"},
		"CharacterDevice":       {tarOf(t, special(tar.TypeChar, "dev/null")), ociLayer, "dev/null", "a character device"},
		"BlockDevice":           {tarOf(t, special(tar.TypeBlock, "dev/sda")), ociLayer, "dev/sda", "a block device"},
		"NamedPipe":             {tarOf(t, special(tar.TypeFifo, "p")), ociLayer, "p", "a named pipe"},
		"UnknownType":           {raw("q", nil, func(b []byte) { b[156] = 'Z' }), plainArchive, "q", `tar type 'Z'`},
		"RootIsAFile":           {tarOf(t, reg("./.", "x")), plainArchive, "./.", "root of the content"},
		"RootIsALink":           {tarOf(t, sym(".", "a")), plainArchive, ".", "root of the content"},
		"NotUTF8":               {raw("caf\xe9", nil, nil), plainArchive, `caf\xe9`, "not valid UTF-8"},
		"LineBreak":             {raw("a\nb", nil, nil), plainArchive, `a\nb`, "control character 0x0a"},
		"TerminalEscape":        {raw("a\x1b[2J", nil, nil), plainArchive, `a\x1b[2J`, "control character 0x1b"},
		"WhiteoutOfDotDot":      {tarOf(t, reg("a/.wh...", "")), ociLayer, "a/.wh...", "removes no name"},
		"WhiteoutOfNothing":     {tarOf(t, reg("a/.wh.", "")), ociLayer, "a/.wh.", "removes no name"},
		"FileInsideAWhiteout":   {tarOf(t, reg(".wh.a/b", "")), ociLayer, ".wh.a/b", "inside a whiteout"},
		"NegativeSize":          {raw("a", nil, func(b []byte) { copy(b[124:], "-0000000001\x00") }), plainArchive, "", "malformed"},
		"NegativeBinarySize":    {raw("a", nil, func(b []byte) { copy(b[124:], bytes.Repeat([]byte{0xff}, 12)) }), plainArchive, "", "malformed"},
		"NegativePaxSize":       {paxed("11 size=-1\n", raw("a", nil, nil)), plainArchive, "", "malformed"},
		"BrokenPaxRecord":       {paxed("99 path=x\n", raw("a", nil, nil)), plainArchive, "", "malformed"},
		"NULInAPaxPath":         {paxed("13 path=a\x00bc\n", raw("a", nil, nil)), plainArchive, "", "malformed"},
		"PaxPathOut":            {paxed("16 path=../evil\n", raw("a", nil, nil)), plainArchive, "../evil", `contains ".."`},
		"BadChecksum":           {append([]byte("x"), fine[1:]...), plainArchive, "", "malformed"},
		"TruncatedTar":          {fine[:514], plainArchive, "a", "cut off"},
		"TruncatedHeader":       {fine[:100], plainArchive, "", "cut off"},
		"TruncatedGzip":         {gzipped(t, fine)[:40], plainArchive + "+gzip", "", "cut off"},
		"GzipWithoutItsEnd":     {dropLast(gzipped(t, fine), 4), plainArchive + "+gzip", "", "cut off"},
		"TruncatedZstd":         {dropLast(zstded(t, fine), 3), plainArchive + "+zstd", "", "cut off"},
		"NotGzip":               {fine, plainArchive + "+gzip", "", "invalid header"},
		"NotZstd":               {fine, plainArchive + "+zstd", "", "magic"},
		"NotTar":                {bytes.Repeat([]byte("no tar "), 200), plainArchive, "", "malformed"},
		"EmptyGzip":             {nil, plainArchive + "+gzip", "", "cut off"},
		"GarbageAfterTar":       {append(bytes.Clone(fine), "garbage"...), plainArchive, "", "something follows"},
		"SecondTarAfterTheEnd":  {append(bytes.Clone(fine), fine...), plainArchive, "", "something follows"},
		"GarbageAfterGzip":      {append(gzipped(t, fine), "garbage, and more of it"...), plainArchive + "+gzip", "", "invalid header"},
		"GarbageAfterZstd":      {append(zstded(t, fine), "garbage"...), plainArchive + "+zstd", "", "magic"},
		"TarHiddenBehindGzip":   {append(gzipped(t, fine), gzipped(t, fine)...), plainArchive + "+gzip", "", "something follows"},
		"GzipChecksumIsWrong":   {flipped(gzipped(t, fine), -6), plainArchive + "+gzip", "", "checksum"},
		"TruncatedXz":           {dropLast(xzed(t, fine), 20), plainArchive + "+xz", "", "cut off"},
		"TruncatedBzip2":        {dropLast(bzipped2(t, fine), 5), plainArchive + "+bzip2", "", "cut off"},
		"NotXz":                 {fine, plainArchive + "+xz", "", "not recognized"},
		"NotBzip2":              {fine, plainArchive + "+bzip2", "", "magic"},
		"EmptyXz":               {nil, plainArchive + "+xz", "", "cut off"},
		"EmptyBzip2":            {nil, plainArchive + "+bzip2", "", "cut off"},
		"GarbageAfterXz":        {append(xzed(t, fine), "garbage, and more of it"...), plainArchive + "+xz", "", "not recognized"},
		"GarbageAfterBzip2":     {append(bzipped2(t, fine), "garbage"...), plainArchive + "+bzip2", "", "magic"},
		"TarHiddenBehindXz":     {append(xzed(t, fine), xzed(t, fine)...), plainArchive + "+xz", "", "something follows"},
		"TarHiddenBehindBzip2":  {append(bzipped2(t, fine), bzipped2(t, fine)...), plainArchive + "+bzip2", "", "something follows"},
		"XzChecksumIsWrong":     {flipped(xzed(t, fine), -40), plainArchive + "+xz", "", "corrupt"},
		"Bzip2ChecksumIsWrong":  {flipped(bzipped2(t, fine), -3), plainArchive + "+bzip2", "", "checksum"},
		"ChartWithoutAFolder":   {gzipped(t, tarOf(t, reg("Chart.yaml", "x"), reg("templates/a.yaml", "x"))), MediaTypeChart, "Chart.yaml", "outside the folder of the chart; pack a Helm chart as one top folder"},
		"ChartOfTwoFolders":     {gzipped(t, tarOf(t, reg("a/Chart.yaml", "x"), reg("b/Chart.yaml", "x"))), MediaTypeChart, "b/Chart.yaml", `outside the folder of the chart, which is "a"`},
		"LinkBesideAChart":      {gzipped(t, tarOf(t, reg("a/Chart.yaml", "x"), sym("l", "a"))), MediaTypeChart, "l", "outside the folder of the chart"},
		"MalformedSparseHeader": {paxed("22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n", raw("a", []byte("x"), nil)), plainArchive, "", "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := unpackBytes(t, tc.data, tc.mediaType, nil, Limits{})
			if _, ok := errors.AsType[*content.UnsafeError](err); !ok {
				t.Fatalf("got %v, want an UnsafeError", err)
			}
			text := err.Error()
			if !strings.Contains(text, tc.want) || !strings.Contains(text, string(digest.FromBytes(tc.data))) ||
				!strings.Contains(text, tc.entry) || strings.ContainsAny(text, "\n\x1b") {
				t.Errorf("error is %s\nwant it to name %q, the layer, and %q", text, tc.entry, tc.want)
			}
		})
	}
}

func dropLast(b []byte, n int) []byte { return b[:len(b)-n] }

func flipped(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[len(b)+at] ^= 0x10
	return b
}

func TestLimitsAreNamedInTheError(t *testing.T) {
	var many []tar.Header
	for i := range 6 {
		many = append(many, reg(fmt.Sprint("f", i), "12345"))
	}
	for name, tc := range map[string]struct {
		limits    Limits
		entries   []tar.Header
		mediaType string
		want      string
	}{
		"Files":         {Limits{Files: 5}, many, plainArchive, `entry "f5": more than 5 files, folders and links of one artifact (limit "files"; raise it with the flag --limit-files)`},
		"UnpackedBytes": {Limits{UnpackedBytes: 4000}, many, plainArchive, `more than 4000 unpacked bytes of one artifact (limit "unpacked-bytes"; raise it with the flag --limit-unpacked-bytes)`},
		"FileBytes":     {Limits{FileBytes: 4}, many, plainArchive, `entry "f0": more than 4 bytes of one file (limit "file-bytes"; raise it with the flag --limit-file-bytes)`},
		"PathBytes":     {Limits{PathBytes: 10}, []tar.Header{reg("12345678901", "")}, plainArchive, `entry "12345678901": more than 10 bytes of one name (limit "path-bytes"`},
		"LinkBytes":     {Limits{PathBytes: 10}, []tar.Header{sym("a", "12345678901")}, plainArchive, `entry "a": more than 10 bytes of one name (limit "path-bytes"`},
		"HardLinkBytes": {Limits{PathBytes: 10}, []tar.Header{hard("a", "12345678901")}, plainArchive, `entry "a": more than 10 bytes of one name (limit "path-bytes"`},
		"PathDepth":     {Limits{PathDepth: 3}, []tar.Header{reg("a/b/c/d", "")}, plainArchive, `entry "a/b/c/d": more than 3 parts of one name (limit "path-depth"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := unpackBytes(t, tarOf(t, tc.entries...), tc.mediaType, nil, tc.limits)
			if _, ok := errors.AsType[*LimitError](err); !ok || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "layer sha256:") {
				t.Errorf("got %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestSingleFilesHaveLimitsToo(t *testing.T) {
	title := map[string]string{AnnotationTitle: "a/b"}
	for _, limits := range []Limits{{FileBytes: 3}, {UnpackedBytes: 3}, {PathDepth: 1}, {PathBytes: 2}} {
		if _, err := unpackBytes(t, []byte("1234"), ociLayer, title, limits); !isLimit(err) {
			t.Errorf("%+v: %v", limits, err)
		}
	}
}

func isLimit(err error) bool { _, ok := errors.AsType[*LimitError](err); return ok }

func TestLayersOfOneArtifactShareTheLimits(t *testing.T) {
	budget := NewBudget(Limits{Files: 3, UnpackedBytes: 10, CompressedBytes: 100})
	one := content.Layer{Entries: []content.Entry{{Kind: content.File, Size: 4}, {Kind: content.Dir}}}
	if err := errors.Join(budget.Compressed(60), budget.Unpacked(one)); err != nil {
		t.Fatal(err)
	}
	if err := budget.Compressed(60); !isLimit(err) || !strings.Contains(err.Error(), "compressed-bytes") {
		t.Errorf("compressed: %v", err)
	}
	if err := budget.Unpacked(one); !isLimit(err) || !strings.Contains(err.Error(), `"files"`) {
		t.Errorf("files: %v", err)
	}
	if err := errors.Join(budget.Compressed(0), NewBudget(Limits{Layers: 1}).Compressed(0)); !isLimit(err) {
		t.Errorf("layers: %v", err) // the budget above is used up, the new one is not
	}
	if err := NewBudget(Limits{Layers: 1}).Compressed(0); err != nil {
		t.Errorf("one layer: %v", err)
	}
	if err := NewBudget(Limits{Files: -1, UnpackedBytes: -1, CompressedBytes: -1}).Compressed(1 << 62); err != nil {
		t.Errorf("without limits: %v", err)
	}
}

// bomb packs size zeros as one file, or as many, without holding them.
func bomb(t *testing.T, compressor func(io.Writer) io.WriteCloser, files int, size int64) []byte {
	t.Helper()
	var b bytes.Buffer
	z := compressor(&b)
	w := tar.NewWriter(z)
	zeros := make([]byte, 1<<20)
	for i := range files {
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprint("f", i), Size: size, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		for left := size; left > 0; left -= int64(len(zeros)) {
			if _, err := w.Write(zeros[:min(left, int64(len(zeros)))]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

func TestBombsAreStoppedEarly(t *testing.T) {
	gz := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	zs := func(w io.Writer) io.WriteCloser {
		z, err := zstd.NewWriter(w)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	plain := func(w io.Writer) io.WriteCloser { return unclosed{w} }
	for name, tc := range map[string]struct {
		data      []byte
		mediaType string
		limits    Limits
		limit     string
		most      int64 // bytes that may reach the sink
	}{
		"OneHugeFile":  {raw("a", nil, func(b []byte) { copy(b[124:], "120000000000") }), plainArchive, Limits{}, "file-bytes", 0}, // 10 GiB
		"GzipZeros":    {bomb(t, gz, 4, 20<<20), plainArchive + "+gzip", Limits{}, "ratio", 64 << 20},
		"ZstdZeros":    {bomb(t, zs, 4, 20<<20), plainArchive + "+zstd", Limits{}, "ratio", 64 << 20},
		"XzZeros":      {xzed(t, bomb(t, plain, 4, 20<<20)), plainArchive + "+xz", Limits{}, "ratio", 64 << 20},
		"Bzip2Zeros":   {bzipped2(t, bomb(t, plain, 4, 20<<20)), plainArchive + "+bzip2", Limits{}, "ratio", 64 << 20},
		"UnpackedSize": {bomb(t, gz, 4, 5<<20), plainArchive + "+gzip", Limits{Ratio: -1, UnpackedBytes: 6 << 20}, "unpacked-bytes", 6 << 20},
		"SparseFile": {paxed("22 GNU.sparse.major=0\n22 GNU.sparse.minor=1\n31 GNU.sparse.size=9000000000\n26 GNU.sparse.numblocks=1\n19 GNU.sparse.map=\n",
			raw("a", nil, nil)), plainArchive, Limits{}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			packed := Packed{Digest: digest.FromBytes(tc.data), Size: int64(len(tc.data)), MediaType: tc.mediaType}
			format, err := FormatOf(packed)
			if err != nil {
				t.Fatal(err)
			}
			sink := &memory{}
			_, err = Layer(t.Context(), packed, format, bytes.NewReader(tc.data), sink, NewBudget(tc.limits))
			limit, ok := errors.AsType[*LimitError](err)
			if tc.limit != "" && (!ok || limit.Limit != tc.limit) || err == nil {
				t.Errorf("got %v, want limit %q", err, tc.limit)
			}
			if sink.bytes > tc.most {
				t.Errorf("%d bytes were unpacked before it stopped", sink.bytes)
			}
		})
	}
}

func TestManyEmptyFilesAreStoppedAtTheLimit(t *testing.T) {
	data := gzipped(t, bytes.Repeat(raw("f", nil, nil)[:512], 200_000))
	_, err := unpackBytes(t, data, plainArchive+"+gzip", nil, Limits{})
	limit, ok := errors.AsType[*LimitError](err)
	if !ok || limit.Limit != "files" && limit.Limit != "ratio" {
		t.Errorf("got %v", err)
	}
	_, err = unpackBytes(t, data, plainArchive+"+gzip", nil, Limits{Ratio: -1})
	if limit, ok := errors.AsType[*LimitError](err); !ok || limit.Limit != "files" || limit.Most != 100_000 {
		t.Errorf("got %v", err)
	}
}

func TestAWindowThatWouldTakeMuchMemoryIsRefused(t *testing.T) {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithWindowSize(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(tarOf(t, reg("a", strings.Repeat("text", 3<<20)))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = unpackBytes(t, b.Bytes(), plainArchive+"+zstd", nil, Limits{})
	if limit, ok := errors.AsType[*LimitError](err); !ok || limit.Limit != "zstd-window" {
		t.Errorf("got %v", err)
	}
}

func TestADictionaryThatWouldTakeMuchMemoryIsRefused(t *testing.T) {
	data := packedBy(t, tarOf(t, reg("a", "text")), "xz", "--lzma2=dict=65MiB")
	_, err := unpackBytes(t, data, plainArchive+"+xz", nil, Limits{})
	if limit, ok := errors.AsType[*LimitError](err); !ok || limit.Limit != "xz-dictionary" {
		t.Errorf("got %v", err)
	}
	if _, err := unpackBytes(t, packedBy(t, tarOf(t, reg("a", "text")), "xz", "-9e"), plainArchive+"+xz", nil, Limits{}); err != nil {
		t.Errorf("the largest preset: %v", err)
	}
}

// Whoever waits for a turn gives up when told to.
func TestFewXzLayersAreUnpackedAtOnce(t *testing.T) {
	data := xzed(t, tarOf(t, reg("a", "text")))
	for range xzAtOnce {
		xzTurns <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	packed := Packed{Digest: digest.FromBytes(data), Size: int64(len(data))}
	_, err := Layer(ctx, packed, Format{Compression: Xz}, bytes.NewReader(data), &memory{}, NewBudget(Limits{}))
	for range xzAtOnce {
		<-xzTurns
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := unpackBytes(t, data, plainArchive+"+xz", nil, Limits{}); err != nil {
		t.Errorf("when the turns are given back: %v", err)
	}
}

func TestMemoryDoesNotGrowWithTheSize(t *testing.T) {
	gz := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	plain := func(w io.Writer) io.WriteCloser { return unclosed{w} }
	for name, tc := range map[string]struct {
		data      func(t *testing.T) []byte
		mediaType string
		most      uint64
	}{
		"Gzip":  {func(t *testing.T) []byte { return bomb(t, gz, 10, 10<<20) }, plainArchive + "+gzip", 8 << 20},
		"Xz":    {func(t *testing.T) []byte { return xzed(t, bomb(t, plain, 10, 10<<20)) }, plainArchive + "+xz", 24 << 20}, // the preset has a dictionary of 8 MiB
		"Bzip2": {func(t *testing.T) []byte { return bzipped2(t, bomb(t, plain, 10, 10<<20)) }, plainArchive + "+bzip2", 16 << 20},
		"Zip": {func(t *testing.T) []byte {
			var files []zipFile
			for i := range 10 {
				files = append(files, zipText(fmt.Sprint("f", i), strings.Repeat("\x00", 10<<20)))
			}
			return zipOf(t, files...)
		}, zipType, 8 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			data := tc.data(t)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := unpackBytes(t, data, tc.mediaType, nil, Limits{Ratio: -1}); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > tc.most {
				t.Errorf("%d bytes were allocated to unpack 100 MiB", used)
			}
		})
	}
}
