// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	orasremote "oras.land/oras-go/v2/registry/remote"

	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

// A CNAB bundle in a registry is an index. One entry of it has the description
// as its config and no layers; the others are images that the bundle is made of.
func TestABundleOfCNABIsItsDescription(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	repository, err := orasremote.NewRepository(registry.Host() + "/cnab")
	if err != nil {
		t.Fatal(err)
	}
	repository.PlainHTTP = true
	put := func(mediaType string, data []byte, tag string) specs.Descriptor {
		t.Helper()
		made, err := oras.PushBytes(t.Context(), repository, mediaType, data)
		if err == nil && tag != "" {
			err = repository.Tag(t.Context(), made, tag)
		}
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	description := []byte(`{"name":"helloworld","schemaVersion":"v1.0.0"}`)
	for name, kind := range map[string]string{"OfItsOwnType": "application/vnd.cnab.config.v1+json", "AsAnImage": specs.MediaTypeImageConfig} {
		t.Run(name, func(t *testing.T) {
			config := put(kind, description, "")
			entry := func(role string, layers string) string {
				made := put(specs.MediaTypeImageManifest, fmt.Appendf(nil, `{"schemaVersion":2,"config":{"mediaType":%q,"size":%d,"digest":%q},"layers":%s}`,
					kind, config.Size, config.Digest, layers), "")
				return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d,"annotations":{"io.cnab.manifest.type":%q}}`, made.MediaType, made.Digest, made.Size, role)
			}
			bundle, image := entry("config", "null"), entry("invocation", "[]")
			put(specs.MediaTypeImageIndex, fmt.Appendf(nil, `{"schemaVersion":2,"manifests":[%s,%s]}`, image, bundle), "v1")
			store := newStore(t)
			tree, _, err := fetchAll(t, New(store, Options{}), Source{Ref: registry.Host() + "/cnab:v1", Insecure: true})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"bundle.json": string(description)}, files(t, store, tree)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
