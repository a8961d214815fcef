// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
	"rukpak.io/rukpak/internal/unpack"
)

func TestTheTagWithTheHighestVersionIsChosen(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	for _, tag := range []string{"v1.0.0", "1.2.0", "1.10.0", "2.0.0", "2.1.0-rc.1", "latest", "1.11"} {
		push(t, registry, "app:"+tag, imageOf(t, part(tarOf(t, "tag", tag), types.OCIUncompressedLayer)))
	}
	for name, tc := range map[string]struct {
		src    Source
		want   string
		reason string
		err    string
	}{
		"Range":     {Source{Semver: "^1.0.0"}, "1.10.0", "", ""},
		"All":       {Source{Semver: "*"}, "2.0.0", "", ""},
		"Filter":    {Source{Semver: "*", SemverFilter: "^v"}, "v1.0.0", "", ""},
		"None":      {Source{Semver: ">=3"}, "", source.ReasonNotFound, "the highest is 2.1.0-rc.1"},
		"BadRange":  {Source{Semver: "new"}, "", source.ReasonInvalidReference, "not a range"},
		"BadFilter": {Source{Semver: "*", SemverFilter: "("}, "", source.ReasonInvalidReference, "not a regular expression"},
		"Tag":       {Source{Ref: registry.Host() + "/app:1.2.0", Semver: "*"}, "", source.ReasonInvalidReference, "without a tag"},
		"NoSuch":    {Source{Ref: registry.Host() + "/none", Semver: "*"}, "", source.ReasonNotFound, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.src.Insecure = true
			if tc.src.Ref == "" {
				tc.src.Ref = registry.Host() + "/app"
			}
			store := newStore(t)
			fetcher := New(store, Options{})
			pinned, err := fetcher.Resolve(t.Context(), tc.src)
			if tc.err != "" {
				if source.ReasonOf(err) != tc.reason || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %s: %v", source.ReasonOf(err), err)
				}
				return
			}
			if err != nil || pinned.Version != tc.want || !strings.HasPrefix(pinned.Ref, registry.Host()+"/app@sha256:") {
				t.Fatalf("got %+v, %v", pinned, err)
			}
			tree, _, err := fetcher.Fetch(t.Context(), tc.src, pinned)
			if err != nil {
				t.Fatal(err)
			}
			if got := files(t, store, tree)["tag"]; got != tc.want {
				t.Errorf("the content is that of %q", got)
			}
		})
	}
}

func TestAListOfTagsHasAnEnd(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	push(t, registry, "app:1.0.0", imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer)))
	registry.Faults.Add(fault.Rule{Path: tagLists, Action: fault.Replace(append([]byte(`{"tags":["`), make([]byte, maxManifest)...))})
	_, err := New(newStore(t), Options{}).Resolve(t.Context(), Source{Ref: registry.Host() + "/app", Semver: "*", Insecure: true})
	if source.ReasonOf(err) == "" || source.KindOf(err) != source.Terminal && !strings.Contains(err.Error(), "invalid") {
		t.Errorf("got %s: %v", source.ReasonOf(err), err)
	}
}

