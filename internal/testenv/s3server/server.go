// SPDX-License-Identifier: Apache-2.0

// Package s3server runs a real S3 server (versitygw on a folder) for tests: it checks signatures, lists, keeps versions
// and takes multipart uploads. In front of it stands a proxy of this process, which speaks TLS if asked to, records
// requests and makes them fail in every way that such services do. It plays the source at the beginning of RukPak's
// flow, or the place where content is kept.
package s3server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/pki"
	"rukpak.io/rukpak/internal/testenv/process"
)

// Region is where the server says it is.
const Region = "eu-test-1"

// Options say what a server is like. The zero value speaks plain HTTP, to the user "tester" with the password
// "testing-only".
type Options struct {
	TLS            bool   // serve HTTPS with a certificate signed by an authority of its own, see CA
	User, Password string // access key and secret key of the user who owns all
}

// Request is one request as it arrived, faults and refused ones included.
type Request struct {
	Method string
	Path   string // with the query
	Header http.Header
}

// Server is an S3 server on the loopback address.
type Server struct {
	// Faults are what goes wrong with requests; none at first.
	Faults fault.Injector

	options  Options
	dir      *process.Dir
	port     *process.Port
	child    *process.Process
	front    *http.Server
	endpoint string
	ca       []byte

	mu       sync.Mutex
	requests []Request
}

// New starts a server that ends with the test. The first use on a machine builds it, which takes some minutes.
func New(t testing.TB, options Options) *Server {
	t.Helper()
	server, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// Start starts a server. Close ends it.
func Start(ctx context.Context, options Options) (*Server, error) {
	if options.User == "" {
		options.User, options.Password = "tester", "testing-only"
	}
	path, err := Program(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{options: options}
	if err := errors.Join(s.run(path), s.serve()); err != nil {
		s.Close()
		return nil, fmt.Errorf("S3 server: %w", err)
	}
	if err := s.await(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("S3 server: %w", err)
	}
	return s, nil
}

// run starts the process behind the proxy.
func (s *Server) run(path string) (err error) {
	if s.dir, err = process.TempDir(); err != nil {
		return err
	}
	if s.port, err = process.ReservePort(); err != nil {
		return err
	}
	objects, versions := filepath.Join(s.dir.Path, "objects"), filepath.Join(s.dir.Path, "versions")
	for _, dir := range []string{objects, versions} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	s.child, err = process.Start(process.Spec{
		Name: "s3server", Path: path, Dir: s.dir.Path,
		Env:  []string{"ROOT_ACCESS_KEY=" + s.options.User, "ROOT_SECRET_KEY=" + s.options.Password},
		Args: []string{"--quiet", "--keep-alive", "--port", s.port.Address(), "--region", Region, "posix", "--versioning-dir", versions, objects},
	})
	return err
}

// serve puts the proxy in front.
func (s *Server) serve() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	quiet := log.New(io.Discard, "", 0)
	behind := &url.URL{Scheme: "http", Host: s.port.Address()}
	proxy := &httputil.ReverseProxy{
		ErrorLog:      quiet,
		FlushInterval: -1,
		Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 32},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(behind)
			r.Out.Host = r.In.Host // it is part of what is signed
		},
	}
	s.front = &http.Server{Handler: s.log(s.Faults.Wrap(proxy)), ReadHeaderTimeout: time.Minute, ErrorLog: quiet}
	s.endpoint = "http://" + listener.Addr().String()
	serve := func() error { return s.front.Serve(listener) }
	if s.options.TLS {
		if err := s.certify(); err != nil {
			return errors.Join(err, listener.Close())
		}
		s.endpoint = "https://" + listener.Addr().String()
		serve = func() error { return s.front.ServeTLS(listener, "", "") }
	}
	go func() { _ = serve() }() // it always ends in an error, that of being closed
	return nil
}

func (s *Server) certify() error {
	authority, err := pki.New("s3server")
	if err != nil {
		return err
	}
	serving, err := authority.Serving("s3server")
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(serving.Certificate, serving.Key)
	s.ca = authority.PEM
	s.front.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return err
}

// await waits until the process answers.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.port.Address()+"/", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			return response.Body.Close()
		}
		select {
		case <-s.child.Done():
			return fmt.Errorf("it ended: %w", s.child.Err())
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *Server) log(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, Request{r.Method, r.URL.RequestURI(), r.Header.Clone()})
		s.mu.Unlock()
		next.ServeHTTP(w, r)
	})
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

// Endpoint is the URL of the server.
func (s *Server) Endpoint() string { return s.endpoint }

// CA is the certificate, in PEM, of the authority to trust; nil for a server without TLS.
func (s *Server) CA() []byte { return s.ca }

// User and Password are the access key and the secret key of the owner.
func (s *Server) User() string { return s.options.User }

// Password is the secret key of the owner.
func (s *Server) Password() string { return s.options.Password }

// Close ends the server and removes what it held.
func (s *Server) Close() {
	s.Faults.Clear()
	if s.front != nil {
		_ = s.front.Close() // the test is over
	}
	if s.child != nil {
		s.child.Stop(time.Second)
	}
	if s.port != nil {
		s.port.Release()
	}
	if s.dir != nil {
		_ = s.dir.Close()
	}
}
