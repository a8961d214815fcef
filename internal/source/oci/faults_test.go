// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

var (
	manifests = regexp.MustCompile("/manifests/")
	blobs     = regexp.MustCompile("/blobs/")
	tagLists  = regexp.MustCompile("/tags/list$")
)

func TestFaultsOfRegistriesAreClassifiedAndHeal(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	ref := push(t, registry, "app:1", imageOf(t, part(tarOf(t, "a", strings.Repeat("x", 100_000)), types.OCIUncompressedLayer)))
	for name, tc := range map[string]struct {
		rule   fault.Rule
		reason string
		kind   source.Kind
		want   string
	}{
		"ServerError":      {fault.Rule{Action: fault.Status(500)}, source.ReasonRegistryUnreachable, source.Transient, "500 Internal Server Error"},
		"Overload":         {fault.Rule{Action: fault.Status(429)}, source.ReasonRegistryUnreachable, source.Transient, "429"},
		"Forbidden":        {fault.Rule{Path: manifests, Action: fault.Status(403)}, source.ReasonAuthenticationFailed, source.Waiting, "no pull secret has credentials"},
		"Teapot":           {fault.Rule{Path: manifests, Action: fault.Status(418)}, source.ReasonRegistryError, source.Transient, "418"},
		"ManifestGone":     {fault.Rule{Path: manifests, Action: fault.Status(404)}, source.ReasonNotFound, source.Waiting, "404"},
		"BlobGone":         {fault.Rule{Path: blobs, Action: fault.Status(404)}, source.ReasonNotFound, source.Waiting, "blob sha256:"},
		"Reset":            {fault.Rule{Action: fault.Reset()}, source.ReasonRegistryUnreachable, source.Transient, "EOF"},
		"ManifestNotJSON":  {fault.Rule{Method: "GET", Path: manifests, Action: fault.Replace([]byte("<html>\n"))}, source.ReasonRegistryError, source.Transient, "digest"},
		"ManifestCorrupt":  {fault.Rule{Method: "GET", Path: manifests, Action: fault.Corrupt(50)}, source.ReasonRegistryError, source.Transient, "digest"},
		"ManifestCut":      {fault.Rule{Method: "GET", Path: manifests, Action: fault.Truncate(50)}, source.ReasonRegistryUnreachable, source.Transient, "EOF"},
		"ManifestHuge":     {fault.Rule{Method: "GET", Path: manifests, Action: fault.Replace(make([]byte, maxManifest+1))}, source.ReasonLimitExceeded, source.Terminal, "larger than"},
		"BlobCorrupt":      {fault.Rule{Path: blobs, Action: fault.Corrupt(60_000)}, source.ReasonContentMismatch, source.Transient, "blob sha256:"},
		"BlobCorruptEarly": {fault.Rule{Path: blobs, Action: fault.Corrupt(5)}, source.ReasonContentMismatch, source.Transient, "blob sha256:"},
		"BlobCut":          {fault.Rule{Path: blobs, Action: fault.Truncate(50_000)}, source.ReasonRegistryUnreachable, source.Transient, "after "},
		"BlobReplaced":     {fault.Rule{Path: blobs, Action: fault.Replace([]byte("short"))}, source.ReasonContentMismatch, source.Transient, "blob sha256:"},
		"BlobLonger":       {fault.Rule{Path: blobs, Action: fault.Replace(make([]byte, 500_000))}, source.ReasonContentMismatch, source.Transient, "blob sha256:"},
		"BlobStalls":       {fault.Rule{Path: blobs, Action: registry.Faults.Stall(10_000)}, source.ReasonRegistryUnreachable, source.Transient, "not a byte came for 200ms"},
		"ManifestStalls":   {fault.Rule{Path: manifests, Action: registry.Faults.Stall(0)}, source.ReasonRegistryUnreachable, source.Transient, "not a byte came"},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			fetcher, patient := New(store, Options{StallTimeout: 200 * time.Millisecond}), New(store, Options{})
			if !strings.Contains(name, "Stalls") {
				fetcher = patient
			}
			src := Source{Ref: ref, Insecure: true}
			registry.Faults.Add(tc.rule)
			_, _, err := fetchAll(t, fetcher, src)
			registry.Faults.Clear()
			if source.ReasonOf(err) != tc.reason || source.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %s, %s: %v", source.KindOf(err), source.ReasonOf(err), err)
			}
			if err == nil || !strings.HasPrefix(err.Error(), "oci "+registry.Host()+"/app") || strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("the error must be one line that names the reference: %v", err)
			}
			if _, _, err := fetchAll(t, patient, src); err != nil {
				t.Errorf("after the fault: %v", err)
			}
		})
	}
}

func TestAPassingFaultIsNotEvenNoticed(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	ref := push(t, registry, "app:1", imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer)))
	registry.Faults.Add(fault.Rule{Path: blobs, Times: 1, Action: fault.Status(503)})
	registry.Faults.Add(fault.Rule{Path: manifests, Times: 1, Action: fault.Status(502)})
	if _, _, err := fetchAll(t, New(newStore(t), Options{}), Source{Ref: ref, Insecure: true}); err != nil {
		t.Error(err)
	}
}

