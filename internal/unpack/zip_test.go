// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
)

const zipType = "application/zip"

// zipFile is an entry to be written. Its fields say what the directory, and if
// edit does not change that, the local header say.
type zipFile struct {
	name   string
	body   string
	mode   fs.FileMode
	store  bool
	stream bool             // sizes follow the bytes
	edit   func(e *zipEdit) // changes the entry before it is written
	extra  []byte           // of the directory and of the local header
}

// zipEdit is what is written of an entry.
type zipEdit struct {
	local, central           []byte // headers without names
	localName, centralName   string
	localExtra, centralExtra []byte
	packed                   []byte
	offset                   int // of the local header, as the directory says
}

func deflated(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// zipOf writes an archive by hand, since no writer writes what is wrong.
func zipOf(t testing.TB, files ...zipFile) []byte {
	t.Helper()
	var out, directory []byte
	for _, f := range files {
		e := &zipEdit{localName: f.name, centralName: f.name, localExtra: f.extra, centralExtra: f.extra, offset: len(out)}
		method, flags := uint16(zipDeflated), uint16(0)
		if e.packed = deflated(t, f.body); f.store {
			method, e.packed = zipStored, []byte(f.body)
		}
		if f.stream {
			flags = zipDescriptor
		}
		crc := crc32.ChecksumIEEE([]byte(f.body))
		e.local = make([]byte, zipLocalSize)
		little.PutUint32(e.local, zipLocalSign)
		little.PutUint16(e.local[6:], flags)
		little.PutUint16(e.local[8:], method)
		e.central = make([]byte, zipEntrySize)
		little.PutUint32(e.central, zipEntrySign)
		e.central[5] = 3
		copy(e.central[8:], e.local[6:10])
		little.PutUint32(e.central[16:], crc)
		little.PutUint32(e.central[20:], uint32(len(e.packed)))
		little.PutUint32(e.central[24:], uint32(len(f.body)))
		little.PutUint32(e.central[38:], uint32(f.mode)<<16)
		if !f.stream {
			copy(e.local[14:26], e.central[16:28])
		}
		if f.edit != nil {
			f.edit(e)
		}
		little.PutUint16(e.local[26:], uint16(len(e.localName)))
		little.PutUint16(e.local[28:], uint16(len(e.localExtra)))
		little.PutUint16(e.central[28:], uint16(len(e.centralName)))
		little.PutUint16(e.central[30:], uint16(len(e.centralExtra)))
		little.PutUint32(e.central[42:], uint32(e.offset))
		out = append(append(append(append(out, e.local...), e.localName...), e.localExtra...), e.packed...)
		if f.stream {
			out = little.AppendUint32(out, zipDescriptorSign)
			out = little.AppendUint32(out, crc)
			out = little.AppendUint32(out, uint32(len(e.packed)))
			out = little.AppendUint32(out, uint32(len(f.body)))
		}
		directory = append(append(append(directory, e.central...), e.centralName...), e.centralExtra...)
	}
	return append(append(out, directory...), zipEndOf(len(files), len(directory), len(out))...)
}

func zipEndOf(entries, size, offset int) []byte {
	end := make([]byte, zipEndSize)
	little.PutUint32(end, zipEndSign)
	little.PutUint16(end[8:], uint16(entries))
	little.PutUint16(end[10:], uint16(entries))
	little.PutUint32(end[12:], uint32(size))
	little.PutUint32(end[16:], uint32(offset))
	return end
}

func zipText(name, body string) zipFile { return zipFile{name: name, body: body, mode: 0o100644} }
func zipLink(name, target string) zipFile {
	return zipFile{name: name, body: target, mode: 0o120777, store: true}
}

// zipped has the writer of the standard library write an archive.
func zipped(t *testing.T, write func(w *zip.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if err := errors.Join(write(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestZipArchives(t *testing.T) {
	for name, tc := range map[string]struct {
		data []byte
		want []string
	}{
		"FilesFoldersAndLinks": {
			zipOf(t, zipFile{name: "a/", mode: 0o040755}, zipText("a/b", "text"), zipFile{name: "run.sh", body: "#!", mode: 0o100700, store: true}, zipLink("a/l", "../run.sh")),
			[]string{"d a", "f a/b 4", "f run.sh 2 x", "l a/l ../run.sh"},
		},
		"Empty":            {zipOf(t), []string{}},
		"SizesAfterBytes":  {zipOf(t, zipFile{name: "a", body: "text", stream: true}, zipFile{name: "b", body: "more", stream: true, store: true}), []string{"f a 4", "f b 4"}},
		"OfDOS":            {zipOf(t, zipFile{name: "a", body: "text", edit: func(e *zipEdit) { e.central[5] = 0; e.central[38] = 0x20 }}), []string{"f a 4"}},
		"FolderOfDOS":      {zipOf(t, zipFile{name: "a/", store: true, edit: func(e *zipEdit) { e.central[5] = 0; e.central[38] = 0x10 }}), []string{"d a"}},
		"NoFolders":        {zipOf(t, zipText("a/b/c", "x")), []string{"f a/b/c 1"}},
		"DotNames":         {zipOf(t, zipFile{name: "./", mode: 0o040755}, zipText("./a", "x")), []string{"f a 1"}},
		"LinkToNothing":    {zipOf(t, zipLink("a", "gone")), []string{"l a gone"}},
		"LinkChain":        {zipOf(t, zipLink("a", "b"), zipLink("b", "c"), zipText("c", "x")), []string{"l a b", "l b c", "f c 1"}},
		"WhiteoutIsAFile":  {zipOf(t, zipText(".wh.a", "")), []string{"f .wh.a 0"}},
		"Comment":          {withComment(zipOf(t, zipText("a", "x")), "a comment, PK\x05\x06"), []string{"f a 1"}},
		"UnicodePathField": {zipOf(t, zipFile{name: "ü", body: "x", extra: unicodePath("ü")}), []string{"f ü 1"}},
		"StandardLibrary": {zipped(t, func(w *zip.Writer) error {
			f, err := w.Create("a/b")
			if err == nil {
				_, err = io.WriteString(f, "text")
			}
			_, dirErr := w.Create("d/")
			return errors.Join(err, dirErr)
		}), []string{"f a/b 4", "d d"}},
		"FolderOfFileSystem": {zipped(t, func(w *zip.Writer) error { return w.AddFS(os.DirFS(sample(t))) }), []string{"d a", "f a/b 4"}},
	} {
		t.Run(name, func(t *testing.T) {
			layer, err := unpackBytes(t, tc.data, zipType, nil, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, show(layer)); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

func sample(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "a"), 0o700), os.WriteFile(filepath.Join(dir, "a", "b"), []byte("text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func withComment(data []byte, comment string) []byte {
	little.PutUint16(data[len(data)-2:], uint16(len(comment)))
	return append(data, comment...)
}

func unicodePath(name string) []byte {
	field := little.AppendUint16(little.AppendUint16(nil, unicodePathField), uint16(5+len(name)))
	return append(append(field, 1, 0, 0, 0, 0), name...)
}

// What the usual tool writes, also with zip64 where it is not needed.
func TestZipOfTheUsualTool(t *testing.T) {
	if _, err := exec.LookPath("zip"); err != nil {
		t.Skip("SKIPPED: zip is not installed")
	}
	dir := sample(t)
	if err := os.Symlink("a/b", filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	want := []string{"d a", "f a/b 4", "l l a/b"}
	for _, flags := range []string{"-qry", "-qry0", "-qryfz"} {
		file := filepath.Join(t.TempDir(), "a.zip")
		command := exec.Command("zip", flags, file, ".")
		command.Dir = dir
		if err := command.Run(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		layer, err := unpackBytes(t, data, zipType, nil, Limits{})
		if err != nil {
			t.Errorf("zip %s: %v", flags, err)
		} else if diff := cmp.Diff(want, slices.Sorted(slices.Values(show(layer)))); diff != "" {
			t.Errorf("zip %s (-want +got):\n%s", flags, diff)
		}
	}
}

func TestZip64(t *testing.T) {
	data := zipped(t, func(w *zip.Writer) (err error) {
		for i := range 70_000 {
			if _, err = w.CreateRaw(&zip.FileHeader{Name: fmt.Sprint("f", i)}); err != nil {
				break
			}
		}
		return err
	})
	layer, err := unpackBytes(t, data, zipType, nil, Limits{})
	if err != nil || len(layer.Entries) != 70_000 {
		t.Errorf("%d entries, %v", len(layer.Entries), err)
	}
	if _, err := unpackBytes(t, data, zipType, nil, Limits{Files: 69_999}); overLimit(err) != "files" {
		t.Errorf("got %v", err)
	}
	at := bytes.LastIndex(data, little.AppendUint32(nil, zip64EndSign))
	data[at+32]-- // the number of entries
	if _, err := unpackBytes(t, data, zipType, nil, Limits{}); err == nil || !strings.Contains(err.Error(), "its end says that it has 69999 entries") {
		t.Errorf("got %v", err)
	}
}

func TestUnsafeZipsAreRefusedByName(t *testing.T) {
	fine := zipOf(t, zipText("a", "text"), zipText("b", "text"))
	central := func(at int, value byte) func(e *zipEdit) { return func(e *zipEdit) { e.central[at] = value } }
	both := func(at int, value byte) func(e *zipEdit) {
		return func(e *zipEdit) { e.local[at], e.central[at+2] = value, value }
	}
	for name, tc := range map[string]struct {
		data  []byte
		entry string
		want  string
	}{
		"DotDot":                 {zipOf(t, zipText("../evil", "x")), "../evil", `contains ".."`},
		"Absolute":               {zipOf(t, zipText("/etc/passwd", "x")), "/etc/passwd", "absolute"},
		"Drive":                  {zipOf(t, zipText(`C:\evil`, "x")), `C:\\evil`, "separator to some readers"},
		"Backslash":              {zipOf(t, zipText(`..\evil`, "x")), `..\\evil`, "separator to some readers"},
		"NotUTF8":                {zipOf(t, zipText("caf\xe9", "x")), `caf\xe9`, "not valid UTF-8"},
		"EmptyName":              {zipOf(t, zipText("", "x")), "", "the name is empty"},
		"Root":                   {zipOf(t, zipText(".", "x")), ".", "root of the content"},
		"LinkOut":                {zipOf(t, zipLink("a/l", "../../x")), "a/l", `target "../../x" is outside`},
		"AbsoluteLink":           {zipOf(t, zipLink("l", "/etc/passwd")), "l", "absolute"},
		"EmptyLink":              {zipOf(t, zipLink("l", "")), "l", "link target is empty"},
		"Device":                 {zipOf(t, zipFile{name: "d", mode: 0o060644}), "d", "a block device"},
		"Pipe":                   {zipOf(t, zipFile{name: "p", mode: 0o010644}), "p", "a named pipe"},
		"Socket":                 {zipOf(t, zipFile{name: "s", mode: 0o140644}), "s", "a socket"},
		"Twice":                  {zipOf(t, zipText("a", "x"), zipText("a", "y")), "a", "there twice"},
		"TwiceByOtherNames":      {zipOf(t, zipText("a", "x"), zipText("./a", "y")), "./a", "there twice"},
		"FolderTwice":            {zipOf(t, zipFile{name: "a/", mode: 0o040755}, zipFile{name: "a/", mode: 0o040755}), "a/", "there twice"},
		"CaseClash":              {zipOf(t, zipText("README", "x"), zipText("readme", "y")), "readme", `differs from "README" only in capital letters`},
		"CaseClashOfFolders":     {zipOf(t, zipText("A/x", "x"), zipText("a/y", "y")), "a/y", `differs from "A" only in capital letters`},
		"CaseClashBeyondASCII":   {zipOf(t, zipText("Ä", "x"), zipText("ä", "y")), "ä", `differs from "Ä"`},
		"Encrypted":              {zipOf(t, zipFile{name: "a", body: "x", edit: both(6, 1)}), "a", "it is encrypted"},
		"StronglyEncrypted":      {zipOf(t, zipFile{name: "a", body: "x", edit: both(6, 0x41)}), "a", "it is encrypted"},
		"UnknownCompression":     {zipOf(t, zipFile{name: "a", body: "x", edit: both(8, 14)}), "a", "compressed by method 14"},
		"TwoNames":               {zipOf(t, zipFile{name: "a", body: "x", extra: unicodePath("b")}), "a", "say different things of its name"},
		"TwoNamesInDirectory":    {zipOf(t, zipFile{name: "a", body: "x", edit: func(e *zipEdit) { e.centralExtra = unicodePath("b") }}), "a", "two names"},
		"OtherLocalName":         {zipOf(t, zipFile{name: "a", body: "x", edit: func(e *zipEdit) { e.localName = "../b" }}), "a", "say different things of its name"},
		"OtherLocalMethod":       {zipOf(t, zipFile{name: "a", body: "x", edit: central(10, 0)}), "a", "say different things of its compression"},
		"OtherLocalFlags":        {zipOf(t, zipFile{name: "a", body: "x", edit: central(8, 1)}), "a", "say different things of its flags"},
		"OtherLocalSize":         {zipOf(t, zipFile{name: "a", body: "x", edit: func(e *zipEdit) { e.local[22]++ }}), "a", "say different things of its size"},
		"OtherLocalChecksum":     {zipOf(t, zipFile{name: "a", body: "x", edit: func(e *zipEdit) { e.local[14]++ }}), "a", "say different things of its size or checksum"},
		"OtherTrailingChecksum":  {otherTrailer(t), "a", "what follows the bytes of the entry say different things of its checksum"},
		"FolderWithoutSlash":     {zipOf(t, zipFile{name: "a", mode: 0o040755}), "a", "whether it is a folder"},
		"DOSFolderWithoutSlash":  {zipOf(t, zipFile{name: "a", edit: func(e *zipEdit) { e.central[5] = 0; e.central[38] = 0x10 }}), "a", "whether it is a folder"},
		"FileWithSlash":          {zipOf(t, zipFile{name: "a/", mode: 0o100644}), "a/", "whether it is a folder"},
		"FolderWithBytes":        {zipOf(t, zipFile{name: "a/", body: "x", mode: 0o040755}), "a/", "has bytes like a file"},
		"WrongChecksum":          {zipOf(t, zipFile{name: "a", body: "x", edit: func(e *zipEdit) { e.local[14]++; e.central[16]++ }}), "a", "checksum is wrong"},
		"WrongChecksumOfNothing": {zipOf(t, zipFile{name: "a", edit: func(e *zipEdit) { e.local[14]++; e.central[16]++ }}), "a", "checksum is wrong"},
		"MoreBytesThanItSays":    {zipOf(t, zipFile{name: "a", body: "text", edit: func(e *zipEdit) { e.local[22], e.central[24] = 3, 3 }}), "a", "more bytes than it says"},
		"FewerBytesThanItSays":   {zipOf(t, zipFile{name: "a", body: "text", edit: func(e *zipEdit) { e.local[22], e.central[24] = 9, 9 }}), "a", "cut off"},
		"StoredInTwoSizes":       {zipOf(t, zipFile{name: "a", body: "text", store: true, edit: func(e *zipEdit) { e.local[22], e.central[24] = 3, 3 }}), "a", "two sizes"},
		"GarbageAfterDeflate": {zipOf(t, zipFile{name: "a", body: "text", edit: func(e *zipEdit) {
			e.packed = append(e.packed, "junk"...)
			e.local[18] += 4
			e.central[20] += 4
		}}), "a", "something follows its compressed bytes"},
		"BrokenDeflate":    {zipOf(t, zipFile{name: "a", body: "text", edit: func(e *zipEdit) { e.packed[0] = 0xff }}), "a", "corrupt"},
		"SameBytesTwice":   {zipOf(t, zipText("a", "x"), zipFile{name: "a2", body: "x", edit: func(e *zipEdit) { e.offset = 0 }}), "a2", "shares bytes"},
		"InsideAnother":    {insideAnother(t), "quine", "shares bytes of the archive with another entry"},
		"OffsetOutside":    {zipOf(t, zipFile{name: "a", body: "x", edit: func(e *zipEdit) { e.offset = 1 << 30 }}), "a", "would be outside"},
		"OffsetOfNoHeader": {zipOf(t, zipFile{name: "a", body: "x", edit: func(e *zipEdit) { e.offset = 1 }}), "a", "no header before its bytes"},
		"BytesOutside":     {zipOf(t, zipFile{name: "a", body: "x", edit: func(e *zipEdit) { e.local[20], e.central[22] = 9, 9 }}), "a", "not inside the archive"},
		"NegativeZip64Size": {zipOf(t, zipFile{name: "a", body: "x", edit: func(e *zipEdit) {
			for i := range 4 {
				e.central[24+i] = 0xff
			}
			e.centralExtra = append([]byte{1, 0, 8, 0}, bytes.Repeat([]byte{0xff}, 8)...)
		}}), "", "too large"},
		"ShortZip64Field": {zipOf(t, zipFile{name: "a", body: "x", edit: func(e *zipEdit) {
			for i := range 4 {
				e.central[24+i] = 0xff
			}
			e.centralExtra = []byte{1, 0, 2, 0, 1, 1}
		}}), "", "cut off"},
		"Nothing":               {nil, "", "cut off"},
		"Text":                  {[]byte(strings.Repeat("text", 100)), "", "no directory at its end"},
		"CutOff":                {dropLast(fine, 30), "", "no directory at its end"},
		"CutAtTheBeginning":     {fine[1:], "", "not where it says"},
		"GarbageBefore":         {append([]byte("#!/bin/sh\n"), fine...), "", "not where it says"},
		"GarbageAfter":          {append(bytes.Clone(fine), "garbage"...), "", "something follows the end"},
		"TwoArchives":           {append(bytes.Clone(fine), fine...), "", "not where it says"},
		"SecondEndInAComment":   {withComment(bytes.Clone(fine), string(zipEndOf(0, 0, 0))), "", "not where it says"},
		"MoreEntriesThanItHas":  {zipEntriesOff(fine, 1), "", "its end says that it has 3 entries, its directory has 2"},
		"FewerEntriesThanItHas": {zipEntriesOff(fine, -1), "", "its end says that it has 1 entries, its directory has 2"},
		"OneOfSeveralParts":     {zipPart(fine), "", "one of several parts"},
		"DirectoryIsGarbage":    {append(append([]byte("garbage"), make([]byte, 60)...), zipEndOf(1, 67, 0)...), "", "no entry of its directory"},
		"DirectoryIsCutOff":     {append(make([]byte, 20), zipEndOf(1, 20, 0)...), "", "cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := unpackBytes(t, tc.data, zipType, nil, Limits{})
			if _, ok := errors.AsType[*content.UnsafeError](err); !ok {
				t.Fatalf("got %v, want an UnsafeError", err)
			}
			if text := err.Error(); !strings.Contains(text, tc.want) || !strings.Contains(text, string(digest.FromBytes(tc.data))) ||
				tc.entry != "" && !strings.Contains(text, `entry "`+tc.entry+`"`) || strings.ContainsAny(text, "\n\x1b") {
				t.Errorf("error is %s\nwant it to name entry %q, the layer, and %q", text, tc.entry, tc.want)
			}
		})
	}
}

func zipEntriesOff(data []byte, by int) []byte {
	data = bytes.Clone(data)
	end := data[len(data)-zipEndSize:]
	end[8], end[10] = byte(int(end[8])+by), byte(int(end[10])+by)
	return data
}

func zipPart(data []byte) []byte {
	data = bytes.Clone(data)
	data[len(data)-zipEndSize+4] = 1
	return data
}

func otherTrailer(t *testing.T) []byte {
	t.Helper()
	data := zipOf(t, zipFile{name: "a", body: "text", stream: true})
	data[bytes.Index(data, little.AppendUint32(nil, zipDescriptorSign))+4]++
	return data
}

// insideAnother makes the bytes of one entry hold the whole of another, as
// archives do that unpack to much more than their size.
func insideAnother(t *testing.T) []byte {
	t.Helper()
	inner := zipOf(t, zipText("quine", "x"))
	inner = inner[:bytes.Index(inner, little.AppendUint32(nil, zipEntrySign))]
	offset := zipLocalSize + len("outer")
	return zipOf(t, zipFile{name: "outer", body: string(inner), store: true},
		zipFile{name: "quine", body: "x", edit: func(e *zipEdit) { e.offset = offset }})
}

func TestZipsHaveTheLimitsOfOtherArchives(t *testing.T) {
	many := []zipFile{}
	for i := range 6 {
		many = append(many, zipText(fmt.Sprint("f", i), "12345"))
	}
	for name, tc := range map[string]struct {
		limits Limits
		data   []byte
		want   string
	}{
		"Files":         {Limits{Files: 5}, zipOf(t, many...), "files"},
		"UnpackedBytes": {Limits{UnpackedBytes: 29}, zipOf(t, many...), "unpacked-bytes"},
		"FileBytes":     {Limits{FileBytes: 4}, zipOf(t, many...), "file-bytes"},
		"PathBytes":     {Limits{PathBytes: 10}, zipOf(t, zipText("12345678901", "")), "path-bytes"},
		"LinkBytes":     {Limits{PathBytes: 10}, zipOf(t, zipLink("a", "12345678901")), "path-bytes"},
		"PathDepth":     {Limits{PathDepth: 3}, zipOf(t, zipText("a/b/c/d", "")), "path-depth"},
		"Ratio":         {Limits{}, zipOf(t, zipText("a", strings.Repeat("\x00", 40<<20))), "ratio"},
		"Directory":     {Limits{Files: -1}, append(make([]byte, 33<<20), zipEndOf(1, 33<<20, 0)...), "zip-directory"},
		"HugeFile": {Limits{}, zipOf(t, zipFile{name: "a", body: "x", edit: func(e *zipEdit) {
			e.local[25], e.central[27] = 0xf0, 0xf0 // 3.75 GiB
		}}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := unpackBytes(t, tc.data, zipType, nil, tc.limits)
			if got := overLimit(err); got == "" || tc.want != "" && got != tc.want {
				t.Errorf("got %v, want limit %q", err, tc.want)
			}
		})
	}
}

// FuzzZip looks for archives that panic, hang or pass a limit, and for those
// in which the reader of the standard library sees something else.
func FuzzZip(f *testing.F) {
	for _, seed := range [][]byte{
		zipOf(f), zipOf(f, zipText("a", "text"), zipLink("l", "a"), zipFile{name: "d/", mode: 0o040755}),
		zipOf(f, zipFile{name: "a", body: "text", stream: true}), withComment(zipOf(f, zipText("a", "x")), "comment"),
		zipOf(f, zipFile{name: "a", body: "x", extra: unicodePath("b")}), zipOf(f, zipText("A", "x"), zipText("a", "x")),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		packed := Packed{Digest: digest.FromBytes(data), Size: int64(len(data))}
		format := Format{Zip: true}
		layer, err := Layer(t.Context(), packed, format, bytes.NewReader(data), &memory{}, NewBudget(fuzzLimits))
		if err != nil {
			checkRefusal(t, err, packed)
			return
		}
		for _, e := range layer.Entries {
			checkEntry(t, e, format)
		}
		sameAsOthersSee(t, data, layer)
	})
}

func sameAsOthersSee(t *testing.T, data []byte, layer content.Layer) {
	t.Helper()
	other, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		t.Fatalf("the standard library refuses it: %v", err)
	}
	bytesOf := map[string]digest.Digest{}
	for _, file := range other.File {
		opened, err := file.Open()
		if err != nil {
			t.Fatalf("%q: the standard library refuses it: %v", file.Name, err)
		}
		read, err := io.ReadAll(opened)
		if err != nil {
			t.Fatalf("%q: the standard library refuses it: %v", file.Name, err)
		}
		if name, err := content.CleanPath(file.Name); err == nil {
			bytesOf[name] = digest.FromBytes(read)
		}
	}
	for _, e := range layer.Entries {
		want, ok := bytesOf[e.Path]
		if !ok || e.Kind == content.File && want != e.Sum.Digest() {
			t.Fatalf("%q: the standard library has %q (%v), we have %s", e.Path, want, ok, e.Sum.Digest())
		}
	}
}
