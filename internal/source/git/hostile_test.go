// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // the checksum of a pack
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/gitserver"
	"rukpak.io/rukpak/internal/unpack"
)

// entry is one of a pack that is made by hand.
type entry struct {
	kind plumbing.ObjectType
	base []byte // of a delta: what stands for its base
	data []byte
	size int64 // that it claims; 0 for the real one
}

func packOf(entries ...entry) []byte {
	var b bytes.Buffer
	b.WriteString("PACK\x00\x00\x00\x02")
	_ = binary.Write(&b, binary.BigEndian, uint32(len(entries))) //nolint:gosec // a handful
	for _, e := range entries {
		size := e.size
		if size == 0 {
			size = int64(len(e.data))
		}
		first := byte(e.kind)<<4 | byte(size&15) //nolint:gosec // that is the form
		for size >>= 4; size > 0; size >>= 7 {
			b.WriteByte(first | 0x80)
			first = byte(size & 0x7f)
		}
		b.WriteByte(first)
		b.Write(e.base)
		b.Write(deflated(e.data))
	}
	sum := sha1.Sum(b.Bytes()) //nolint:gosec // that is the form
	return append(b.Bytes(), sum[:]...)
}

func deflated(data []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

// banded puts a pack into packets.
func banded(pack []byte) string {
	var b strings.Builder
	b.WriteString("000dpackfile\n")
	for len(pack) > 0 {
		part := pack[:min(len(pack), 60_000)]
		pack = pack[len(part):]
		fmt.Fprintf(&b, "%04x\x01%s", len(part)+5, part)
	}
	return b.String() + "0000"
}

func named(kind plumbing.ObjectType, data []byte) plumbing.Hash {
	return plumbing.ComputeHash(kind, data)
}

func treeData(entries ...any) []byte {
	var b bytes.Buffer
	for i := 0; i < len(entries); i += 2 {
		hash := entries[i+1].(plumbing.Hash)
		b.WriteString(entries[i].(string) + "\x00")
		b.Write(hash[:])
	}
	return b.Bytes()
}

func commitData(tree plumbing.Hash) []byte {
	return []byte("tree " + tree.String() + "\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nx\n")
}

// whole gives a pack with a commit of one tree, and what else is given, and the commit's name.
func whole(tree []byte, more ...entry) ([]byte, string) {
	commit := commitData(named(plumbing.TreeObject, tree))
	entries := append([]entry{{kind: plumbing.CommitObject, data: commit}, {kind: plumbing.TreeObject, data: tree}}, more...)
	return packOf(entries...), named(plumbing.CommitObject, commit).String()
}

func TestHostileTreesAreRefused(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	gitserver.NewRepository(t, server.Root, "app.git")
	file := entry{kind: plumbing.BlobObject, data: []byte("x")}
	x := named(plumbing.BlobObject, file.data)
	out := entry{kind: plumbing.BlobObject, data: []byte("../x")}
	absolute := entry{kind: plumbing.BlobObject, data: []byte("/etc/passwd")}
	pointer := entry{kind: plumbing.BlobObject, data: []byte(lfsPrefix + "v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n")}
	empty := entry{kind: plumbing.BlobObject, data: nil}
	sub := entry{kind: plumbing.TreeObject, data: treeData("100644 f", x)}
	of := func(e entry) plumbing.Hash { return named(e.kind, e.data) }
	for name, tc := range map[string]struct {
		tree   []byte
		more   []entry
		reason string
		want   string
	}{
		"DotDot":          {treeData("100644 ..", x), nil, source.ReasonUnsafeContent, "no name of a file"},
		"Dot":             {treeData("40000 .", of(sub)), []entry{sub}, source.ReasonUnsafeContent, "no name of a file"},
		"Slash":           {treeData("100644 a/b", x), nil, source.ReasonUnsafeContent, "no name of a file"},
		"Absolute":        {treeData("100644 /a", x), nil, source.ReasonUnsafeContent, "no name of a file"},
		"NoName":          {treeData("100644 ", x), nil, source.ReasonUnsafeContent, "no name of a file"},
		"GitFolder":       {treeData("40000 .git", of(sub)), []entry{sub}, source.ReasonUnsafeContent, "git's own folder"},
		"GitFolderInCaps": {treeData("40000 .GiT", of(sub)), []entry{sub}, source.ReasonUnsafeContent, "git's own folder"},
		"Twice":           {treeData("100644 a", x, "100755 a", x), nil, source.ReasonUnsafeContent, "there twice"},
		"FileAndFolder":   {treeData("100644 a", x, "40000 a", of(sub)), []entry{sub}, source.ReasonUnsafeContent, "there twice"},
		"LinkAndFolder":   {treeData("120000 a", x, "40000 a", of(sub)), []entry{sub}, source.ReasonUnsafeContent, "there twice"},
		"NotUTF8":         {treeData("100644 caf\xe9", x), nil, source.ReasonUnsafeContent, "UTF-8"},
		"LineBreak":       {treeData("100644 a\nb", x), nil, source.ReasonUnsafeContent, "control character"},
		"Escape":          {treeData("100644 a\x1b[2J", x), nil, source.ReasonUnsafeContent, "control character"},
		"Device":          {treeData("20666 null", x), nil, source.ReasonUnsafeContent, "unknown mode"},
		"NoMode":          {treeData("100644", x), nil, source.ReasonUnsafeContent, "malformed"},
		"ModeNotOctal":    {treeData("9 a", x), nil, source.ReasonUnsafeContent, "malformed"},
		"CutOff":          {treeData("100644 a", x)[:20], nil, source.ReasonUnsafeContent, "malformed"},
		"LinkOut":         {treeData("120000 l", of(out)), []entry{out}, source.ReasonUnsafeContent, `entry "l"`},
		"AbsoluteLink":    {treeData("120000 l", of(absolute)), []entry{absolute}, source.ReasonUnsafeContent, `target "/etc/passwd" is absolute`},
		"EmptyLink":       {treeData("120000 l", of(empty)), []entry{empty}, source.ReasonUnsafeContent, "link target is empty"},
		"LFSPointer":      {treeData("100644 big.bin", of(pointer)), []entry{pointer}, source.ReasonUnsupportedContent, `"big.bin" is a pointer of Git LFS`},
		"LongName":        {treeData("100644 "+strings.Repeat("n", 2000), x), nil, source.ReasonLimitExceeded, "path-bytes"},
		"LongLink":        {treeData("120000 l", named(plumbing.BlobObject, bytes.Repeat([]byte("a"), 5000))), []entry{{kind: plumbing.BlobObject, data: bytes.Repeat([]byte("a"), 5000)}}, source.ReasonLimitExceeded, "path-bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			pack, commit := whole(tc.tree, append(tc.more, file)...)
			server.Faults.Add(fault.Rule{Path: packs, Action: answer("result", banded(pack))})
			defer server.Faults.Clear()
			src := insecure(server, "app.git")
			src.Commit = commit
			_, err := try(t, newStore(t), New(Options{}), src)
			wantError(t, err, source.Terminal, tc.reason, tc.want)
		})
	}
}

