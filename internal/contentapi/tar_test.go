// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/provisioner"
)

var tarTree = fstest.MapFS{
	"a.txt": {Data: []byte("A")}, "empty": {}, "bin/run": {Data: bytes.Repeat([]byte("R"), 1500), Mode: 0o755},
	"bin/" + strings.Repeat("long", 60): {Data: bytes.Repeat([]byte("L"), 512)},
}

func TestAnArchiveFromAnyByteOnIsTheRestOfTheWhole(t *testing.T) {
	var whole bytes.Buffer
	if err := writeArchive(t.Context(), &whole, tarTree, ".", false); err != nil {
		t.Fatal(err)
	}
	ranged := &tarRange{ctx: t.Context(), tree: tarTree}
	for from := range int64(whole.Len() + 1) {
		var rest bytes.Buffer
		if size, err := ranged.write(&rest, from); err != nil || size != int64(whole.Len()) || !bytes.Equal(rest.Bytes(), whole.Bytes()[from:]) {
			t.Fatalf("from %d: %d bytes of %d, want the last %d; %v", from, rest.Len(), size, int64(whole.Len())-from, err)
		}
	}
}

// cutting is a slow reader as the worker sees it: the API server ends each of its downloads, whatever has yet to come.
type cutting struct {
	http.RoundTripper
	after    int64
	requests atomic.Int32
	ignored  atomic.Int32
}

func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/content") {
		return response, err
	}
	if c.requests.Add(1) > 1 && response.StatusCode != http.StatusPartialContent {
		c.ignored.Add(1)
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(response.Body, c.after), broken{}), response.Body}
	return response, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestADownloadOfAWorkerGoesOnWhereItBrokeOff(t *testing.T) {
	h := start(t)
	const id = "slow.example.com"
	config := h.worker(t, id)
	cut := &cutting{after: 100 << 10}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { cut.RoundTripper = next; return cut })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- provisioner.Serve(ctx, config, dumper{id}, provisioner.ServeOptions{Dir: t.TempDir()})
	}()
	files := map[string]string{"a.txt": strings.Repeat("0123456789", 15<<10), "b/c.txt": strings.Repeat("abc", 20<<10), "z": "Z"}
	content, err := h.store.Open(t.Context(), h.put(t, files).Digest)
	if err != nil {
		t.Fatal(err)
	}
	result, err := h.rendered(t, id, provisioner.Request{Instance: types.NamespacedName{Namespace: "team", Name: "slow"}, Content: content})
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(result.Phases[0].Objects[0].Object, "data")
	for name, text := range files {
		if got := data[strings.ReplaceAll(name, "/", ".")]; !strings.HasSuffix(got, " "+text) {
			t.Errorf("%s has %d bytes, or others, want %d", name, len(got), len(text))
		}
	}
	if cut.requests.Load() < 3 || cut.ignored.Load() > 0 {
		t.Errorf("%d requests, of which %d got the whole again", cut.requests.Load(), cut.ignored.Load())
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
