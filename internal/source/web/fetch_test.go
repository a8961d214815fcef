// SPDX-License-Identifier: Apache-2.0

package web

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/webserver"
	"rukpak.io/rukpak/internal/unpack"
)

func zipOf(t testing.TB, pairs ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		file, err := w.Create(pairs[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(file, pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWhatIsAtAURLBecomesContent(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	archive := tarOf(t, "app/a.yaml", "a", "app/b@", "a.yaml", "README", "r")
	all := map[string]string{"app/a.yaml": "a", "app/b": "-> a.yaml", "README": "r"}
	for name, tc := range map[string]struct {
		path string
		data []byte
		form Form
		want map[string]string
	}{
		"Tar":           {"/x", archive, Form{}, all},
		"TarGzip":       {"/x.tgz", gzipped(t, archive), Form{}, all},
		"TarZstd":       {"/x.tar.zst", zstded(t, archive), Form{}, all},
		"Zip":           {"/x.zip", zipOf(t, "a.yaml", "a"), Form{}, map[string]string{"a.yaml": "a"}},
		"Manifest":      {"/deploy/app.yaml", []byte("kind: A\n"), Form{}, map[string]string{"app.yaml": "kind: A\n"}},
		"Query":         {"/app.yaml?raw=1", []byte("kind: A\n"), Form{}, map[string]string{"app.yaml": "kind: A\n"}},
		"NoName":        {"/", []byte("kind: A\n"), Form{}, map[string]string{"content": "kind: A\n"}},
		"GivenName":     {"/download", []byte("kind: A\n"), Form{Name: "deploy/app.yaml"}, map[string]string{"deploy/app.yaml": "kind: A\n"}},
		"Whole":         {"/x.tgz", gzipped(t, archive), Form{Whole: true}, map[string]string{"x.tgz": string(gzipped(t, archive))}},
		"CompressedOne": {"/app.yaml.gz", gzipped(t, []byte("kind: A\n")), Form{MediaType: "application/gzip"}, map[string]string{"app.yaml": "kind: A\n"}},
		"MediaType":     {"/x", archive, Form{MediaType: "text/plain"}, map[string]string{"x": string(archive)}},
		"Below":         {"/x", archive, Form{Below: "app"}, map[string]string{"a.yaml": "a", "b": "-> a.yaml"}},
		"HardLinkOut": {"/x", tarOf(t, "lib/a", "A", "lib/b&", "lib/a", "app/c&", "lib/b", "app/d&", "app/c"), Form{Below: "app"},
			map[string]string{"c": "A", "d": "A"}},
		"LinkBesideBelow": {"/x", tarOf(t, "other/bad@", "../README", "app/a", "A", "README", "r"), Form{Below: "app"}, map[string]string{"a": "A"}},
	} {
		t.Run(name, func(t *testing.T) {
			path, _, _ := strings.Cut(tc.path, "?")
			server.Put(path, tc.data)
			for _, pinned := range []bool{false, true} {
				server.ForgetRequests()
				src := Source{URL: server.URL(tc.path), Insecure: true, Form: tc.form}
				if pinned {
					src.Digest = digestOf(tc.data)
				}
				got, err := get(t, New(NewClient(Options{})), src, newStore(t), unpack.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, got.files); diff != "" {
					t.Errorf("files (-want +got):\n%s", diff)
				}
				want := source.Pinned{Ref: server.URL(path) + "@" + digestOf(tc.data).String(), Digest: digestOf(tc.data)}
				if got.pinned != want {
					t.Errorf("pinned %+v, want %+v", got.pinned, want)
				}
				if got.stats != (source.Stats{Layers: 1, Fetched: 1, Bytes: int64(len(tc.data))}) || len(server.Requests()) != 1 {
					t.Errorf("stats %+v, %d requests, want the bytes once", got.stats, len(server.Requests()))
				}
			}
		})
	}
}

func TestContentThatTheStoreHasIsNotFetched(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	data := tarOf(t, "a", "x")
	src := Source{URL: server.Put("/a.tar", data), Insecure: true, Digest: digestOf(data)}
	store, fetcher := newStore(t), New(NewClient(Options{}))
	for i := range 3 {
		got, err := get(t, fetcher, src, store, unpack.Limits{})
		if err != nil || got.files["a"] != "x" || got.stats.Fetched != map[bool]int{true: 1}[i == 0] {
			t.Errorf("%d: %+v, %v", i, got, err)
		}
	}
	if n := len(server.Requests()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestLookingAgainAtAnUnchangedURLCostsOneConditionalRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		options webserver.Options
		status  int // that the second look may rest on
	}{
		"Strong": {webserver.Options{}, 304},
		"Weak":   {webserver.Options{WeakETags: true}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			server := webserver.New(t, tc.options)
			src := Source{URL: server.Put("/a", []byte("1")), Insecure: true}
			store, fetcher := newStore(t), New(NewClient(Options{}))
			first, err := get(t, fetcher, src, store, unpack.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			server.ForgetRequests()
			second, err := get(t, fetcher, src, store, unpack.Limits{})
			if err != nil || second.pinned != first.pinned {
				t.Fatalf("%+v, %v", second, err)
			}
			requests := server.Requests()
			if len(requests) != 1 || (requests[0].Header.Get("If-None-Match") != "") != (tc.status == 304) || second.stats.Fetched != 0 {
				t.Errorf("%+v, stats %+v", requests, second.stats)
			}
			server.Put("/a", []byte("2"))
			third, err := get(t, fetcher, src, store, unpack.Limits{})
			if err != nil || third.files["a"] != "2" {
				t.Errorf("after a change: %+v, %v", third, err)
			}
			other := src
			other.Credentials.Token = "another"
			server.ForgetRequests()
			if _, err := get(t, fetcher, other, store, unpack.Limits{}); err != nil || server.Requests()[0].Header.Get("If-None-Match") != "" {
				t.Errorf("what one was given is taken for what another may see: %v", err)
			}
		})
	}
}

func TestWhatIsLostIsFetchedAgainAndMustBeTheSame(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	src := Source{URL: server.Put("/a", []byte("1")), Insecure: true}
	fetcher := New(NewClient(Options{}))
	first, err := get(t, fetcher, src, newStore(t), unpack.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	to := begin(t, newStore(t), unpack.Limits{}) // an empty store
	if _, stats, err := fetcher.At(src).Fetch(t.Context(), first.pinned, to); err != nil || stats.Bytes != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
	server.Put("/a", []byte("2"))
	to = begin(t, newStore(t), unpack.Limits{})
	_, _, err = fetcher.At(src).Fetch(t.Context(), first.pinned, to)
	if source.ReasonOf(err) != source.ReasonContentMismatch || source.KindOf(err) != source.Waiting || !strings.Contains(err.Error(), "make a new Bundle") {
		t.Errorf("got %v", err)
	}
}

func TestWrongContentIsRefused(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	good := tarOf(t, "app/a", strings.Repeat("x", 1000))
	for name, tc := range map[string]struct {
		data   []byte
		src    Source
		limits unpack.Limits
		reason string
		kind   source.Kind
		want   string
	}{
		"Checksum":  {good, Source{Digest: digestOf([]byte("other"))}, unpack.Limits{}, source.ReasonContentMismatch, source.Waiting, "the source asks for " + digestOf([]byte("other")).String()},
		"Empty":     {nil, Source{}, unpack.Limits{}, source.ReasonEmptyContent, source.Waiting, "not a byte"},
		"Huge":      {good, Source{}, unpack.Limits{CompressedBytes: 100}, source.ReasonLimitExceeded, source.Terminal, "--limit-compressed-bytes"},
		"Bomb":      {gzipped(t, make([]byte, 64<<20)), Source{Form: Form{MediaType: "application/x-tar+gzip"}}, unpack.Limits{UnpackedBytes: 1 << 20}, source.ReasonLimitExceeded, source.Terminal, "--limit-unpacked-bytes"},
		"Unsafe":    {tarOf(t, "../a", "x"), Source{}, unpack.Limits{}, source.ReasonUnsafeContent, source.Terminal, `entry "../a"`},
		"NoFolder":  {good, Source{Form: Form{Below: "ap"}}, unpack.Limits{}, source.ReasonInvalidReference, source.Terminal, `subPath "ap" cannot be the content: the archive has no such folder, or nothing in it`},
		"NoArchive": {[]byte("text"), Source{Form: Form{Below: "app"}}, unpack.Limits{}, source.ReasonInvalidReference, source.Terminal, "it is one file"},
		"LinkOut":   {tarOf(t, "app/l@", "../README", "README", "r"), Source{Form: Form{Below: "app"}}, unpack.Limits{}, source.ReasonUnsafeContent, source.Terminal, `entry "app/l"`},
		"Name":      {good, Source{Form: Form{Name: "../a", Whole: true}}, unpack.Limits{}, source.ReasonUnsafeContent, source.Terminal, `entry "../a"`},
		"FileName":  {[]byte("text"), Source{Form: Form{Name: "/a"}}, unpack.Limits{}, source.ReasonUnsafeContent, source.Terminal, `entry "/a"`},
		"NotGzip":   {good, Source{Form: Form{MediaType: "application/x-tar+gzip"}}, unpack.Limits{}, source.ReasonUnsafeContent, source.Terminal, "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.src.URL, tc.src.Insecure = server.Put("/"+name, tc.data)+"?signature=hunter2", true
			_, err := get(t, New(NewClient(Options{})), tc.src, newStore(t), tc.limits)
			if source.ReasonOf(err) != tc.reason || source.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %s, %s: %v", source.KindOf(err), source.ReasonOf(err), err)
			}
			if strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "http") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error must be one line that names the source without its query: %v", err)
			}
		})
	}
}

func TestAnAnnouncedHugeFileIsNotRead(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	src := Source{URL: server.Put("/huge", make([]byte, 8<<20)), Insecure: true}
	server.Faults.Add(fault.Rule{Action: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Content-Length", "8388608")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // whoever reads on hangs
	}})
	_, err := get(t, New(NewClient(Options{})), src, newStore(t), unpack.Limits{CompressedBytes: 1 << 20})
	if source.ReasonOf(err) != source.ReasonLimitExceeded {
		t.Errorf("got %v", err)
	}
}

