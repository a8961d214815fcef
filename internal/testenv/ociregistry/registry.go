// SPDX-License-Identifier: Apache-2.0

// Package ociregistry is a real OCI registry (the CNCF distribution project's) inside this process, for tests and
// `make demo`. It plays the source at the beginning of RukPak's flow, and can be made to fail in every way that
// registries do.
package ociregistry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem" // storage named in the configuration
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"   // storage named in the configuration
	"github.com/sirupsen/logrus"

	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/pki"
	"rukpak.io/rukpak/internal/testenv/process"
)

// Options say what a registry is like. The zero value keeps all in memory, speaks plain HTTP and asks nobody who it is.
type Options struct {
	Dir            string // folder that blobs are kept in; empty for memory
	TLS            bool   // serve HTTPS with a certificate signed by an authority of its own, see CA
	Clients        bool   // with TLS, ask for a certificate signed by that authority, see Client
	User, Password string // ask for these (HTTP basic authentication) when User is set
}

// Registry is a registry that listens on the loopback address.
type Registry struct {
	// Faults are what goes wrong with requests; none at first.
	Faults fault.Injector

	port    *process.Port
	handler http.Handler
	log     requestLog
	ca      []byte
	client  pki.Pair
	tls     *tls.Config
	close   func() error // of the running server; nil when stopped
}

// New starts a registry that ends with the test.
func New(t testing.TB, options Options) *Registry {
	t.Helper()
	registry, err := Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(registry.Close)
	return registry
}

// Start starts a registry. Close ends it for good; Stop and Restart are its outages.
func Start(options Options) (*Registry, error) {
	logrus.SetOutput(io.Discard) // the registry knows no other logger than the one of the whole process
	port, err := process.ReservePort()
	if err != nil {
		return nil, err
	}
	registry := &Registry{port: port}
	if options.TLS {
		if err := registry.certify(options.Clients); err != nil {
			return nil, err
		}
	}
	app := handlers.NewApp(context.Background(), storage(options.Dir))
	registry.handler = registry.log.wrap(registry.Faults.Wrap(authenticate(options.User, options.Password, app)))
	if err := registry.Restart(); err != nil {
		port.Release()
		return nil, err
	}
	return registry, nil
}

func storage(dir string) *configuration.Configuration {
	config := &configuration.Configuration{}
	config.Catalog.MaxEntries = 1000
	config.HTTP.Secret = "of no use to anybody: it signs the uploads of this process"
	config.Storage = configuration.Storage{
		"delete":      configuration.Parameters{"enabled": true},
		"maintenance": configuration.Parameters{"uploadpurging": map[any]any{"enabled": false}},
	}
	if dir == "" {
		config.Storage["inmemory"] = configuration.Parameters{}
	} else {
		config.Storage["filesystem"] = configuration.Parameters{"rootdirectory": dir}
	}
	return config
}

func (r *Registry) certify(clients bool) error {
	authority, err := pki.New("ociregistry")
	if err != nil {
		return err
	}
	serving, err := authority.Serving("ociregistry")
	if err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair(serving.Certificate, serving.Key)
	if err != nil {
		return err
	}
	r.ca = authority.PEM
	r.tls = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	if clients {
		if r.client, err = authority.Client("ociregistry-user"); err != nil {
			return err
		}
		r.tls.ClientAuth = tls.RequireAndVerifyClientCert
		r.tls.ClientCAs = x509.NewCertPool()
		r.tls.ClientCAs.AppendCertsFromPEM(authority.PEM)
	}
	return nil
}

// Host returns what stands before the repository in a reference: "127.0.0.1:<port>".
func (r *Registry) Host() string { return r.port.Address() }

// CA returns the certificate, in PEM, of the authority to trust; nil for a registry without TLS.
func (r *Registry) CA() []byte { return r.ca }

// Client returns a certificate that the registry lets pass, in PEM; empty unless it asks for one.
func (r *Registry) Client() pki.Pair { return r.client }

// Transport returns a transport that trusts the registry, and that it trusts.
func (r *Registry) Transport() http.RoundTripper {
	transport := &http.Transport{ForceAttemptHTTP2: true}
	if r.ca != nil {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(r.ca)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		if pair, err := tls.X509KeyPair(r.client.Certificate, r.client.Key); err == nil {
			transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
		}
	}
	return transport
}

// Stop makes the registry unreachable: connections break, new ones are refused. What it holds stays.
func (r *Registry) Stop() {
	if r.close != nil {
		_ = r.close()
		r.close = nil
	}
}

// Restart listens again at the same address.
func (r *Registry) Restart() error {
	if r.close != nil {
		return errors.New("the registry runs already")
	}
	listener, err := net.Listen("tcp", r.Host())
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	server := &http.Server{Handler: r.handler, TLSConfig: r.tls, ErrorLog: quiet(), ReadHeaderTimeout: time.Minute}
	serve := func() error { return server.Serve(listener) }
	if r.tls != nil {
		serve = func() error { return server.ServeTLS(listener, "", "") }
	}
	go func() { _ = serve() }() // it always ends in an error, that of being closed
	r.close = server.Close
	return nil
}

// Close ends the registry.
func (r *Registry) Close() {
	r.Faults.Clear()
	r.Stop()
	r.port.Release()
}
