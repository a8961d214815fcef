// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

// entry describes one entry of an index: "os/arch[/variant]", or "" for none.
func entry(platform string) specs.Descriptor {
	d := specs.Descriptor{Digest: digest.FromString(platform)}
	if platform == "attestation" {
		d.Annotations = map[string]string{"vnd.docker.reference.type": "attestation-manifest"}
		platform = "unknown/unknown"
	}
	if parts := strings.Split(platform, "/"); len(parts) > 1 {
		d.Platform = &specs.Platform{OS: parts[0], Architecture: parts[1]}
		if len(parts) > 2 {
			d.Platform.Variant = parts[2]
		}
	}
	return d
}

func TestChoosingAmongTheEntriesOfAnIndex(t *testing.T) {
	for name, tc := range map[string]struct {
		entries []string
		want    string
		err     string
	}{
		"OnlyOne":            {[]string{"linux/s390x"}, "linux/s390x", ""},
		"OnlyOneArtifact":    {[]string{"artifact"}, "artifact", ""},
		"OneAndAttestation":  {[]string{"windows/amd64", "attestation", "unknown/unknown"}, "windows/amd64", ""},
		"Ours":               {[]string{"linux/amd64", "linux/arm64", "attestation"}, "linux/arm64", ""},
		"OursOfTwoVariants":  {[]string{"linux/arm64/v8", "linux/arm64/v9", "linux/amd64"}, "linux/arm64/v8", ""},
		"TwoPlain":           {[]string{"linux/arm64/v8", "linux/arm64"}, "", "not exactly one for linux/arm64 (it has: linux/arm64, linux/arm64/v8)"},
		"NotOurs":            {[]string{"windows/arm64", "linux/amd64"}, "", "the index has 2 entries and not exactly one for linux/arm64 (it has: linux/amd64, windows/arm64); name one by digest"},
		"ArtifactsOnly":      {[]string{"a", "b"}, "", "(it has: no platform)"},
		"None":               {nil, "", "(it has: none)"},
		"OnlyAttestations":   {[]string{"attestation"}, "", "the index has 0 entries"},
		"OursAndAnArtifact":  {[]string{"linux/arm64", "artifact"}, "linux/arm64", ""},
		"SameOnDifferentOSs": {[]string{"linux/arm64", "darwin/arm64"}, "linux/arm64", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var entries []specs.Descriptor
			for _, platform := range tc.entries {
				entries = append(entries, entry(platform))
			}
			got, err := choose(entries, "arm64")
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || got != digest.FromString(tc.want) {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func indexOf(images map[string]v1.Image) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for platform, image := range images {
		add := mutate.IndexAddendum{Add: image}
		if os, arch, ok := strings.Cut(platform, "/"); ok {
			add.Platform = &v1.Platform{OS: os, Architecture: arch}
		}
		index = mutate.AppendManifests(index, add)
	}
	return index
}

func TestIndexIsPinnedAsAWholeAndFetchedForOurPlatform(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	image := func(text string) v1.Image {
		return imageOf(t, part(tarOf(t, "a", text), types.OCIUncompressedLayer))
	}
	index := indexOf(map[string]v1.Image{"linux/amd64": image("amd64"), "linux/arm64": image("arm64")})
	nested := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: index})
	ref := push(t, registry, "app:1", index)
	nestedRef := push(t, registry, "nested:1", nested)
	wanted, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		store := newStore(t)
		fetcher := New(store, Options{Architecture: arch})
		pinned, err := fetcher.Resolve(t.Context(), Source{Ref: ref, Insecure: true})
		if err != nil || pinned.Digest.String() != wanted.String() {
			t.Fatalf("pinned %+v, %v; want %s", pinned, err, wanted)
		}
		for _, one := range []string{ref, nestedRef} {
			tree, _, err := fetchAll(t, fetcher, Source{Ref: one, Insecure: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := files(t, store, tree)["a"]; got != arch {
				t.Errorf("on %s %s holds %q", arch, one, got)
			}
		}
	}
	_, _, err = fetchAll(t, New(newStore(t), Options{Architecture: "riscv64"}), Source{Ref: ref, Insecure: true})
	if source.ReasonOf(err) != source.ReasonNoPlatform || source.KindOf(err) != source.Terminal || !strings.Contains(err.Error(), "linux/amd64, linux/arm64") {
		t.Errorf("got %v", err)
	}
}

func TestParseDocument(t *testing.T) {
	const d = `{"digest":"sha256:` + "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" + `","size":1}`
	for name, tc := range map[string]struct {
		data, header string
		index        bool
		err          string
	}{
		"Manifest":            {`{"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[` + d + `]}`, "", false, ""},
		"Index":               {`{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[` + d + `]}`, "", true, ""},
		"DockerList":          {`{"mediaType":"application/vnd.docker.distribution.manifest.list.v2+json","manifests":[` + d + `]}`, "", true, ""},
		"TypeByHeader":        {`{"layers":[]}`, "application/vnd.oci.image.manifest.v1+json", false, ""},
		"TypeByFields":        {`{"manifests":[` + d + `]}`, "text/plain", true, ""},
		"HeaderDisagrees":     {`{"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[]}`, "application/json", false, ""},
		"NoLayersAtAll":       {`{"mediaType":"application/vnd.oci.image.manifest.v1+json"}`, "", false, ""},
		"Both":                {`{"layers":[],"manifests":[]}`, "", false, "both a manifest and an index"},
		"IndexWithLayers":     {`{"mediaType":"application/vnd.oci.image.index.v1+json","layers":[]}`, "", false, "does not fit"},
		"ManifestWithEntries": {`{"manifests":[` + d + `]}`, "application/vnd.oci.image.manifest.v1+json", false, "does not fit"},
		"Schema1":             {`{"schemaVersion":1,"fsLayers":[]}`, "application/vnd.docker.distribution.manifest.v1+prettyjws", false, `media type "application/vnd.docker.distribution.manifest.v1+prettyjws"`},
		"Other":               {`{"mediaType":"application/json","layers":[]}`, "", false, `media type "application/json"`},
		"NotJSON":             {`<html>`, "", false, "not a manifest"},
		"BadDigest":           {`{"layers":[{"digest":"sha256:../../etc","size":1}]}`, "", false, "descriptor"},
		"NegativeSize":        {strings.Replace(`{"layers":[`+d+`]}`, `"size":1`, `"size":-1`, 1), "", false, "size is negative"},
	} {
		t.Run(name, func(t *testing.T) {
			_, index, err := parseDocument([]byte(tc.data), tc.header)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || index != tc.index {
				t.Errorf("got index %v, %v", index, err)
			}
		})
	}
}

func TestAManifestThatLiesAboutSizesIsFoundOut(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	image := imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer))
	push(t, registry, "app:1", image)
	for _, size := range []float64{1, 1 << 20} {
		lying := editManifest(t, image, func(m map[string]any) { m["layers"].([]any)[0].(map[string]any)["size"] = size })
		ref := registry.Host() + "/app@" + digest.FromBytes(lying).String()
		registry.Faults.Add(fault.Rule{Path: manifests, Action: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
			w.Header().Set("Docker-Content-Digest", digest.FromBytes(lying).String())
			http.ServeContent(w, &http.Request{Method: "GET"}, "", time.Time{}, bytes.NewReader(lying))
		}})
		_, _, err := fetchAll(t, New(newStore(t), Options{}), Source{Ref: ref, Insecure: true})
		registry.Faults.Clear()
		if source.ReasonOf(err) != source.ReasonContentMismatch || !strings.Contains(err.Error(), "bytes than the manifest says") {
			t.Errorf("size %v: %s: %v", size, source.ReasonOf(err), err)
		}
	}
}

func TestAReferenceThatIsNoneSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"oci://example.com/app:v1":  `oci "oci://example.com/app:v1": it is not a reference such as registry/repository:tag: leave out oci://`,
		"example.com/app@sha256:d4": "a digest is sha256: and 64 hexadecimal digits",
		"example.com/Team/app:v1":   "the name of a repository is in lower case",
		"example.com/app:a:b":       "it is not a reference such as registry/repository:tag",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) || source.KindOf(err) != source.Terminal {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
