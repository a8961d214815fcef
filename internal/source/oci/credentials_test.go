// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

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