func TestPointersOfLFSAreTakenIfAskedFor(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	text := lfsPrefix + "v1\noid sha256:1\nsize 1\n"
	repo.Commit(t, "main", map[string]string{"a": "x", "big": text})
	src := insecure(server, "app.git")
	store := newStore(t)
	for range 2 { // in both orders: what the store has must not decide
		_, err := try(t, store, New(Options{}), src)
		wantError(t, err, source.Terminal, source.ReasonUnsupportedContent, "lfsPointers")
		src.LFSPointers = true
		found, err := try(t, store, New(Options{}), src)
		if err != nil {
			t.Fatal(err)
		}
		wantFiles(t, found, map[string]string{"a": "x", "big": text})
		src.LFSPointers = false
	}
}

// offset is how a delta names a base that lies before it.
func offset(back int) []byte {
	encoded := []byte{byte(back & 0x7f)}
	for back >>= 7; back > 0; back >>= 7 {
		back--
		encoded = append([]byte{0x80 | byte(back&0x7f)}, encoded...)
	}
	return encoded
}

func uvarint(n uint64) []byte { return binary.AppendUvarint(nil, n) }

func joinBytes(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestHostilePacksAreRefused(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	gitserver.NewRepository(t, server.Root, "app.git")
	base := entry{kind: plumbing.BlobObject, data: []byte("0123456789")}
	x := named(plumbing.BlobObject, base.data)
	delta := func(parts ...[]byte) entry {
		return entry{kind: plumbing.REFDeltaObject, base: x[:], data: joinBytes(parts...)}
	}
	tree := treeData("100644 a", x)
	zeros := make([]byte, 40<<20)
	for name, tc := range map[string]struct {
		more   []entry
		kind   source.Kind
		reason string
		want   string
	}{
		"NoBase":            {[]entry{{kind: plumbing.REFDeltaObject, base: make([]byte, 20), data: uvarint(1)}}, source.Transient, source.ReasonContentMismatch, "1 deltas have no base"},
		"BaseOfItself":      {[]entry{{kind: plumbing.OFSDeltaObject, base: offset(0), data: uvarint(1)}}, source.Transient, source.ReasonContentMismatch, "damaged"},
		"BaseBeforeThePack": {[]entry{{kind: plumbing.OFSDeltaObject, base: offset(1 << 20), data: uvarint(1)}}, source.Transient, source.ReasonContentMismatch, "damaged"},
		"EmptyDelta":        {[]entry{delta(nil)}, source.Transient, source.ReasonContentMismatch, "a delta is malformed"},
		"WrongBaseSize":     {[]entry{delta(uvarint(11), uvarint(1), []byte{1, 'a'})}, source.Transient, source.ReasonContentMismatch, "a delta is malformed"},
		"CopyBeyondBase":    {[]entry{delta(uvarint(10), uvarint(5), []byte{0x91, 8, 5})}, source.Transient, source.ReasonContentMismatch, "a delta is malformed"},
		"CopyTooMuch":       {[]entry{delta(uvarint(10), uvarint(5), []byte{0x91, 0, 6})}, source.Transient, source.ReasonContentMismatch, "a delta is malformed"},
		"InsertTooMuch":     {[]entry{delta(uvarint(10), uvarint(1), []byte{2, 'a', 'b'})}, source.Transient, source.ReasonContentMismatch, "a delta is malformed"},
		"InsertCut":         {[]entry{delta(uvarint(10), uvarint(5), []byte{5, 'a', 'b'})}, source.Transient, source.ReasonContentMismatch, "a delta is malformed"},
		"Reserved":          {[]entry{delta(uvarint(10), uvarint(5), []byte{0})}, source.Transient, source.ReasonContentMismatch, "a delta is malformed"},
		"SomethingFollows":  {[]entry{delta(uvarint(10), uvarint(1), []byte{1, 'a', 1, 'b'})}, source.Transient, source.ReasonContentMismatch, "a delta is malformed"},
		"EndsEarly":         {[]entry{delta(uvarint(10), uvarint(2), []byte{1, 'a'})}, source.Transient, source.ReasonContentMismatch, "a delta is malformed"},
		"HugeResult":        {[]entry{delta(uvarint(10), uvarint(1<<49), []byte{0x91, 0, 5})}, source.Terminal, source.ReasonLimitExceeded, "unpacked-bytes"},
		"AbsurdResult":      {[]entry{delta(uvarint(10), uvarint(1<<63), []byte{0x91, 0, 5})}, source.Transient, source.ReasonContentMismatch, "a delta is malformed"},
		"HugeClaim":         {[]entry{{kind: plumbing.BlobObject, data: []byte("x"), size: 1 << 45}}, source.Terminal, source.ReasonLimitExceeded, "unpacked-bytes"},
		"FalseClaim":        {[]entry{{kind: plumbing.BlobObject, data: []byte("x"), size: 100}}, source.Transient, source.ReasonContentMismatch, "has 1 bytes and should have 100"},
		"SmallClaim":        {[]entry{{kind: plumbing.BlobObject, data: zeros, size: 100}}, source.Transient, source.ReasonContentMismatch, "declared size"},
		"UnknownKind":       {[]entry{{kind: 5, data: []byte("x")}}, source.Transient, source.ReasonContentMismatch, "unknown type"},
		"TreeIsMissing":     {nil, source.Transient, source.ReasonContentMismatch, x.String() + " is not in it"},
	} {
		t.Run(name, func(t *testing.T) {
			more := append([]entry{base}, tc.more...)
			if tc.more == nil {
				more = nil
			}
			pack, commit := whole(tree, more...)
			server.Faults.Add(fault.Rule{Path: packs, Action: answer("result", banded(pack))})
			defer server.Faults.Clear()
			src := insecure(server, "app.git")
			src.Commit = commit
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := try(t, newStore(t), New(Options{}), src)
			runtime.ReadMemStats(&after)
			wantError(t, err, tc.kind, tc.reason, tc.want)
			if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
				t.Errorf("%d bytes were allocated", used)
			}
		})
	}
	for name, spoil := range map[string]func(pack []byte) []byte{
		"Checksum":   func(pack []byte) []byte { pack[len(pack)-1] ^= 1; return pack },
		"Version":    func(pack []byte) []byte { pack[7] = 3; return pack },
		"Signature":  func(pack []byte) []byte { pack[0] = 'p'; return pack },
		"MoreCount":  func(pack []byte) []byte { pack[11]++; return pack },
		"HugeCount":  func(pack []byte) []byte { pack[8] = 0xff; return pack },
		"OtherNames": func([]byte) []byte { return packOf(base) },
	} {
		t.Run(name, func(t *testing.T) {
			pack, commit := whole(tree, base)
			server.Faults.Add(fault.Rule{Path: packs, Action: answer("result", banded(spoil(pack)))})
			defer server.Faults.Clear()
			src := insecure(server, "app.git")
			src.Commit = commit
			_, err := try(t, newStore(t), New(Options{}), src)
			if name == "HugeCount" {
				wantError(t, err, source.Terminal, source.ReasonLimitExceeded, "more than 500000 objects")
				return
			}
			wantError(t, err, source.Transient, source.ReasonContentMismatch, "damaged")
		})
	}
}