func TestBadURLsAreTerminal(t *testing.T) {
	for url, want := range map[string]string{
		"":                               "must be like https://host/path",
		"https://":                       "must be like https://host/path",
		"example.com/a":                  "must be like https://host/path",
		"https:example.com":              "must be like https://host/path",
		"http://example.com/a":           "set insecure",
		"ftp://example.com/a":            `scheme "ftp"`,
		"file://host/etc/passwd":         `scheme "file"`,
		"https://user:hunter2@example/a": "put them into a Secret",
		"https://exa mple/hunter2":       "does not parse",
		"https://example.com/\n?hunter2": "does not parse",
	} {
		_, err := New(NewClient(Options{})).At(Source{URL: url}).Resolve(t.Context(), source.Destination{})
		if source.ReasonOf(err) != source.ReasonInvalidReference || source.KindOf(err) != source.Terminal || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestOneSourceServesSeveralAtOnce(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	opened := New(NewClient(Options{})).At(Source{URL: server.Put("/a.tar", tarOf(t, "a", "x")), Insecure: true})
	store := newStore(t)
	var all sync.WaitGroup
	for range 8 {
		to := begin(t, store, unpack.Limits{})
		all.Go(func() {
			pinned, err := opened.Resolve(t.Context(), to)
			if err != nil {
				t.Error(err)
				return
			}
			if layers, _, err := opened.Fetch(t.Context(), pinned, to); err != nil || len(layers) != 1 {
				t.Errorf("%d layers, %v", len(layers), err)
			}
		})
	}
	all.Wait()
}
