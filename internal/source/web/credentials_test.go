// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/outbound"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/pki"
	"rukpak.io/rukpak/internal/testenv/webserver"
	"rukpak.io/rukpak/internal/unpack"
)

func TestCredentialsOpenAServer(t *testing.T) {
	basic := webserver.New(t, webserver.Options{User: "ann", Password: "hunter2"})
	bearer := webserver.New(t, webserver.Options{Token: "hunter2"})
	for name, tc := range map[string]struct {
		server      *webserver.Server
		credentials Credentials
		ok          bool
	}{
		"Basic":        {basic, Credentials{Username: "ann", Password: "hunter2"}, true},
		"BasicWrong":   {basic, Credentials{Username: "ann", Password: "hunter3"}, false},
		"BasicNone":    {basic, Credentials{}, false},
		"Bearer":       {bearer, Credentials{Token: "hunter2"}, true},
		"BearerWrong":  {bearer, Credentials{Token: "hunter3"}, false},
		"BearerHeader": {bearer, Credentials{Headers: http.Header{"authorization": {"Bearer hunter2"}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			src := Source{URL: tc.server.Put("/a", []byte("x")), Insecure: true, Credentials: tc.credentials}
			_, err := get(t, New(NewClient(Options{})), src, newStore(t), unpack.Limits{})
			if tc.ok != (err == nil) || err != nil && (source.ReasonOf(err) != source.ReasonAuthenticationFailed || strings.Contains(err.Error(), "hunter")) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCredentialsStayWithTheirServer(t *testing.T) {
	credentials := Credentials{Username: "ann", Password: "hunter2", Headers: http.Header{"Private-Token": {"hunter2"}, "Cookie": {"hunter2"}}}
	shown := func(r webserver.Request) bool {
		return r.Header.Get("Authorization") != "" || r.Header.Get("Private-Token") != "" || r.Header.Get("Cookie") != ""
	}
	for name, tc := range map[string]struct {
		anywhere bool
		same     bool
		want     bool
	}{
		"AnotherPort":         {false, false, false},
		"AnotherPortAnywhere": {true, false, true},
		"SameServer":          {false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			home, other := webserver.New(t, webserver.Options{User: "ann", Password: "hunter2"}), webserver.New(t, webserver.Options{})
			to := other
			if tc.same {
				to = home
			}
			target := to.Put("/target", []byte("x"))
			home.Faults.Add(fault.Rule{Times: 1, Action: webserver.Redirect(target)})
			src := Source{URL: home.URL("/a") + "?signature=hunter2", Insecure: true, Credentials: credentials}
			src.Credentials.Anywhere = tc.anywhere
			if _, err := get(t, New(NewClient(Options{})), src, newStore(t), unpack.Limits{}); err != nil {
				t.Fatal(err)
			}
			requests := to.Requests()
			last := requests[len(requests)-1]
			if shown(last) != tc.want || last.Header.Get("Referer") != "" {
				t.Errorf("the server saw %v", last.Header)
			}
		})
	}
}

func TestAServerThatDoesNotGetTheCredentialsIsNamed(t *testing.T) {
	home, other := webserver.New(t, webserver.Options{}), webserver.New(t, webserver.Options{User: "ann", Password: "hunter2"})
	home.Faults.Add(fault.Rule{Action: webserver.Redirect(other.Put("/a", []byte("x")))})
	src := Source{URL: home.URL("/a"), Insecure: true, Credentials: Credentials{Username: "ann", Password: "hunter2"}}
	_, err := get(t, New(NewClient(Options{})), src, newStore(t), unpack.Limits{})
	if source.ReasonOf(err) != source.ReasonAuthenticationFailed || !strings.Contains(err.Error(), other.Host()+" answers 401") || !strings.Contains(err.Error(), "were not sent to this one") {
		t.Errorf("got %v", err)
	}
}

func TestHTTPSIsNeverLeft(t *testing.T) {
	secure, plain := webserver.New(t, webserver.Options{TLS: true}), webserver.New(t, webserver.Options{})
	target := plain.Put("/a", []byte("x"))
	secure.Faults.Add(fault.Rule{Action: webserver.Redirect(target)})
	for _, insecure := range []bool{false, true} {
		src := Source{URL: secure.URL("/a"), Insecure: insecure, Credentials: Credentials{TLS: outbound.TLS{CA: secure.CA()}}}
		_, err := get(t, New(NewClient(Options{})), src, newStore(t), unpack.Limits{})
		if source.ReasonOf(err) != source.ReasonSourceError || !strings.Contains(err.Error(), "plain HTTP, which is not followed") {
			t.Errorf("insecure %v: got %v", insecure, err)
		}
	}
	if len(plain.Requests()) != 0 {
		t.Error("the plain server was asked")
	}
	plain.Faults.Add(fault.Rule{Times: 1, Action: webserver.Redirect(secure.URL("/b"))})
	secure.Faults.Clear()
	secure.Put("/b", []byte("x"))
	secure.Faults.Add(fault.Rule{Times: 1, Action: webserver.Redirect(target)})
	src := Source{URL: target, Insecure: true, Credentials: Credentials{TLS: outbound.TLS{CA: secure.CA()}}}
	if _, err := get(t, New(NewClient(Options{})), src, newStore(t), unpack.Limits{}); source.ReasonOf(err) != source.ReasonSourceError {
		t.Errorf("there and back: got %v", err)
	}
}

func TestCertificates(t *testing.T) {
	authority, err := pki.New("clients")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Client("ann")
	if err != nil {
		t.Fatal(err)
	}
	server := webserver.New(t, webserver.Options{TLS: true})
	mutual := webserver.New(t, webserver.Options{TLS: true, ClientCA: authority.PEM})
	plain := webserver.New(t, webserver.Options{})
	for name, tc := range map[string]struct {
		url  string
		tls  outbound.TLS
		want string
	}{
		"Trusted":    {server.Put("/a", []byte("x")), outbound.TLS{CA: server.CA()}, ""},
		"NotTrusted": {server.Put("/a", []byte("x")), outbound.TLS{}, "give its certificate with the key ca.crt"},
		"AnotherCA":  {server.Put("/a", []byte("x")), outbound.TLS{CA: authority.PEM}, "give its certificate with the key ca.crt"},
		"Mutual":     {mutual.Put("/a", []byte("x")), outbound.TLS{CA: mutual.CA(), Certificate: pair.Certificate, Key: pair.Key}, ""},
		"MutualNone": {mutual.Put("/a", []byte("x")), outbound.TLS{CA: mutual.CA()}, mutual.Host()},
		"PlainHTTP":  {strings.Replace(plain.Put("/a", []byte("x")), "http:", "https:", 1), outbound.TLS{}, "speaks plain HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := get(t, New(NewClient(Options{})), Source{URL: tc.url, Credentials: Credentials{TLS: tc.tls}}, newStore(t), unpack.Limits{})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if strings.Contains(tc.want, "ca.crt") && (source.ReasonOf(err) != source.ReasonUntrustedServer || source.KindOf(err) != source.Waiting) {
				t.Errorf("got %s, %s", source.KindOf(err), source.ReasonOf(err))
			}
		})
	}
}

func TestAPublicServerDoesNotLeadInside(t *testing.T) {
	public := webserver.New(t, webserver.Options{Address: "127.0.0.2"}) // plays one
	inside := webserver.New(t, webserver.Options{})
	public.Faults.Add(fault.Rule{Action: webserver.Redirect(inside.Put("/a", []byte("secret")))})
	src := Source{URL: public.URL("/a"), Insecure: true}
	options := Options{private: func(a netip.Addr) bool { return a != netip.MustParseAddr("127.0.0.2") }}
	_, err := get(t, New(NewClient(options)), src, newStore(t), unpack.Limits{})
	if source.ReasonOf(err) != source.ReasonSourceError || !strings.Contains(err.Error(), "not public") || len(inside.Requests()) != 0 {
		t.Errorf("got %v, %d requests", err, len(inside.Requests()))
	}
	if _, err := get(t, New(NewClient(Options{})), src, newStore(t), unpack.Limits{}); err != nil {
		t.Errorf("one inside server to another: %v", err)
	}
}