func TestATreeThatMultipliesItselfIsStopped(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	gitserver.NewRepository(t, server.Root, "app.git")
	file := entry{kind: plumbing.BlobObject, data: []byte("x")}
	more := []entry{file}
	below, mode := named(plumbing.BlobObject, file.data), "100644"
	var tree []byte
	for range 12 {
		var entries []any
		for i := range 10 {
			entries = append(entries, fmt.Sprintf("%s f%d", mode, i), below)
		}
		tree = treeData(entries...)
		below, mode = named(plumbing.TreeObject, tree), "40000"
		more = append(more, entry{kind: plumbing.TreeObject, data: tree})
	}
	pack, commit := whole(tree, more...)
	server.Faults.Add(fault.Rule{Path: packs, Action: answer("result", banded(pack))})
	src := insecure(server, "app.git")
	src.Commit = commit
	_, err := try(t, newStore(t), New(Options{}), src)
	wantError(t, err, source.Terminal, source.ReasonLimitExceeded, "more than 100000 files")
}

func TestLimits(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	commit := repo.Commit(t, "main", map[string]string{"a": noise(5000), "b/c/d": "x", "e": strings.Repeat("e", 100_000)})
	src := insecure(server, "app.git")
	src.Commit = commit
	store := newStore(t)
	pinned, err := New(Options{}).At(src).Resolve(t.Context(), destination(t, store, unpack.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		for _, tc := range []struct {
			limits unpack.Limits
			want   string
		}{
			{unpack.Limits{Files: 2}, "--limit-files"},
			{unpack.Limits{UnpackedBytes: 50_000}, "--limit-unpacked-bytes"},
			{unpack.Limits{FileBytes: 50_000}, "--limit-file-bytes"},
			{unpack.Limits{CompressedBytes: 3000}, "--limit-compressed-bytes"},
			{unpack.Limits{PathDepth: 2}, "--limit-path-depth"},
			{unpack.Limits{PathBytes: 3}, "--limit-path-bytes"},
		} {
			if when == "after" && tc.limits.Files == 0 && tc.limits.UnpackedBytes == 0 {
				continue // such a layer was let in under other limits, as with other sources
			}
			_, err := tryPinned(t, store, New(Options{}), src, pinned, tc.limits)
			wantError(t, err, source.Terminal, source.ReasonLimitExceeded, tc.want)
		}
	}
	check("before")
	if _, err := try(t, store, New(Options{}), src); err != nil {
		t.Fatal(err)
	}
	check("after")
}

func TestMemoryDoesNotGrowWithTheSize(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	large := noise(6 << 20)
	repo.Commit(t, "main", map[string]string{"one": large, "two": large + "and more", "three": "before" + large})
	repo.Git(t, "repack", "-q", "-a", "-d", "-f")
	var before, after runtime.MemStats
	store := newStore(t)
	to := destination(t, store, unpack.Limits{})
	at := New(Options{}).At(insecure(server, "app.git"))
	pinned, err := at.Resolve(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&before)
	_, stats, err := at.Fetch(t.Context(), pinned, to)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if stats.Bytes > 8<<20 {
		t.Errorf("%d bytes: git has made no deltas", stats.Bytes)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 5<<20 {
		t.Errorf("%d bytes were allocated for 18 MiB", used)
	}
}

func FuzzPack(f *testing.F) {
	base := entry{kind: plumbing.BlobObject, data: []byte("0123456789")}
	x := named(plumbing.BlobObject, base.data)
	pack, _ := whole(treeData("100644 a", x, "120000 l", x), base,
		entry{kind: plumbing.REFDeltaObject, base: x[:], data: joinBytes(uvarint(10), uvarint(6), []byte{0x91, 2, 5, 1, 'z'})})
	f.Add(pack)
	f.Add(packOf(base, entry{kind: plumbing.OFSDeltaObject, base: offset(20), data: joinBytes(uvarint(10), uvarint(3), []byte{0x90, 3})}))
	f.Add([]byte("PACK"))
	store := newStore(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		to := destination(t, store, unpack.Limits{UnpackedBytes: 1 << 20, CompressedBytes: 1 << 20})
		defer to.Session.Close()
		objects := newObjects(to)
		defer objects.close()
		if err := objects.add(t.Context(), bytes.NewReader(data)); err != nil {
			return
		}
		for hash, at := range objects.places {
			opened, err := objects.open(hash)
			if err != nil {
				t.Fatalf("%s: %v", hash, err)
			}
			hasher := plumbing.NewHasher(at.kind, at.size)
			if n, err := io.Copy(hasher, opened); err != nil || n != at.size || hasher.Sum() != hash {
				t.Fatalf("%s at %+v gives %d bytes that are %s: %v", hash, at, n, hasher.Sum(), err)
			}
			_ = opened.Close()
		}
	})
}
