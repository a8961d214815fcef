// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/internal/content/folder"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/upload"
	"rukpak.io/rukpak/internal/unpack"
)

var dir = fstest.MapFS{
	"app.yaml":    {Data: []byte("kind: ConfigMap\n")},
	"bin/run":     {Data: []byte("#!/bin/sh\n"), Mode: 0o755},
	"bin/sub/two": {Data: []byte("2")},
}

func packed(t *testing.T, compress func(io.Writer) io.WriteCloser) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := compress(&out)
	if _, err := folder.Pack(t.Context(), dir, writer); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }

func uploadsPath(namespace string) string {
	return "/apis/content.rukpak.io/v1alpha1/namespaces/" + namespace + "/uploads"
}

func (h *harness) upload(t *testing.T, who as, namespace, kind string, body io.Reader) answer {
	t.Helper()
	who.method, who.headers, who.body = http.MethodPost, map[string]string{"Content-Type": kind}, body
	return h.ask(t, who, uploadsPath(namespace))
}

func TestUploadedFilesAreWhatABundleCanName(t *testing.T) {
	h := start(t)
	namespace, elsewhere := h.env.NewNamespace(t), h.env.NewNamespace(t)
	wanted, err := folder.Digest(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for kind, compress := range map[string]func(io.Writer) io.WriteCloser{
		"application/x-tar": func(w io.Writer) io.WriteCloser { return plain{w} },
		"application/gzip":  func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"application/zstd": func(w io.Writer) io.WriteCloser {
			z, _ := zstd.NewWriter(w)
			return z
		},
	} {
		got := h.upload(t, as{}, namespace, kind, bytes.NewReader(packed(t, compress)))
		want(t, got, http.StatusCreated, `"kind":"Upload"`)
		var done contentv1.Upload
		if err := json.Unmarshal(got.body, &done); err != nil {
			t.Fatal(err)
		}
		if done.Digest != wanted.String() || done.Files != 3 || done.Bytes != 27 {
			t.Errorf("%s: %+v, want digest %s", kind, done, wanted)
		}
	}
	if _, err := h.store.Collect(t.Context(), func(digest.Digest) bool { return false }); err != nil {
		t.Fatal(err)
	}
	session, err := h.store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	to := source.Destination{Session: session, Budget: unpack.NewBudget(unpack.Limits{})}
	mine := upload.Source{Field: "spec.sources[0]", Namespace: namespace, Digest: wanted}
	pinned, err := mine.Resolve(t.Context(), to)
	if err != nil {
		t.Fatalf("within its grace time: %v", err)
	}
	layers, _, err := mine.Fetch(t.Context(), pinned, to)
	if err != nil || len(layers) != 1 {
		t.Fatalf("%v: %d layers", err, len(layers))
	}
	if tree, err := session.PutTree(layers); err != nil || tree.Digest != wanted {
		t.Errorf("%v: the content is %s, not %s", err, tree.Digest, wanted)
	}
	// Who knows the digest in another namespace gets nothing by it.
	theirs := upload.Source{Field: "spec.sources[0]", Namespace: elsewhere, Digest: wanted}
	if _, err := theirs.Resolve(t.Context(), to); source.ReasonOf(err) != source.ReasonNotFound || !strings.Contains(err.Error(), "upload the files again") {
		t.Errorf("in another namespace: %v", err)
	}
	if _, _, err := theirs.Fetch(t.Context(), pinned, to); source.ReasonOf(err) != source.ReasonNotFound {
		t.Errorf("pinned in another namespace: %v", err)
	}
}

func TestUploadsThatCannotBeContentAreRefused(t *testing.T) {
	h := start(t)
	namespace := h.env.NewNamespace(t)
	archive := func(headers ...tar.Header) io.Reader {
		var out bytes.Buffer
		writer := tar.NewWriter(&out)
		for i := range headers {
			if err := errors.Join(writer.WriteHeader(&headers[i])); err != nil {
				t.Fatal(err)
			}
		}
		_ = writer.Close()
		return &out
	}
	whole := packed(t, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	noise := make([]byte, 2*uploadLimit)
	_, _ = rand.Read(noise)
	for name, test := range map[string]struct {
		kind   string
		body   io.Reader
		status int
		text   string
	}{
		"a zip":              {"application/zip", strings.NewReader("PK"), 400, `must be application/x-tar`},
		"no archive":         {"application/gzip", strings.NewReader("hello"), 400, "the upload is not taken"},
		"half of one":        {"application/gzip", bytes.NewReader(whole[:len(whole)/2]), 400, "the upload is not taken"},
		"nothing":            {"application/x-tar", archive(), 400, "there is no file in it"},
		"only folders":       {"application/x-tar", archive(tar.Header{Name: "a/", Typeflag: tar.TypeDir}), 400, "there is no file in it"},
		"a name above":       {"application/x-tar", archive(tar.Header{Name: "../a", Typeflag: tar.TypeReg}), 400, ".."},
		"a link out":         {"application/x-tar", archive(tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), 400, "the link leaves the tree"},
		"more than is taken": {"application/x-tar", bytes.NewReader(noise), 413, "limit-compressed-bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			want(t, h.upload(t, as{}, namespace, test.kind, test.body), test.status, test.text)
		})
	}
}

func TestUploadingTakesARightOfItsOwn(t *testing.T) {
	h := start(t)
	namespace := h.env.NewNamespace(t)
	body := packed(t, func(w io.Writer) io.WriteCloser { return plain{w} })
	ann := as{user: "ann-" + namespace}
	h.grant(t, namespace, ann.user, "get", "uploads")
	want(t, h.upload(t, ann, namespace, "application/x-tar", bytes.NewReader(body)), http.StatusForbidden, "forbidden")
	h.grant(t, namespace, ann.user, "create", "uploads")
	for range 100 {
		if got := h.upload(t, ann, namespace, "application/x-tar", bytes.NewReader(body)); got.status == http.StatusCreated {
			return
		}
	}
	want(t, h.upload(t, ann, namespace, "application/x-tar", bytes.NewReader(body)), http.StatusCreated, "sha256:")
}
