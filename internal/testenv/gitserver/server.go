// SPDX-License-Identifier: Apache-2.0

// Package gitserver runs real git servers for tests: git's own HTTP backend
// below this process, and OpenSSH. They play the source at the beginning of
// RukPak's flow, and can be made to fail in every way that servers do.
package gitserver

import (
	"crypto/subtle"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/pki"
	"rukpak.io/rukpak/internal/testenv/process"
)

// Options say what a server is like. The zero value speaks plain HTTP and asks nobody who it is.
type Options struct {
	TLS            bool   // serve HTTPS with a certificate signed by an authority of its own, see CA
	User, Password string // ask for these (HTTP basic authentication) when User is set
	Token          string // ask for this bearer token when it is set
	OldProtocol    bool   // speak version 0 of git's protocol, as servers did before 2018
}

// Server serves the repositories below Root by HTTP on the loopback address.
type Server struct {
	// Root is the folder of the repositories; SSH servers may serve it too.
	Root string
	// Faults are what goes wrong with requests; none at first.
	Faults fault.Injector

	address string
	ca      []byte
	secure  bool

	mu       sync.Mutex
	requests []Request
}

// Request is one request as it arrived, faults and refused ones included.
type Request struct {
	Method, Path  string
	Authorization string // the header
}

// New starts a server that ends with the test.
func New(t testing.TB, options Options) *Server {
	t.Helper()
	s := &Server{Root: t.TempDir(), secure: options.TLS}
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	server.Handler = s.record(s.Faults.Wrap(authenticate(options, backend(t, s.Root, options.OldProtocol))))
	if options.TLS {
		s.certify(t, server)
	}
	port, err := process.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", port.Address())
	if err != nil {
		t.Fatal(err)
	}
	s.address = port.Address()
	serve := func() error { return server.Serve(listener) }
	if options.TLS {
		serve = func() error { return server.ServeTLS(listener, "", "") }
	}
	go func() { _ = serve() }() // it always ends in an error, that of being closed
	t.Cleanup(func() {
		s.Faults.Clear()
		_ = server.Close()
		port.Release()
	})
	return s
}

func (s *Server) certify(t testing.TB, server *http.Server) {
	t.Helper()
	authority, err := pki.New("gitserver")
	if err != nil {
		t.Fatal(err)
	}
	serving, err := authority.Serving("gitserver")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(serving.Certificate, serving.Key)
	if err != nil {
		t.Fatal(err)
	}
	s.ca = authority.PEM
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
}

// backend runs git for each request.
func backend(t testing.TB, root string, old bool) http.Handler {
	t.Helper()
	core, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Skipf("SKIPPED: git is not installed: %v", err)
	}
	program := filepath.Join(strings.TrimSpace(string(core)), "git-http-backend")
	next := &cgi.Handler{
		Path:   program,
		Env:    append([]string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}, environment()...),
		Stderr: io.Discard,
		Logger: log.New(io.Discard, "", 0),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if old {
			r.Header.Del("Git-Protocol")
		}
		next.ServeHTTP(w, r)
	})
}

func authenticate(options Options, next http.Handler) http.Handler {
	if options.User == "" && options.Token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if options.User != "" && same(user, options.User) && same(password, options.Password) || options.Token != "" && same(token, options.Token) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="gitserver"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
}

func same(got, want string) bool { return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1 }

// record keeps what is asked.
func (s *Server) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, Request{r.Method, r.URL.Path, r.Header.Get("Authorization")})
		s.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// Requests gives all requests since the start or the last ForgetRequests, in the order of their arrival.
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

// URL gives that of a repository, or of anything else on the server.
func (s *Server) URL(name string) string {
	if s.secure {
		return "https://" + s.address + "/" + name
	}
	return "http://" + s.address + "/" + name
}

// CA gives the certificate, in PEM, of the authority to trust; nil for a server without TLS.
func (s *Server) CA() []byte { return s.ca }
