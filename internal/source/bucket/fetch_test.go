// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/web"
	"rukpak.io/rukpak/internal/testenv/s3server"
	"rukpak.io/rukpak/internal/unpack"
)

func tarOf(t testing.TB, pairs ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: pairs[i], Size: int64(len(pairs[i+1])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRealFilesComeFromAFolderOfABucket(t *testing.T) {
	root := os.Getenv("RUKPAK_SHARED_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	from := os.DirFS(filepath.Join(root, "addons", "coredns", "channels", "packages", "coredns"))
	if _, err := fs.Stat(from, "."); err != nil {
		t.Skipf("SKIPPED: no real inputs: %v; set RUKPAK_SHARED_DATA", err)
	}
	for name, options := range map[string]s3server.Options{"HTTP": {}, "HTTPS": {TLS: true}} {
		t.Run(name, func(t *testing.T) {
			server := s3server.New(t, options)
			bucket := server.Bucket(t, "addons", false)
			want := map[string]string{}
			err := fs.WalkDir(from, ".", func(path string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				data, err := fs.ReadFile(from, path)
				bucket.Put(t, "coredns/"+path, data)
				want[path] = string(data)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			bucket.Put(t, "coredns-old/a", []byte("beside"))
			src := of(server, "addons")
			src.Prefix, src.Insecure = "coredns", !options.TLS
			store, fetcher := newStore(t), New(Options{})
			first, err := get(t, fetcher, src, store, unpack.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, first.files); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if wanted := server.Endpoint() + "/addons/coredns@" + first.pinned.Digest.String(); first.pinned.Ref != wanted {
				t.Errorf("ref %q, want %q", first.pinned.Ref, wanted)
			}
			server.ForgetRequests()
			second, err := get(t, fetcher, src, store, unpack.Limits{})
			if err != nil || second.pinned != first.pinned || second.stats.Fetched != 0 || len(server.Requests()) != 1 {
				t.Errorf("looking again: %+v, %d requests, %v", second.stats, len(server.Requests()), err)
			}
		})
	}
}

func TestOneObjectIsAnArchiveOrAFile(t *testing.T) {
	server := s3server.New(t, s3server.Options{})
	bucket := server.Bucket(t, "things", false)
	archive := tarOf(t, "app/a", "A", "README", "r")
	bucket.Put(t, "archives/app.tar", archive)
	bucket.Put(t, "app.yaml", []byte("kind: A\n"))
	for name, tc := range map[string]struct {
		object string
		form   web.Form
		want   map[string]string
	}{
		"Archive": {"archives/app.tar", web.Form{}, map[string]string{"app/a": "A", "README": "r"}},
		"Below":   {"archives/app.tar", web.Form{Below: "app"}, map[string]string{"a": "A"}},
		"Whole":   {"archives/app.tar", web.Form{Whole: true}, map[string]string{"app.tar": string(archive)}},
		"File":    {"app.yaml", web.Form{}, map[string]string{"app.yaml": "kind: A\n"}},
		"Named":   {"app.yaml", web.Form{Name: "deploy/b.yaml"}, map[string]string{"deploy/b.yaml": "kind: A\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			src := of(server, "things")
			src.Object, src.Form = tc.object, tc.form
			store := newStore(t)
			for i := range 2 {
				got, err := get(t, New(Options{}), src, store, unpack.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, got.files); diff != "" {
					t.Errorf("files (-want +got):\n%s", diff)
				}
				if (got.stats.Fetched == 1) != (i == 0) {
					t.Errorf("%d: %+v", i, got.stats)
				}
			}
		})
	}
}

func TestAFolderThatIsNotInTheArchiveIsFinal(t *testing.T) {
	server := s3server.New(t, s3server.Options{})
	bucket := server.Bucket(t, "things", false)
	bucket.Put(t, "app.tar", tarOf(t, "app/a", "A"))
	src := of(server, "things")
	src.Object, src.Form = "app.tar", web.Form{Below: "ap"}
	_, err := get(t, New(Options{}), src, newStore(t), unpack.Limits{})
	if source.KindOf(err) != source.Terminal || source.ReasonOf(err) != source.ReasonInvalidReference || !strings.Contains(err.Error(), `app.tar: subPath "ap" cannot be the content`) {
		t.Errorf("got %v", err)
	}
}

func TestAVersionOfAnObjectStays(t *testing.T) {
	server := s3server.New(t, s3server.Options{})
	bucket := server.Bucket(t, "things", true)
	first := bucket.Put(t, "a", []byte("1"))
	bucket.Put(t, "a", []byte("2"))
	src := of(server, "things")
	src.Object = "a"
	now, err := get(t, New(Options{}), src, newStore(t), unpack.Limits{})
	if err != nil || now.files["a"] != "2" || now.pinned.Version == "" || now.pinned.Version == first {
		t.Errorf("the present one: %+v, %v", now, err)
	}
	src.VersionID = first
	before, err := get(t, New(Options{}), src, newStore(t), unpack.Limits{})
	if err != nil || before.files["a"] != "1" || before.pinned.Version != first {
		t.Errorf("the first one: %+v, %v", before, err)
	}
	bucket.Remove(t, "a")
	if again, err := get(t, New(Options{}), src, newStore(t), unpack.Limits{}); err != nil || again.pinned != before.pinned {
		t.Errorf("after it was removed: %+v, %v", again, err)
	}
	src.VersionID = ""
	if _, err := get(t, New(Options{}), src, newStore(t), unpack.Limits{}); source.ReasonOf(err) != source.ReasonNotFound {
		t.Errorf("the present one, after it was removed: %v", err)
	}
	src.VersionID = "0123456789"
	if _, err := get(t, New(Options{}), src, newStore(t), unpack.Limits{}); err == nil {
		t.Error("a version that never was is found")
	}
}

func TestAFolderOfManyObjectsIsListedInPages(t *testing.T) {
	server := s3server.New(t, s3server.Options{})
	bucket := server.Bucket(t, "many", false)
	want := map[string]string{}
	for i := range 1100 {
		name := fmt.Sprintf("d%d/f%d", i%7, i)
		bucket.Put(t, name, []byte(name))
		want[name] = name
	}
	server.ForgetRequests()
	got, err := get(t, New(Options{}), of(server, "many"), newStore(t), unpack.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	pages := 0
	for _, r := range server.Requests() {
		if strings.Contains(r.Path, "list-type=2") {
			pages++
		}
	}
	if pages != 2 {
		t.Errorf("%d pages", pages)
	}
}

func TestListingsThatAreNoTreeAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []object
		want    string
	}{
		"DotDot":     {[]object{{path: "../a", key: "x/../a"}}, `entry "x/../a"`},
		"TwoSlashes": {[]object{{path: "a//b", key: "a//b"}}, `entry "a//b"`},
		"Absolute":   {[]object{{path: "/a", key: "x//a"}}, `entry "x//a"`},
		"Control":    {[]object{{path: "a\nb", key: "a\nb"}}, "control character"},
		"Folder":     {[]object{{path: "a/b", key: "a/b"}, {path: "a", key: "a"}}, `there is also an object "a"`},
		"Twice":      {[]object{{path: "a", key: "a"}, {path: "a", key: "a"}}, "twice"},
		"LongKey":    {[]object{{path: strings.Repeat("../", 1000), key: strings.Repeat("../", 1000)}}, "..."},
	} {
		if _, err := newListing(tc.objects); err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 600 {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDigestsOfListingsTellAllApart(t *testing.T) {
	base := object{path: "a", key: "p/a", size: 1, etag: "e", version: "v"}
	seen := map[string]string{}
	for name, l := range map[string]listing{
		"Base": {base}, "Path": {{"b", "p/a", 1, "e", "v"}}, "Size": {{"a", "p/a", 2, "e", "v"}}, "ETag": {{"a", "p/a", 1, "f", "v"}},
		"Version": {{"a", "p/a", 1, "e", "w"}}, "Two": {base, {"b", "p/b", 1, "e", "v"}}, "Fields": {{"a", "p/a", 1, "e v", ""}}, "None": {},
	} {
		if other, ok := seen[l.digest().String()]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[l.digest().String()] = name
	}
	if (listing{base}).digest() != (listing{{"a", "another/a", 1, "e", "v"}}).digest() {
		t.Error("the digest depends on where the folder stands")
	}
}

func FuzzListing(f *testing.F) {
	f.Add("a", "a/b", "e")
	f.Add("../x", "", "\x00")
	f.Fuzz(func(t *testing.T, one, two, etag string) {
		l, err := newListing([]object{{path: one, key: one, etag: etag}, {path: two, key: two}})
		if err != nil {
			return
		}
		var entries []content.Entry
		for i := range l {
			entries = append(entries, content.Entry{Path: l[i].path, Kind: content.File})
		}
		if _, err := content.Overlay([]content.Layer{{Entries: entries}}); err != nil {
			t.Errorf("%q and %q pass, and are no tree: %v", one, two, err)
		}
	})
}
