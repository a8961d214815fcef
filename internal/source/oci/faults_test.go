// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

var (
	manifests = regexp.MustCompile("/manifests/")
	blobs     = regexp.MustCompile("/blobs/")
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
type front struct {
	*httptest.Server
	seen []string // "METHOD path authorization"
}

func newFront(t *testing.T, handle func(w http.ResponseWriter, r *http.Request)) *front {
	t.Helper()
	f := &front{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.seen = append(f.seen, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")))
		handle(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *front) host() string { return strings.TrimPrefix(f.URL, "http://") }

// fixed is a list of credentials for any registry.
type fixed []authn.Authenticator

func (f fixed) Candidates(authn.Resource) []authn.Authenticator { return f }

func basic(user, password string) authn.Authenticator {
	return &authn.Basic{Username: user, Password: password}
}

func TestCredentialsAreTriedInOrder(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{User: "robot", Password: "right-password"})
	good, bad := basic("robot", "right-password"), basic("robot", "wrong-password")
	ref := pushAs(t, registry, "app:1", imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer)), good)
	for name, tc := range map[string]struct {
		candidates Credentials
		want       string
	}{
		"Right":        {fixed{good}, ""},
		"Second":       {fixed{bad, basic("other", "x"), good}, ""},
		"Wrong":        {fixed{bad}, "401 Unauthorized; tried credentials: 1"},
		"None":         {fixed{}, "no pull secret has credentials for it"},
		"NotEvenAList": {nil, "no pull secret has credentials for it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := fetchAll(t, New(newStore(t), Options{}), Source{Ref: ref, Insecure: true, Credentials: tc.candidates})
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if source.ReasonOf(err) != source.ReasonAuthenticationFailed || source.KindOf(err) != source.Waiting || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
			if strings.Contains(err.Error(), "password") {
				t.Errorf("the error shows credentials: %v", err)
			}
		})
	}
}

func TestStaleCredentialsDoNotHidePublicContent(t *testing.T) {
	public := ociregistry.New(t, ociregistry.Options{})
	ref := push(t, public, "app:1", imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer)))
	inner := public.Host()
	front := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		forward(t, w, r, inner)
	})
	src := Source{Ref: strings.Replace(ref, inner, front.host(), 1), Insecure: true, Credentials: fixed{basic("u", "stale")}}
	if _, _, err := fetchAll(t, New(newStore(t), Options{}), src); err != nil {
		t.Error(err)
	}
}

func TestCredentialsAreNotSentWhereARedirectLeads(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	ref := push(t, registry, "app:1", imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer)))
	storage := newFront(t, func(w http.ResponseWriter, r *http.Request) { forward(t, w, r, registry.Host()) })
	for name, challenge := range map[string]string{"Basic": `Basic realm="x"`, "Bearer": "Bearer"} {
		t.Run(name, func(t *testing.T) {
			storage.seen = nil
			var front *front
			front = newFront(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/token":
					_, _ = fmt.Fprint(w, `{"token": "bearer-secret"}`)
				case r.Header.Get("Authorization") == "":
					if challenge == "Bearer" {
						w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="x"`, front.URL))
					} else {
						w.Header().Set("WWW-Authenticate", challenge)
					}
					w.WriteHeader(http.StatusUnauthorized)
				case strings.Contains(r.URL.Path, "/blobs/"):
					http.Redirect(w, r, storage.URL+r.URL.Path+"?signature=signed-secret", http.StatusTemporaryRedirect)
				default:
					forward(t, w, r, registry.Host())
				}
			})
			src := Source{Ref: strings.Replace(ref, registry.Host(), front.host(), 1), Insecure: true, Credentials: fixed{basic("u", "basic-secret")}}
			if _, _, err := fetchAll(t, New(newStore(t), Options{}), src); err != nil {
				t.Fatal(err)
			}
			if len(storage.seen) == 0 {
				t.Fatal("the redirect was not followed")
			}
			for _, line := range storage.seen {
				if len(strings.Fields(line)) != 2 {
					t.Errorf("the storage was sent credentials: %s", line)
				}
			}
		})
	}
}

func TestErrorsShowNoSecrets(t *testing.T) {
	const password = "basic-secret-password"
	encoded := base64.StdEncoding.EncodeToString([]byte("u:" + password))
	registry := ociregistry.New(t, ociregistry.Options{})
	ref := push(t, registry, "app:1", imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer)))
	leaky := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "/blobs/"):
			http.Redirect(w, r, "http://127.0.0.1:1/x?X-Amz-Signature=signed-secret", http.StatusTemporaryRedirect)
		case strings.HasSuffix(r.URL.Path, "/echo"):
			w.WriteHeader(http.StatusBadRequest)
			body, _ := json.Marshal(map[string]any{"errors": []any{map[string]any{"code": "X", "message": "you sent\n" + r.Header.Get("Authorization") + " and " + password}}})
			_, _ = w.Write(body)
		case r.Header.Get("Authorization") == "":
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			forward(t, w, r, registry.Host())
		}
	})
	for _, text := range []string{strings.Replace(ref, registry.Host(), leaky.host(), 1), leaky.host() + "/app:echo"} {
		_, _, err := fetchAll(t, New(newStore(t), Options{}), Source{Ref: text, Insecure: true, Credentials: fixed{basic("u", password)}})
		if err == nil {
			t.Fatal("no error")
		}
		for _, secret := range []string{password, encoded, "signed-secret", "Signature", "\n"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows %q: %v", secret, err)
			}
		}
	}
}

func TestTokenServerThatRefusesIsAnAuthenticationFailure(t *testing.T) {
	var front *front
	front = newFront(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token"`, front.URL))
		w.WriteHeader(http.StatusUnauthorized)
	})
	_, err := New(nil, Options{}).Resolve(t.Context(), Source{Ref: front.host() + "/app:1", Insecure: true, Credentials: fixed{basic("u", "p")}})
	if source.ReasonOf(err) != source.ReasonAuthenticationFailed {
		t.Errorf("got %v", err)
	}
}

func TestRedirectToPlainHTTPIsNotFollowed(t *testing.T) {
	secure := ociregistry.New(t, ociregistry.Options{TLS: true})
	ref := push(t, secure, "app:1", imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer)))
	storage := newFront(t, func(http.ResponseWriter, *http.Request) {})
	secure.Faults.Add(fault.Rule{Path: blobs, Action: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, storage.URL, http.StatusTemporaryRedirect)
	}})
	_, _, err := fetchAll(t, New(newStore(t), Options{Transport: secure.Transport()}), Source{Ref: ref})
	if err == nil || !strings.Contains(err.Error(), "plain HTTP") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string(nil), storage.seen); diff != "" {
		t.Errorf("the storage was asked:\n%s", diff)
	}
}
