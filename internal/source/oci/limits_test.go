// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
	"rukpak.io/rukpak/internal/unpack"
)

func TestEmptyContentIsAnError(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	for name, image := range map[string]v1.Image{
		"NoLayers":   imageOf(t),
		"EmptyLayer": imageOf(t, part(tarOf(t), types.OCIUncompressedLayer)),
		"EmptyJSON":  imageOf(t, part([]byte("{}"), unpack.MediaTypeEmpty)),
		"Removed":    imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer), part(tarOf(t, ".wh.a", ""), types.OCIUncompressedLayer)),
	} {
		t.Run(name, func(t *testing.T) {
			ref := push(t, registry, "empty:"+name, image)
			_, _, err := fetchAll(t, New(newStore(t), Options{}), Source{Ref: ref, Insecure: true})
			if source.ReasonOf(err) != source.ReasonEmptyContent || source.KindOf(err) != source.Terminal {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestUnsafeAndTooLargeContentIsTerminal(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	for name, tc := range map[string]struct {
		image  v1.Image
		limits unpack.Limits
		reason string
		want   string
	}{
		"DotDot": {imageOf(t, part(tarOf(t, "../evil", "x"), types.OCIUncompressedLayer)), unpack.Limits{}, source.ReasonUnsafeContent, `entry "../evil"`},
		"ThroughALink": {imageOf(t, part(tarOf(t, "a@", "b"), types.OCIUncompressedLayer), part(tarOf(t, "a/x", "x"), types.OCIUncompressedLayer)),
			unpack.Limits{}, source.ReasonUnsafeContent, `entry "a/x": it would be written through the link "a" -> "b"`},
		"NotGzip":    {imageOf(t, part(tarOf(t, "a", "x"), types.OCILayer)), unpack.Limits{}, source.ReasonUnsafeContent, "invalid header"},
		"Title":      {imageOf(t, part([]byte("x"), types.OCILayer, unpack.AnnotationTitle, "../x")), unpack.Limits{}, source.ReasonUnsafeContent, "title"},
		"Compressed": {imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer)), unpack.Limits{CompressedBytes: 100}, source.ReasonLimitExceeded, "--limit-compressed-bytes"},
		"Layers": {imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer), part(tarOf(t, "b", "x"), types.OCIUncompressedLayer)),
			unpack.Limits{Layers: 1}, source.ReasonLimitExceeded, "--limit-layers"},
		"Files": {imageOf(t, part(tarOf(t, "a", "x", "b", "x"), types.OCIUncompressedLayer)), unpack.Limits{Files: 1}, source.ReasonLimitExceeded, "--limit-files"},
	} {
		t.Run(name, func(t *testing.T) {
			ref := push(t, registry, "bad:"+name, tc.image)
			registry.ForgetRequests()
			_, _, err := fetchAll(t, New(newStore(t), Options{Limits: tc.limits}), Source{Ref: ref, Insecure: true})
			if source.ReasonOf(err) != tc.reason || source.KindOf(err) != source.Terminal || !strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(err.Error(), registry.Host()+"/bad") {
				t.Errorf("got %s: %v", source.ReasonOf(err), err)
			}
			if name == "Compressed" && len(blobGets(registry)) != 0 {
				t.Error("a blob was fetched although the manifest says that it is too large")
			}
		})
	}
}

func TestHardLinksDoNotMultiplyFilesPastTheLimit(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	text := strings.Repeat("x", 1000)
	if err := w.WriteHeader(&tar.Header{Name: "a", Size: int64(len(text)), Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: "l" + strings.Repeat("x", i), Linkname: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ref := push(t, registry, "links:1", imageOf(t, part(b.Bytes(), types.OCIUncompressedLayer)))
	fetcher := New(newStore(t), Options{Limits: unpack.Limits{UnpackedBytes: 60_000}})
	for range 2 { // the second time the store has the tree
		if _, _, err := fetchAll(t, fetcher, Source{Ref: ref, Insecure: true}); source.ReasonOf(err) != source.ReasonLimitExceeded {
			t.Errorf("got %v", err)
		}
	}
}

func TestLimitsCountWhatTheStoreHas(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	store := newStore(t)
	base := part(tarOf(t, "a", "x", "b", "x"), types.OCIUncompressedLayer)
	ref := push(t, registry, "base:1", imageOf(t, base))
	if _, _, err := fetchAll(t, New(store, Options{}), Source{Ref: ref, Insecure: true}); err != nil {
		t.Fatal(err)
	}
	ref = push(t, registry, "more:1", imageOf(t, base, part(tarOf(t, "c", "x", "d", "x"), types.OCIUncompressedLayer)))
	_, _, err := fetchAll(t, New(store, Options{Limits: unpack.Limits{Files: 3}}), Source{Ref: ref, Insecure: true})
	if source.ReasonOf(err) != source.ReasonLimitExceeded {
		t.Errorf("got %v", err)
	}
}