func TestLayersAreSelected(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	one, two := 1, 2
	ref := push(t, registry, "app:1", imageOf(t,
		part(tarOf(t, "tree", "x"), "application/vnd.example.content.tar"),
		part([]byte("kind: A"), "application/yaml", unpack.AnnotationTitle, "a.yaml"),
		part([]byte("kind: B"), "application/yaml", unpack.AnnotationTitle, "b.yaml"),
	))
	for name, tc := range map[string]struct {
		layers Selectors
		want   map[string]string
		err    string
	}{
		"All":           {nil, map[string]string{"tree": "x", "a.yaml": "kind: A", "b.yaml": "kind: B"}, ""},
		"MediaType":     {Selectors{{MediaType: "application/YAML; charset=utf-8"}}, map[string]string{"a.yaml": "kind: A", "b.yaml": "kind: B"}, ""},
		"Title":         {Selectors{{Title: "b.yaml"}}, map[string]string{"b.yaml": "kind: B"}, ""},
		"Index":         {Selectors{{Index: &one}}, map[string]string{"a.yaml": "kind: A"}, ""},
		"AnyOfSeveral":  {Selectors{{Index: &two}, {MediaType: "application/vnd.example.content.tar"}}, map[string]string{"tree": "x", "b.yaml": "kind: B"}, ""},
		"AllOfOne":      {Selectors{{Index: &two, Title: "a.yaml"}}, nil, `layers selects none of its layers (it has: 0: application/vnd.example.content.tar, 1: application/yaml "a.yaml", 2: application/yaml "b.yaml")`},
		"NoSuchType":    {Selectors{{MediaType: "text/plain"}}, nil, "selects none"},
		"NoTitleAtThat": {Selectors{{Title: "tree"}}, nil, "selects none"},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			registry.ForgetRequests()
			tree, stats, err := fetchAll(t, New(store, Options{}), Source{Ref: ref, Insecure: true, Layers: tc.layers})
			if tc.err != "" {
				if source.KindOf(err) != source.Terminal || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, files(t, store, tree)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if n := len(blobGets(registry)); n != stats.Layers {
				t.Errorf("%d blobs were fetched for %d layers", n, stats.Layers)
			}
		})
	}
}

func TestTheConfigBlobCanBeAFile(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	ref := push(t, registry, "app:1", imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer)))
	store := newStore(t)
	tree, _, err := fetchAll(t, New(store, Options{}), Source{Ref: ref, Insecure: true, Config: "meta/config.json"})
	if err != nil {
		t.Fatal(err)
	}
	if got := files(t, store, tree); got["a"] != "x" || !strings.Contains(got["meta/config.json"], "rootfs") {
		t.Errorf("got %q", got)
	}
	_, _, err = fetchAll(t, New(store, Options{}), Source{Ref: ref, Insecure: true, Config: "../x"})
	if source.ReasonOf(err) != source.ReasonInvalidReference {
		t.Errorf("got %v", err)
	}
}

func TestAPlatformIsChosen(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	var index v1.ImageIndex = empty.Index
	for _, p := range []v1.Platform{
		{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64", Variant: "v8"},
		{OS: "linux", Architecture: "arm", Variant: "v6"}, {OS: "linux", Architecture: "arm", Variant: "v7"},
		{OS: "windows", Architecture: "amd64"},
	} {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        imageOf(t, part(tarOf(t, "platform", p.String()), types.OCIUncompressedLayer)),
			Descriptor: v1.Descriptor{Platform: &p},
		})
	}
	ref := push(t, registry, "app:all", index)
	alone := push(t, registry, "app:alone", mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: imageOf(t, part(tarOf(t, "platform", "none"), types.OCIUncompressedLayer)),
	}))
	for name, tc := range map[string]struct {
		ref      string
		platform *Platform
		want     string
	}{
		"Ours":         {ref, nil, "linux/amd64"},
		"Architecture": {ref, &Platform{Architecture: "arm64"}, "linux/arm64/v8"},
		"OS":           {ref, &Platform{OS: "windows"}, "windows/amd64"},
		"Variant":      {ref, &Platform{Architecture: "arm", Variant: "v7"}, "linux/arm/v7"},
		"NoVariant":    {ref, &Platform{Architecture: "arm"}, ""},
		"None":         {ref, &Platform{Architecture: "riscv64"}, ""},
		"Alone":        {alone, nil, "none"},
		"AloneAsked":   {alone, &Platform{Architecture: "amd64"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			tree, _, err := fetchAll(t, New(store, Options{Architecture: "amd64"}), Source{Ref: tc.ref, Insecure: true, Platform: tc.platform})
			if tc.want == "" {
				if source.ReasonOf(err) != source.ReasonNoPlatform || !strings.Contains(err.Error(), "not one (it has: ") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := files(t, store, tree)["platform"]; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
