// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"rukpak.io/rukpak/internal/registry/reach"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/outbound"
)

// service is something inside that answers whoever reaches it.
func service(t *testing.T) (server *httptest.Server, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(`{"password": "hunter2"}`)) // who does not want it has gone
	}))
	t.Cleanup(server.Close)
	return server, asked
}

// registryThat is a registry of a tenant's own, at an address that plays a public one.
func registryThat(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: answer}} //nolint:gosec // of a test
	server.Start()
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/app:1"
}

// ways are that of a manager without rules, and with them.
func ways() map[string]Options {
	plain := Options{Transport: outbound.NewTransport(false), Onward: outbound.NewTransport(true)}
	ruled := plain
	ruled.Registries = reach.Fixed(rules.NewSet([]rules.Rule{{Prefix: "*", From: "all"}, {Prefix: "nobody.example.com", From: "nobody", Blocked: true}}, nil), outbound.NewTransport(false))
	empty := plain
	empty.Registries = reach.Fixed(&rules.Set{}, outbound.NewTransport(false))
	return map[string]Options{"NoRules": plain, "EmptyRules": empty, "Rules": ruled}
}

func realm(where string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q`, where))
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// byName hides an address behind a name: go-containerregistry looks at realms, and not at what names stand for.
func byName(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }

func TestARegistryDoesNotLeadToAMetadataService(t *testing.T) {
	for name, options := range ways() {
		for what, answer := range map[string]http.HandlerFunc{
			"Redirect": http.RedirectHandler("http://169.254.169.254/latest/meta-data/", http.StatusFound).ServeHTTP,
		} {
			_, _, err := fetchAll(t, New(newStore(t), options), Source{Ref: registryThat(t, answer), Insecure: true})
			if source.KindOf(err) != source.Waiting || err == nil || !strings.Contains(err.Error(), "metadata service") {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		_, _, err := fetchAll(t, New(newStore(t), options), Source{Ref: "169.254.169.254/latest:1", Insecure: true})
		if err == nil || !strings.Contains(err.Error(), "metadata service") {
			t.Errorf("%s, named: %v", name, err)
		}
	}
}

func TestAPublicRegistryDoesNotLeadInside(t *testing.T) {
	for name, options := range ways() {
		if name == "Rules" {
			continue // one about all hosts says that all may be reached
		}
		inside, asked := service(t)
		options.private = func(a netip.Addr) bool { return a != netip.MustParseAddr("127.0.0.2") }
		for what, answer := range map[string]http.HandlerFunc{
			"Realm":    realm(byName(inside.URL)),
			"Redirect": http.RedirectHandler(inside.URL, http.StatusFound).ServeHTTP,
		} {
			_, _, err := fetchAll(t, New(newStore(t), options), Source{Ref: registryThat(t, answer), Insecure: true})
			if err == nil || !strings.Contains(err.Error(), "not public") || asked.Load() != 0 {
				t.Errorf("%s, %s: %v, asked %d times", name, what, err, asked.Load())
			}
		}
	}
}

// TestWhatATokenServerSaysIsNotShown lets a registry name as its token server one inside, which the tenant cannot reach.
func TestWhatATokenServerSaysIsNotShown(t *testing.T) {
	for name, options := range ways() {
		inside, asked := service(t)
		_, _, err := fetchAll(t, New(newStore(t), options), Source{Ref: registryThat(t, realm(byName(inside.URL))), Insecure: true})
		if asked.Load() == 0 || err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "holds no token") {
			t.Errorf("%s: asked %d times: %v", name, asked.Load(), err)
		}
	}
}

func TestABlockedHostIsNotReachedByWayOfAnother(t *testing.T) {
	options := ways()["Rules"]
	options.Registries.Replace(rules.NewSet([]rules.Rule{{Prefix: "nobody.example.com", From: "nobody", Blocked: true}}, nil))
	for what, answer := range map[string]http.HandlerFunc{
		"Realm":    realm("http://nobody.example.com/token"),
		"Redirect": http.RedirectHandler("http://nobody.example.com/x", http.StatusFound).ServeHTTP,
	} {
		_, _, err := fetchAll(t, New(newStore(t), options), Source{Ref: registryThat(t, answer), Insecure: true})
		if source.ReasonOf(err) != source.ReasonBlocked {
			t.Errorf("%s: %v", what, err)
		}
	}
}
