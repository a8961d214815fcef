// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/unpack"
)

// wellSaid holds an error to what conditions need: one line of bounded length.
func wellSaid(t *testing.T, err error) {
	t.Helper()
	if judged, ok := err.(*source.Error); ok && (strings.ContainsAny(judged.Error(), "\n\r") || len(judged.Error()) > 2000) { //nolint:errorlint // it is never wrapped
		t.Errorf("the error is not one short line: %q", judged)
	}
}

// Manifests and indexes are what anybody pushed.
func FuzzDocument(f *testing.F) {
	sum := "sha256:" + strings.Repeat("0", 64)
	for _, seed := range []string{
		`{"mediaType":"` + specs.MediaTypeImageManifest + `","config":{"digest":"` + sum + `"},"layers":[{"digest":"` + sum + `","size":3,"mediaType":"application/x-tar","annotations":{"org.opencontainers.image.title":"a/b"}}]}`,
		`{"mediaType":"` + specs.MediaTypeImageIndex + `","manifests":[{"digest":"` + sum + `","platform":{"os":"linux","architecture":"amd64"}}]}`,
		`{"manifests":[{"digest":"` + sum + `","annotations":{"io.cnab.manifest.type":"config"}}]}`,
		`{"layers":null,"config":{"mediaType":"application/vnd.cnab.config.v1+json","digest":"` + sum + `"}}`,
		`{"layers":[],"manifests":[]}`, `{"layers":[{"digest":"sha256:x","size":-1}]}`, `[]`, ``, `{"layers":[{"size":9223372036854775807,"digest":"` + sum + `"},{"size":9223372036854775807,"digest":"` + sum + `"}]}`,
	} {
		f.Add([]byte(seed), specs.MediaTypeImageManifest, "amd64", "")
	}
	f.Fuzz(func(t *testing.T, data []byte, header, architecture, config string) {
		doc, index, err := parseDocument(data, header)
		if err != nil {
			return
		}
		ref, err := name.NewDigest("example.com/app@sha256:" + strings.Repeat("1", 64))
		if err != nil {
			t.Fatal(err)
		}
		if index {
			fetcher := New(nil, Options{Architecture: architecture})
			for _, src := range []Source{{}, {Platform: &Platform{Architecture: architecture}}} {
				if chosen, err := fetcher.chooseFor(src, doc.Manifests); err == nil && chosen.Validate() != nil {
					t.Errorf("%q was chosen", chosen)
				}
			}
			if chosen, ok := descriptionOf(doc.Manifests); ok && chosen.Validate() != nil {
				t.Errorf("%q was chosen", chosen)
			}
			return
		}
		zero := 0
		for _, src := range []Source{{}, {Config: config}, {Layers: Selectors{{MediaType: "application/x-tar"}, {Index: &zero}}}} {
			layers, err := layersOf(src, ref, doc, unpack.NewBudget(unpack.Limits{}))
			wellSaid(t, err)
			for _, l := range layers {
				if l.packed.Digest.Validate() != nil || l.packed.Size < 0 {
					t.Errorf("%+v would be fetched", l.packed)
				}
			}
		}
	})
}

// The list of referrers is what a registry says, or whoever pushed a tag.
func FuzzReferrers(f *testing.F) {
	f.Add([]byte(`{"manifests":[{"artifactType":"a","digest":"sha256:`+strings.Repeat("0", 64)+`","annotations":{"org.opencontainers.image.created":"2026-01-01T00:00:00Z"}}]}`), "a", `</v2/app/referrers/x?n=1>; rel="next"`)
	f.Add([]byte(`{"manifests":[{"artifactType":"a","digest":"sha512:x"},{"artifactType":"a"}]}`), "a", `<https://other.example.com/>; rel="next", <x`)
	f.Add([]byte(`{"manifests":{}}`), "", `<%zz>;rel="next"`)
	f.Fuzz(func(t *testing.T, data []byte, kind, link string) {
		here := &url.URL{Scheme: "https", Host: "example.com", Path: "/v2/app/referrers/sha256:0"}
		if next := nextPage(&http.Response{Header: http.Header{"Link": {link}}}, here); next != nil && next.Host != here.Host {
			t.Errorf("the next page is on %q", next.Host)
		}
		listed, err := index(data)
		if err != nil {
			return
		}
		chosen, err := (&Referrer{ArtifactType: kind}).choose(listed)
		if err == nil && !sound(chosen) {
			t.Errorf("%q was chosen", chosen)
		}
	})
}

func FuzzReference(f *testing.F) {
	for _, seed := range []string{"example.com/app:v1", "app", "example.com/app@sha256:" + strings.Repeat("0", 64), "[::1]:5000/a", "\n", "a@sha512:" + strings.Repeat("0", 128)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := parse(text)
		wellSaid(t, err)
		if d, ok := ref.(name.Digest); ok && !strings.HasPrefix(d.DigestStr(), "sha256:") {
			t.Errorf("%q is taken", text)
		}
	})
}
