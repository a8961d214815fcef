// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/oci"
	"rukpak.io/rukpak/internal/source/web"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
	"rukpak.io/rukpak/internal/testenv/webserver"
	"rukpak.io/rukpak/internal/unpack"
)

// pushChart pushes a packed chart as `helm push` does.
func pushChart(t *testing.T, ref string, packed []byte, options ...remote.Option) digest.Digest {
	t.Helper()
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), "application/vnd.cncf.helm.config.v1+json"),
		mutate.Addendum{Layer: static.NewLayer(packed, unpack.MediaTypeChart), MediaType: unpack.MediaTypeChart})
	if err != nil {
		t.Fatal(err)
	}
	at, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(at, image, options...); err != nil {
		t.Fatal(err)
	}
	made, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.Digest(made.String())
}

func TestAnIndexMayLeadToARegistry(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	packed, files := realChart(t, "podinfo/6.7.1", "podinfo")
	manifest := pushChart(t, registry.Host()+"/charts/podinfo:6.7.1_b.1", packed)
	server := webserver.New(t, webserver.Options{})
	at := "oci://" + registry.Host() + "/charts/podinfo"
	for name, tc := range map[string]struct {
		url  string
		sum  digest.Digest
		fail string
	}{
		"Tag":              {at + ":6.7.1_b.1", "", ""},
		"TagOfTheVersion":  {at, "", ""},
		"Digest":           {at + "@" + manifest.String(), "", ""},
		"SumOfTheManifest": {at + ":6.7.1_b.1", manifest, ""},
		"SumOfTheChart":    {at + ":6.7.1_b.1", digest.FromBytes(packed), ""},
		"WrongSum":         {at + ":6.7.1_b.1", digest.FromString("other"), source.ReasonContentMismatch},
		"Gone":             {at + ":6.7.2", "", source.ReasonNotFound},
		"NoRepository":     {"oci://" + registry.Host(), "", source.ReasonSourceError},
		"User":             {"oci://ann:hunter2@" + registry.Host() + "/charts/podinfo", "", source.ReasonSourceError},
	} {
		t.Run(name, func(t *testing.T) {
			server.Put("/index.yaml", []byte("entries:\n  podinfo:\n"+line("6.7.1+b.1", tc.url, tc.sum)))
			store := newStore(t)
			fetcher := New(Options{Registry: oci.New(store, oci.Options{})})
			src := Source{Repository: server.URL(""), Chart: "podinfo", Version: "6.7.1+b.1", Insecure: true}
			pinned, got, err := get(t, fetcher.At(src), store)
			if tc.fail != "" {
				if source.ReasonOf(err) != tc.fail || !strings.HasPrefix(err.Error(), "helm http") || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("got %s: %v", source.ReasonOf(err), err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := source.Pinned{Ref: registry.Host() + "/charts/podinfo@" + manifest.String(), Digest: manifest, Version: "6.7.1+b.1"}
			if diff := cmp.Diff(want, pinned); diff != "" {
				t.Errorf("pinned (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(files, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// What was pinned in a registry is fetched from there, whatever the index says now.
func TestAPinInARegistryNeedsNoIndex(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	ref := registry.Host() + "/charts/app:1.0.0"
	pushChart(t, ref, simple(t, "1.0.0"))
	server := webserver.New(t, webserver.Options{})
	server.Put("/index.yaml", indexOf(line("1.0.0", "oci://"+ref, "")))
	src := Source{Repository: server.URL(""), Chart: "app", Insecure: true}
	store := newStore(t)
	pinned, _, err := get(t, New(Options{Registry: oci.New(store, oci.Options{})}).At(src), store)
	if err != nil {
		t.Fatal(err)
	}
	pushChart(t, ref, simple(t, "1.0.0-moved"))
	server.Faults.Add(fault.Rule{Action: fault.Status(http.StatusInternalServerError)})
	fresh := newStore(t)
	to := begin(t, fresh)
	layers, _, err := New(Options{Registry: oci.New(fresh, oci.Options{})}).At(src).Fetch(t.Context(), pinned, to)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"app/Chart.yaml": "name: app\nversion: 1.0.0\n"}, filesOf(t, fresh, to, layers)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The password of the web server is not that of the registry.
func TestTheRegistryThatAnIndexLeadsToHasItsOwnCredentials(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{User: "bob", Password: "builder"})
	ref := registry.Host() + "/charts/app:1.0.0"
	pushChart(t, ref, simple(t, "1.0.0"), remote.WithAuth(&authn.Basic{Username: "bob", Password: "builder"}))
	server := webserver.New(t, webserver.Options{User: "ann", Password: "hunter2"})
	server.Put("/index.yaml", indexOf(line("1.0.0", "oci://"+ref, "")))
	src := Source{Repository: server.URL(""), Chart: "app", Insecure: true, PassCredentials: true, Credentials: web.Credentials{Username: "ann", Password: "hunter2"}}
	for name, tc := range map[string]struct {
		pull   oci.Credentials
		reason string
	}{
		"None":  {nil, source.ReasonAuthenticationFailed},
		"Right": {login{"bob", "builder"}, ""},
		"Wrong": {login{"bob", "other"}, source.ReasonAuthenticationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			src.Pull = tc.pull
			store := newStore(t)
			if _, _, err := get(t, New(Options{Registry: oci.New(store, oci.Options{})}).At(src), store); source.ReasonOf(err) != tc.reason {
				t.Errorf("got %v", err)
			}
		})
	}
}

type login struct{ user, password string }

func (l login) Candidates(authn.Resource) []authn.Authenticator {
	return []authn.Authenticator{&authn.Basic{Username: l.user, Password: l.password}}
}

func TestFaultsOfTheRegistryThatAnIndexLeadsTo(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	ref := registry.Host() + "/charts/app:1.0.0"
	packed := simple(t, "1.0.0")
	pushChart(t, ref, packed)
	server := webserver.New(t, webserver.Options{})
	server.Put("/index.yaml", indexOf(line("1.0.0", "oci://"+ref, digest.FromBytes(packed))))
	src := Source{Repository: server.URL(""), Chart: "app", Insecure: true}
	for name, tc := range map[string]struct {
		path   string
		action fault.Action
		reason string
	}{
		"Unauthorised":  {"/manifests/1.0.0", fault.Status(http.StatusUnauthorized), source.ReasonAuthenticationFailed},
		"Down":          {"/manifests/", fault.Status(http.StatusBadGateway), source.ReasonRegistryUnreachable},
		"ManifestGone":  {"/manifests/sha256:", fault.Status(http.StatusNotFound), source.ReasonNotFound},
		"HalfALayer":    {"/blobs/", fault.Truncate(20), source.ReasonRegistryUnreachable},
		"AnotherLayer":  {"/blobs/", fault.Corrupt(15), source.ReasonContentMismatch},
		"ResetManifest": {"/manifests/", fault.Reset(), source.ReasonRegistryUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			defer registry.Faults.Clear()
			registry.Faults.Add(fault.Rule{Path: regexp.MustCompile(tc.path), Action: tc.action})
			store := newStore(t)
			fetcher := New(Options{Registry: oci.New(store, oci.Options{})})
			_, _, err := get(t, fetcher.At(src), store)
			if source.ReasonOf(err) != tc.reason || !strings.HasPrefix(err.Error(), "helm http") {
				t.Errorf("got %s: %v", source.ReasonOf(err), err)
			}
			registry.Faults.Clear()
			if _, _, err := get(t, fetcher.At(src), store); err != nil {
				t.Errorf("after it was mended: %v", err)
			}
		})
	}
}
