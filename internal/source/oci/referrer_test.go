// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	orasremote "oras.land/oras-go/v2/registry/remote"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
	"rukpak.io/rukpak/internal/testenv/signing"
	"rukpak.io/rukpak/internal/unpack"
)

const (
	spdx   = "application/spdx+json"
	policy = "application/vnd.example.policy"
)

func titled(name, text string) signing.Blob {
	return signing.Blob{Data: []byte(text), MediaType: spdx, Annotations: map[string]string{unpack.AnnotationTitle: name}}
}

func madeAt(hour int) map[string]string {
	return map[string]string{specs.AnnotationCreated: time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC).Format(time.RFC3339)}
}

func wanted(kind string) *Referrer { return &Referrer{ArtifactType: kind} }

func TestAReferrerIsTheContent(t *testing.T) {
	for kind, place := range bothKinds(t) {
		t.Run(kind, func(t *testing.T) {
			image, src := pushed(t, place, Source{})
			place.PushReferrer(t, image.Digest, policy, nil, titled("policy.yaml", "allow: none"))
			place.PushReferrer(t, image.Digest, spdx, madeAt(1), titled("sbom.json", "old"))
			place.PushReferrer(t, image.Digest, spdx, madeAt(3), titled("sbom.json", "newest"))
			place.PushReferrer(t, image.Digest, spdx, madeAt(2), titled("sbom.json", "between"))
			for name, tc := range map[string]struct {
				referrer *Referrer
				want     map[string]string
				err      string
			}{
				"OnlyOne":      {wanted(policy), map[string]string{"policy.yaml": "allow: none"}, ""},
				"Newest":       {wanted(spdx), map[string]string{"sbom.json": "newest"}, ""},
				"ByAnnotation": {&Referrer{ArtifactType: spdx, Annotations: madeAt(2)}, map[string]string{"sbom.json": "between"}, ""},
				"None":         {wanted("text/plain"), nil, "no artifact of type text/plain refers to it (those that do: " + spdx + ", " + policy + ")"},
				"NotThat":      {&Referrer{ArtifactType: spdx, Annotations: map[string]string{"a": "b"}}, nil, "with the annotations asked for refers to it"},
			} {
				t.Run(name, func(t *testing.T) {
					src.Referrer = tc.referrer
					store := newStore(t)
					fetcher := New(store, Options{})
					pinned, err := fetcher.Resolve(t.Context(), src)
					if tc.err != "" {
						if source.ReasonOf(err) != source.ReasonNotFound || source.KindOf(err) != source.Waiting || !strings.Contains(err.Error(), tc.err) {
							t.Errorf("got %s: %v", source.ReasonOf(err), err)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					if pinned.Subject != image.Digest || pinned.Digest == image.Digest || pinned.Version != "1" {
						t.Errorf("pinned to %+v", pinned)
					}
					tree, _, err := fetcher.Fetch(t.Context(), src, pinned)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(tc.want, files(t, store, tree)); diff != "" {
						t.Errorf("-want +got:\n%s", diff)
					}
				})
			}
		})
	}
}

// What ORAS attaches says its type in a field of its own, and not by its config.
func TestWhatORASAttachesIsFound(t *testing.T) {
	place := signing.Place{Repository: ociregistry.New(t, ociregistry.Options{}).Host() + "/app"}
	image, src := pushed(t, place, Source{})
	repository, err := orasremote.NewRepository(place.Repository)
	if err != nil {
		t.Fatal(err)
	}
	repository.PlainHTTP = true
	subject, err := repository.Resolve(t.Context(), image.Digest.String())
	if err != nil {
		t.Fatal(err)
	}
	blob, err := oras.PushBytes(t.Context(), repository, spdx, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	blob.Annotations = map[string]string{unpack.AnnotationTitle: "sbom.json"}
	made, err := oras.PackManifest(t.Context(), repository, oras.PackManifestVersion1_1, spdx, oras.PackManifestOptions{Subject: &subject, Layers: []specs.Descriptor{blob}})
	if err != nil {
		t.Fatal(err)
	}
	src.Referrer = wanted(spdx)
	store := newStore(t)
	fetcher := New(store, Options{})
	pinned, err := fetcher.Resolve(t.Context(), src)
	if err != nil || pinned.Digest != made.Digest {
		t.Fatalf("got %+v, %v, want %s", pinned, err, made.Digest)
	}
	tree, _, err := fetcher.Fetch(t.Context(), src, pinned)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"sbom.json": "{}"}, files(t, store, tree)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhichReferrerIsMeantMustBeClear(t *testing.T) {
	one := specs.Descriptor{ArtifactType: spdx, Digest: digest.FromString("one"), Annotations: madeAt(1)}
	two := specs.Descriptor{ArtifactType: spdx, Digest: digest.FromString("two"), Annotations: madeAt(2)}
	same := specs.Descriptor{ArtifactType: spdx, Digest: digest.FromString("same"), Annotations: madeAt(2)}
	dateless := specs.Descriptor{ArtifactType: spdx, Digest: digest.FromString("dateless")}
	odd := specs.Descriptor{ArtifactType: spdx, Digest: "sha512:1"}
	for name, tc := range map[string]struct {
		listed []specs.Descriptor
		want   digest.Digest
	}{
		"Newest":        {[]specs.Descriptor{one, two}, two.Digest},
		"ListedTwice":   {[]specs.Descriptor{one, one}, one.Digest},
		"DatelessAlone": {[]specs.Descriptor{dateless}, dateless.Digest},
		"SameTime":      {[]specs.Descriptor{one, two, same}, ""},
		"OneDateless":   {[]specs.Descriptor{one, two, dateless}, ""},
		"NoDigest":      {[]specs.Descriptor{odd}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := wanted(spdx).choose(tc.listed)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// With a platform it is the image of the platform that has the referrer; without
// one, the index as a whole.
func TestReferrersOfAnIndexAndOfAnEntryOfIt(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	var index v1.ImageIndex = empty.Index
	entries := map[string]digest.Digest{}
	for _, architecture := range []string{"amd64", "arm64"} {
		image := imageOf(t, part(tarOf(t, "a", architecture), types.OCIUncompressedLayer))
		made, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		entries[architecture] = digest.Digest(made.String())
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}})
	}
	src := Source{Ref: push(t, registry, "app:1", index), Insecure: true, Referrer: wanted(spdx)}
	whole, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	place := signing.Place{Repository: registry.Host() + "/app"}
	place.PushReferrer(t, digest.Digest(whole.String()), spdx, nil, titled("s", "index"))
	place.PushReferrer(t, entries["arm64"], spdx, nil, titled("s", "arm64"))
	fetch := func(platform *Platform) (map[string]string, error) {
		store := newStore(t)
		src.Platform = platform
		tree, _, err := fetchAll(t, New(store, Options{}), src)
		if err != nil {
			return nil, err
		}
		return files(t, store, tree), nil
	}
	for want, platform := range map[string]*Platform{"index": nil, "arm64": {Architecture: "arm64"}} {
		got, err := fetch(platform)
		if diff := cmp.Diff(map[string]string{"s": want}, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", want, err, diff)
		}
	}
	if _, err := fetch(&Platform{Architecture: "amd64"}); source.ReasonOf(err) != source.ReasonNotFound {
		t.Errorf("an entry without a referrer: %v", err)
	}
	if _, err := fetch(&Platform{Architecture: "riscv64"}); source.ReasonOf(err) != source.ReasonNoPlatform {
		t.Errorf("no such entry: %v", err)
	}
}

// A list of referrers is no more than words: what it names has to say the same.
func TestAListOfReferrersThatLies(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	place := signing.Place{Repository: registry.Host() + "/app"}
	image, src := pushed(t, place, Source{Referrer: nil})
	place.PushReferrer(t, image.Digest, policy, nil, titled("p", "x"))
	src.Referrer = wanted(policy)
	right, err := New(nil, Options{}).Resolve(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := imageOf(t, part([]byte("x"), policy)).Digest()
	if err == nil {
		ref, _ := name.ParseReference(place.Repository+"@"+stranger.String(), name.Insecure)
		err = remote.Write(ref, imageOf(t, part([]byte("x"), policy)))
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		listed string
		want   string
		reason string
	}{
		"OfAnotherType":  {listing(spdx, right.Digest, ""), "its manifest says", source.ReasonContentMismatch},
		"OfNothing":      {listing(spdx, digest.Digest(stranger.String()), ""), "and its manifest does not", source.ReasonContentMismatch},
		"Annotations":    {listing(policy, right.Digest, `"a":"b"`), "annotations that its manifest does not have", source.ReasonContentMismatch},
		"NotThere":       {listing(spdx, digest.FromString("gone"), ""), "is not there", source.ReasonNotFound},
		"NoJSON":         {"<html>", "no JSON", source.ReasonRegistryError},
		"Empty":          {`{"manifests":[]}`, "(those that do: none)", source.ReasonNotFound},
		"ManyOtherTypes": {strings.Replace(`{"manifests":[X]}`, "X", strings.Repeat(`{"artifactType":"a"},`, 50)+`{"artifactType":"b"}`, 1), "(those that do: a, b)", source.ReasonNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			defer registry.Faults.Clear()
			registry.Faults.Add(fault.Rule{Path: regexp.MustCompile("manifests/sha256-"), Action: fault.Replace([]byte(tc.listed))})
			src := src
			src.Referrer = wanted(spdx)
			if name == "Annotations" {
				src.Referrer = &Referrer{ArtifactType: policy, Annotations: map[string]string{"a": "b"}}
			}
			_, err := New(nil, Options{}).Resolve(t.Context(), src)
			if source.ReasonOf(err) != tc.reason || source.KindOf(err) == source.Terminal || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %s: %v", source.ReasonOf(err), err)
			}
		})
	}
}

func listing(kind string, d digest.Digest, annotations string) string {
	return `{"schemaVersion":2,"manifests":[{"mediaType":"` + specs.MediaTypeImageManifest + `","digest":"` + d.String() +
		`","size":2,"artifactType":"` + kind + `","annotations":{` + annotations + `}}]}`
}

// A registry that does not answer has not said that there is no referrer.
func TestFaultsOfTheListOfReferrersAreClassified(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	place := signing.Place{Repository: registry.Host() + "/app"}
	image, src := pushed(t, place, Source{})
	place.PushReferrer(t, image.Digest, spdx, nil, titled("s", "x"))
	src.Referrer = wanted(spdx)
	for name, tc := range map[string]struct {
		path   string
		action fault.Action
		reason string
		kind   source.Kind
	}{
		"Unauthorized":  {"/referrers/", fault.Status(http.StatusUnauthorized), source.ReasonAuthenticationFailed, source.Waiting},
		"Broken":        {"/referrers/", fault.Status(http.StatusBadGateway), source.ReasonRegistryUnreachable, source.Transient},
		"BrokenTag":     {"/manifests/sha256-", fault.Status(http.StatusInternalServerError), source.ReasonRegistryUnreachable, source.Transient},
		"Half":          {"/manifests/sha256-", fault.Truncate(20), source.ReasonRegistryUnreachable, source.Transient},
		"Reset":         {"/manifests/sha256-", fault.Reset(), source.ReasonRegistryUnreachable, source.Transient},
		"Slow":          {"/manifests/sha256-", registry.Faults.Stall(10), source.ReasonRegistryUnreachable, source.Transient},
		"Huge":          {"/manifests/sha256-", fault.Replace(make([]byte, maxManifest+1)), source.ReasonRegistryError, source.Waiting},
		"OtherManifest": {"/manifests/sha256:", fault.Corrupt(3), source.ReasonContentMismatch, source.Waiting},
	} {
		t.Run(name, func(t *testing.T) {
			defer registry.Faults.Clear()
			registry.Faults.Add(fault.Rule{Method: http.MethodGet, Path: regexp.MustCompile(tc.path), Action: tc.action})
			if _, err := New(nil, Options{StallTimeout: 300 * time.Millisecond}).Resolve(t.Context(), src); source.ReasonOf(err) != tc.reason || source.KindOf(err) != tc.kind {
				t.Fatalf("got %s, %s: %v", source.ReasonOf(err), source.KindOf(err), err)
			}
			registry.Faults.Clear()
			if _, _, err := fetchAll(t, New(newStore(t), Options{}), src); err != nil {
				t.Errorf("after it was mended: %v", err)
			}
		})
	}
}

// Mirrors often have an image, and not what refers to it.
func TestAMirrorWithoutReferrersIsPassedOver(t *testing.T) {
	primary, mirror := ociregistry.New(t, ociregistry.Options{}), ociregistry.New(t, ociregistry.Options{})
	image, src := pushed(t, signing.Place{Repository: primary.Host() + "/app"}, Source{})
	if again, _ := pushed(t, signing.Place{Repository: mirror.Host() + "/app"}, Source{}); again.Digest != image.Digest {
		t.Fatal("the mirror has something else")
	}
	signing.Place{Repository: primary.Host() + "/app"}.PushReferrer(t, image.Digest, spdx, nil, titled("s", "of the primary"))
	src.Referrer = wanted(spdx)
	fetcher := ruled(t, rules.Rule{Prefix: primary.Host(), From: "rule", Mirrors: []rules.Mirror{plain(mirror, "")}})
	tree, _, err := fetchAll(t, fetcher, src)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"s": "of the primary"}, files(t, fetcher.store.(*content.Disk), tree)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
