// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/unpack"
)

// Contents is what the server needs of the content store.
type Contents interface {
	// Open gives the read-only view of a tree; see content.Store.
	Open(ctx context.Context, tree digest.Digest) (fs.FS, error)
	// Has tells whether the whole tree is there.
	Has(tree digest.Digest) bool
	// Begin opens a session that writes, for uploads.
	Begin() (*content.Session, error)
}

// Metrics counts requests.
type Metrics interface {
	// Served is told of each request for content: what of, and the HTTP status.
	Served(resource string, status int, took time.Duration)
}

// Config is what a Server is made of.
type Config struct {
	Address   string // where to listen, such as ":8443"
	Advertise string // address of this Pod, told to the Service's EndpointSlice; "" where others do that
	// Artifacts is where a server of Artifacts listens, told to the Service too;
	// "" or "0" for nowhere.
	Artifacts string
	API       kubernetes.Interface
	Client    client.Client // cached reads of Bundles and InstanceRevisions
	Live      client.Client // uncached, for Secrets and for what makes the server known
	Contents  Contents
	// Lost is told which Bundle's content is asked for and not in the store. It
	// is to be fetched again.
	Lost    func(types.NamespacedName)
	Limits  unpack.Limits // on one upload
	Jobs    Jobs          // of provisioners outside of the manager; nil if there are none
	Metrics Metrics
	Log     logr.Logger
}

// Server is the content API. It runs on the one manager that leads, since the
// content store may be that manager's own.
type Server struct {
	Config
	gate *gate
	keys *keyring
	// heavy bounds how many sets of manifests, which may be large, are held at a time.
	heavy chan struct{}
	// results bounds the same of results of provisioners, which so do not stand in the way of those.
	results chan struct{}
}

const maxHeavy = 4

// How long a client may take to say what it wants, and be silent between two
// requests. How long it may stand still within one, stallTime says.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	endTime    = 5 * time.Second
)

// New makes a server.
func New(config Config) (*Server, error) {
	gate, err := newGate(config.API)
	if err != nil {
		return nil, fmt.Errorf("content API: %w", err)
	}
	return &Server{Config: config, gate: gate, keys: newKeyring(lifetimes{}), heavy: make(chan struct{}, maxHeavy), results: make(chan struct{}, maxHeavy)}, nil
}

// NeedLeaderElection is true: see Server.
func (s *Server) NeedLeaderElection() bool { return true }

// Start serves until ctx ends.
func (s *Server) Start(ctx context.Context) error {
	if err := s.gate.start(ctx); err != nil {
		return fmt.Errorf("content API: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("content API: %w", err)
	}
	publisher := &publisher{client: s.Live, keys: s.keys, advertise: s.Advertise, port: portOf(listener), artifacts: portIn(s.Artifacts), log: s.Log}
	if err := publisher.prepare(ctx); err != nil {
		s.Log.Error(err, "content API not announced yet; tried again")
	}
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, BaseContext: func(net.Listener) context.Context { return ctx },
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert, GetCertificate: s.keys.certificate, NextProtos: []string{"h2", "http/1.1"}},
		ErrorLog:  log.New(logWriter{s.Log}, "", 0),
	}
	go publisher.run(ctx)
	go func() {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		if err := server.Shutdown(ending); err != nil {
			_ = server.Close() // whoever still reads is cut off
		}
	}()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("content API: %w", err)
	}
	return nil
}

func portOf(listener net.Listener) int32 {
	if address, ok := listener.Addr().(*net.TCPAddr); ok {
		return int32(address.Port) //nolint:gosec // a port fits
	}
	return 0
}

// portIn gives the port of an address, 0 if it has none.
func portIn(address string) int32 {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return int32(port)
}

// logWriter takes what net/http complains of, such as clients that break off.
type logWriter struct{ log logr.Logger }

func (w logWriter) Write(line []byte) (int, error) {
	w.log.V(1).Info(string(line))
	return len(line), nil
}
