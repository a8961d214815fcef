// SPDX-License-Identifier: Apache-2.0

// Package forwardproxy is an HTTP forward proxy on the loopback address, for
// tests: it tunnels with CONNECT, forwards plain HTTP, asks for credentials if it
// is to, and knows names that nobody else does. It stands between RukPak's
// sources, the beginning of its flow, and the servers that tests play.
package forwardproxy

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Proxy is a running proxy.
type Proxy struct {
	server    *httptest.Server
	hosts     map[string]string
	user      string
	password  string
	transport http.Transport

	mu   sync.Mutex
	seen []string
}

// Options say what a proxy is like.
type Options struct {
	// Hosts are names that only the proxy knows, and the addresses that it
	// connects to instead: "registry.test:443" to "127.0.0.1:5000".
	Hosts map[string]string
	// User and Password are asked for when User is set.
	User, Password string
}

// New starts a proxy that ends with the test.
func New(t testing.TB, options Options) *Proxy {
	t.Helper()
	p := &Proxy{hosts: options.Hosts, user: options.User, password: options.Password}
	p.server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(func() {
		p.server.Close()
		p.transport.CloseIdleConnections()
	})
	return p
}

// URL of the proxy, "http://127.0.0.1:<port>".
func (p *Proxy) URL() string { return p.server.URL }

// Seen gives what went through, in order: "CONNECT host:port" or "GET http://...".
func (p *Proxy) Seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.seen...)
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	if !p.allowed(r) {
		w.Header().Set("Proxy-Authenticate", `Basic realm="forwardproxy"`)
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	target := r.Host
	if r.Method != http.MethodConnect {
		target = r.URL.String()
	}
	p.mu.Lock()
	p.seen = append(p.seen, r.Method+" "+target)
	p.mu.Unlock()
	if r.Method == http.MethodConnect {
		p.tunnel(w, r)
		return
	}
	p.forward(w, r)
}

func (p *Proxy) allowed(r *http.Request) bool {
	if p.user == "" {
		return true
	}
	encoded, ok := strings.CutPrefix(r.Header.Get("Proxy-Authorization"), "Basic ")
	text, err := base64.StdEncoding.DecodeString(encoded)
	return ok && err == nil && string(text) == p.user+":"+p.password
}

func (p *Proxy) address(host string) string {
	if known, ok := p.hosts[host]; ok {
		return known
	}
	return host
}

func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	far, err := net.Dial("tcp", p.address(r.Host))
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer far.Close() //nolint:errcheck // its end is the end of the tunnel
	w.WriteHeader(http.StatusOK)
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close() //nolint:errcheck // as above
	done := make(chan struct{}, 2)
	pipe := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from) // either side may go at any time
		done <- struct{}{}
	}
	go pipe(far, buffered)
	go pipe(near, far)
	<-done
}

func (p *Proxy) forward(w http.ResponseWriter, r *http.Request) {
	sent := r.Clone(r.Context())
	sent.RequestURI = ""
	sent.Header.Del("Proxy-Authorization")
	sent.Header.Del("Proxy-Connection")
	sent.URL.Host = p.address(r.URL.Host)
	sent.Host = r.URL.Host
	response, err := p.transport.RoundTrip(sent)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	for key, values := range response.Header {
		w.Header()[key] = values
	}
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body) // the client may have gone
}
