// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"

	"rukpak.io/rukpak/internal/source/outbound"
)

// Credentials are what a server may want to see. None are needed.
type Credentials struct {
	Username, Password string
	Token              string      // as a bearer
	Headers            http.Header // any others
	TLS                outbound.TLS

	// Home is the URL of the server that they are for; nil means that of the
	// request.
	Home *url.URL
	// Anywhere sends them to whatever server is asked.
	Anywhere bool
}

func (c *Credentials) empty() bool {
	return c.Username == "" && c.Password == "" && c.Token == "" && len(c.Headers) == 0
}

func (c *Credentials) apply(request *http.Request) {
	for name, values := range c.Headers {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	switch {
	case c.Token != "":
		request.Header.Set("Authorization", "Bearer "+c.Token)
	case c.Username != "" || c.Password != "":
		request.SetBasicAuth(c.Username, c.Password)
	}
}

// way is one request and those that its answers redirect to.
type way struct {
	client      *Client
	first       *url.URL
	credentials Credentials
	public      atomic.Bool // the first server has a public address
}

var errPlainHTTP = errors.New("it redirects to plain HTTP, which is not followed")

// follow judges a redirect before anything is sent.
func (w *way) follow(next *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return &redirectError{fmt.Errorf("it redirects more than %d times", maxRedirects)}
	case next.URL.Scheme == "http" && w.first.Scheme != "http", next.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https":
		return &redirectError{errPlainHTTP}
	case next.URL.Scheme != "http" && next.URL.Scheme != "https":
		return &redirectError{errors.New("it redirects to something else than HTTP and HTTPS")}
	}
	return nil
}

// foreign tells whether credentials stay away from a server.
func (w *way) foreign(to *url.URL) bool {
	home := w.credentials.Home
	if home == nil {
		home = w.first
	}
	return !w.credentials.Anywhere && origin(to) != origin(home)
}

// origin is the scheme, host and port of a URL.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// RoundTrip sends one request with just what its server may see.
func (w *way) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := request.Clone(request.Context())
	sent.Header.Del("Referer") // a URL may hold a signature
	sent.Header.Del("Authorization")
	with := w.credentials.TLS
	if w.foreign(sent.URL) {
		with = outbound.TLS{CA: with.CA}
	} else {
		w.credentials.apply(sent)
	}
	first := origin(sent.URL) == origin(w.first)
	transport, err := w.client.options.Transports.Get(with, !first && w.public.Load())
	if err != nil {
		return nil, err
	}
	if first {
		sent = sent.WithContext(httptrace.WithClientTrace(sent.Context(), &httptrace.ClientTrace{GotConn: w.connected}))
	}
	return outbound.Watched(transport, w.client.options.Stall).RoundTrip(sent)
}

// connected remembers what kind of address the first server has.
func (w *way) connected(info httptrace.GotConnInfo) {
	at, err := netip.ParseAddrPort(info.Conn.RemoteAddr().String())
	w.public.Store(err == nil && !w.client.options.private(at.Addr()))
}
