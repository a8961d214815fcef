// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"bytes"
	"net/http"
	"testing"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/unpack"
)

// unpacked gives the tree of an archive.
func (h *harness) unpacked(t *testing.T, archive []byte, format unpack.Format) content.Tree {
	t.Helper()
	session, err := h.store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	layer, err := unpack.Layer(t.Context(), unpack.Packed{}, format, bytes.NewReader(archive), session, unpack.NewBudget(unpack.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := content.Overlay([]content.Layer{layer})
	if err != nil {
		t.Fatal(err)
	}
	return content.Tree{Digest: content.DigestOf(entries)}
}

func TestAnArchiveHoldsTheVeryContentAndIsAlwaysTheSame(t *testing.T) {
	h := start(t)
	namespace := h.env.NewNamespace(t)
	tree := h.put(t, sample)
	h.bundle(t, namespace, "web", tree)
	h.bundle(t, namespace, "again", tree)
	for format, how := range map[string]unpack.Format{"tar": {}, "tar.gz": {Compression: unpack.Gzip}} {
		first := h.ask(t, as{headers: map[string]string{"Accept-Encoding": "identity"}}, bundlePath(namespace, "web/archive?format="+format))
		if first.status != http.StatusOK {
			t.Fatalf("status %d: %s", first.status, first.body)
		}
		if got := h.unpacked(t, first.body, how); got.Digest != tree.Digest {
			t.Errorf("%s: the archive holds %s, not %s", format, got.Digest, tree.Digest)
		}
		again := h.ask(t, as{headers: map[string]string{"Accept-Encoding": "identity"}}, bundlePath(namespace, "again/archive?format="+format))
		if !bytes.Equal(first.body, again.body) || first.header.Get("ETag") != again.header.Get("ETag") {
			t.Errorf("%s: the same content gives two archives", format)
		}
		unchanged := h.ask(t, as{headers: map[string]string{"If-None-Match": first.header.Get("ETag")}}, bundlePath(namespace, "web/archive?format="+format))
		if unchanged.status != http.StatusNotModified {
			t.Errorf("who has it gets status %d", unchanged.status)
		}
	}
	part := h.ask(t, as{headers: map[string]string{"Accept-Encoding": "identity"}}, bundlePath(namespace, "web/archive?format=tar&path=deploy"))
	wanted := h.put(t, map[string]string{"app.yaml": sample["deploy/app.yaml"], "run.sh*": sample["deploy/run.sh*"], "sub/deep": sample["deploy/sub/deep"]})
	if got := h.unpacked(t, part.body, unpack.Format{}); got.Digest != wanted.Digest {
		t.Errorf("the archive of a folder holds %s, not %s", got.Digest, wanted.Digest)
	}
}
