// SPDX-License-Identifier: Apache-2.0

// Package webserver is a real web server inside this process, for tests: files with strong ETags, over HTTP or HTTPS,
// open to all or to those who show credentials. It plays the source at the beginning of RukPak's flow, and can be made
// to fail in every way that web servers do.
package webserver

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/pki"
)

// Options say what a server is like. The zero value speaks plain HTTP at 127.0.0.1 and asks nobody who it is.
type Options struct {
	TLS            bool
	ClientCA       []byte // with TLS: only clients with a certificate of this authority, in PEM, are let in
	User, Password string // ask for these when User is set
	Token          string // or for this bearer
	Address        string // to listen at; empty for "127.0.0.1"
	WeakETags      bool
}

// Request is one request as it arrived, faults and refused ones included.
type Request struct {
	Method string
	Path   string // with the query
	Header http.Header
}

// Server is a web server.
type Server struct {
	// Faults are what goes wrong with requests; none at first.
	Faults fault.Injector

	options Options
	scheme  string
	host    string
	ca      []byte

	mu       sync.Mutex
	files    map[string][]byte
	requests []Request
}

// New starts a server that ends with the test.
func New(t testing.TB, options Options) *Server {
	t.Helper()
	server := &Server{options: options, scheme: "http", files: map[string][]byte{}}
	if options.Address == "" {
		options.Address = "127.0.0.1"
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(options.Address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server.host = listener.Addr().String()
	serving := &http.Server{Handler: server.log(server.Faults.Wrap(server.authenticate(http.HandlerFunc(server.file)))),
		ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	serve := func() error { return serving.Serve(listener) }
	if options.TLS {
		server.scheme = "https"
		if serving.TLSConfig, err = server.certify(); err != nil {
			t.Fatal(err)
		}
		serve = func() error { return serving.ServeTLS(listener, "", "") }
	}
	go func() { _ = serve() }() // it always ends in an error, that of being closed
	t.Cleanup(func() {
		server.Faults.Clear()
		_ = serving.Close() // the test is over
	})
	return server
}

func (s *Server) certify() (*tls.Config, error) {
	authority, err := pki.New("webserver")
	if err != nil {
		return nil, err
	}
	s.ca = authority.PEM
	serving, err := authority.Serving("webserver")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(serving.Certificate, serving.Key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if s.options.ClientCA != nil {
		config.ClientCAs = x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM(s.options.ClientCA)
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// Host is "127.0.0.1:<port>".
func (s *Server) Host() string { return s.host }

// CA is the certificate, in PEM, of the authority to trust; nil for a server without TLS.
func (s *Server) CA() []byte { return s.ca }

// URL gives that of a path.
func (s *Server) URL(path string) string { return s.scheme + "://" + s.host + path }

// Put makes a file that the path then has, and gives its URL.
func (s *Server) Put(path string, content []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = content
	return s.URL((&url.URL{Path: path}).EscapedPath())
}

// Requests gives all requests since the start or the last ForgetRequests.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ForgetRequests begins the list of requests anew.
func (s *Server) ForgetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

func (s *Server) log(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, Request{r.Method, r.URL.RequestURI(), r.Header.Clone()})
		s.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case s.options.User == "" && s.options.Token == "",
			s.options.User != "" && same(user, s.options.User) && same(password, s.options.Password),
			s.options.Token != "" && same(r.Header.Get("Authorization"), "Bearer "+s.options.Token):
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("WWW-Authenticate", `Basic realm="webserver"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
		}
	})
}

func same(got, want string) bool { return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1 }

// file answers as net/http does for files: with conditions and ranges.
func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	content, ok := s.files[r.URL.Path]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	etag := fmt.Sprintf(`"%x"`, sha256.Sum256(content))
	if s.options.WeakETags {
		etag = "W/" + etag
	}
	w.Header().Set("ETag", etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// Redirect leads requests to a URL.
func Redirect(to string) fault.Action {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, to, http.StatusFound)
	}
}