func TestRegistryThatIsDownIsTransient(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	ref := push(t, registry, "app:1", imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer)))
	fetcher := New(newStore(t), Options{})
	registry.Stop()
	for _, insecure := range []bool{true, false} {
		_, err := fetcher.Resolve(t.Context(), Source{Ref: ref, Insecure: insecure})
		if source.ReasonOf(err) != source.ReasonRegistryUnreachable || source.KindOf(err) != source.Transient || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("got %v", err)
		}
	}
	_, err := fetcher.Resolve(t.Context(), Source{Ref: "no-such-host.invalid/a:1"})
	if source.ReasonOf(err) != source.ReasonRegistryUnreachable {
		t.Errorf("got %v", err)
	}
	if err := registry.Restart(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fetchAll(t, fetcher, Source{Ref: ref, Insecure: true}); err != nil {
		t.Errorf("after the outage: %v", err)
	}
}

func TestGivingUpIsNotTheRegistrysFault(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	ref := push(t, registry, "app:1", imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer)))
	fetcher := New(newStore(t), Options{})
	pinned, err := fetcher.Resolve(t.Context(), Source{Ref: ref, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	registry.Faults.Add(fault.Rule{Path: blobs, Action: registry.Faults.Stall(0)})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, _, err = fetcher.Fetch(ctx, Source{Ref: ref, Insecure: true}, pinned)
	if source.ReasonOf(err) != source.ReasonCanceled || time.Since(began) > 5*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestBadReferencesAreTerminal(t *testing.T) {
	fetcher := New(nil, Options{})
	for _, ref := range []string{"", "UPPER/case:1", "https://example.com/a:1", "example.com/a@sha256:short", "a b", "example.com/a:", "example.com/a@sha512:" + strings.Repeat("a", 128), "example.com/a\n:1"} {
		_, err := fetcher.Resolve(t.Context(), Source{Ref: ref})
		if source.ReasonOf(err) != source.ReasonInvalidReference || source.KindOf(err) != source.Terminal || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", ref, err)
		}
	}
}

func TestInsecureMeansHTTPAndNothingElseDoes(t *testing.T) {
	plain := ociregistry.New(t, ociregistry.Options{})
	secure := ociregistry.New(t, ociregistry.Options{TLS: true})
	image := imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer))
	overHTTP, overHTTPS := push(t, plain, "app:1", image), push(t, secure, "app:1", image)
	trusting := New(newStore(t), Options{Transport: secure.Transport()})
	for name, tc := range map[string]struct {
		fetcher  *Fetcher
		registry *ociregistry.Registry
		src      Source
		want     string // of the error
	}{
		"HTTPWithInsecure":       {New(newStore(t), Options{}), plain, Source{Ref: overHTTP, Insecure: true}, ""},
		"HTTPWithout":            {New(newStore(t), Options{}), plain, Source{Ref: overHTTP}, "speaks plain HTTP, not HTTPS; set insecure"},
		"HTTPWithoutOnLocalhost": {New(newStore(t), Options{}), plain, Source{Ref: strings.Replace(overHTTP, "127.0.0.1", "localhost", 1)}, "speaks plain HTTP, not HTTPS; set insecure"},
		"HTTPS":                  {trusting, secure, Source{Ref: overHTTPS}, ""},
		"HTTPSWithInsecure":      {trusting, secure, Source{Ref: overHTTPS, Insecure: true}, "400"},
		"HTTPSNotTrusted":        {New(newStore(t), Options{}), secure, Source{Ref: overHTTPS}, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := fetchAll(t, tc.fetcher, tc.src)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// front answers for a registry at an address of its own, as a proxy that sees

// what is sent where.

// fixed is a list of credentials for any registry.

func TestARegistryThatDripsIsLeft(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	ref := push(t, registry, "app:1", imageOf(t, part(tarOf(t, "a", strings.Repeat("x", 100_000)), types.OCIUncompressedLayer)))
	drip := func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Content-Length", "101888")
		for range 200 {
			if _, err := w.Write([]byte("x")); err != nil || r.Context().Err() != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	}
	for name, tc := range map[string]struct {
		path    *regexp.Regexp
		options Options
		want    string
	}{
		"Blob":     {blobs, Options{LayerTimeout: 300 * time.Millisecond}, "did not come within 300ms"},
		"Manifest": {manifests, Options{StallTimeout: 100 * time.Millisecond}, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			registry.Faults.Add(fault.Rule{Method: "GET", Path: tc.path, Action: drip})
			defer registry.Faults.Clear()
			_, _, err := fetchAll(t, New(newStore(t), tc.options), Source{Ref: ref, Insecure: true})
			if source.ReasonOf(err) != source.ReasonRegistryUnreachable || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %s: %v", source.ReasonOf(err), err)
			}
		})
	}
}

func TestOneRegistryDoesNotHoldUpAnother(t *testing.T) {
	slow, quick := ociregistry.New(t, ociregistry.Options{}), ociregistry.New(t, ociregistry.Options{})
	image := imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer))
	fetcher := New(newStore(t), Options{Jobs: 2})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	slow.Faults.Add(fault.Rule{Path: blobs, Method: "GET", Action: slow.Faults.Stall(0)})
	for i := range 4 {
		ref := push(t, slow, fmt.Sprintf("app:%d", i), imageOf(t, part(tarOf(t, "a", fmt.Sprint(i)), types.OCIUncompressedLayer)))
		pinned, err := fetcher.Resolve(t.Context(), Source{Ref: ref, Insecure: true})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if _, _, err := fetcher.Fetch(ctx, Source{Ref: ref, Insecure: true}, pinned); source.ReasonOf(err) != source.ReasonCanceled {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, _, err := fetchAll(t, fetcher, Source{Ref: push(t, quick, "app:1", image), Insecure: true}); err != nil {
		t.Error(err)
	}
	cancel()
	all.Wait()
}
