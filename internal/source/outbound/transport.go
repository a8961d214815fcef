// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// TLS says whom to trust and as whom to come. All of it is in PEM.
type TLS struct {
	CA          []byte // trusted beside the system's authorities
	Certificate []byte // with Key: shown to a server that asks
	Key         []byte
}

// Config gives the configuration of a TLS client. Errors hold no keys.
func (t TLS) Config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(t.CA) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(t.CA) {
			return nil, errors.New("the CA holds no certificate in PEM")
		}
		config.RootCAs = pool
	}
	if len(t.Certificate) > 0 || len(t.Key) > 0 {
		pair, err := tls.X509KeyPair(t.Certificate, t.Key)
		if err != nil {
			return nil, errors.New("the client certificate and its key are not a pair in PEM")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// maxTransports bounds how many pools of connections are kept: one for each TLS
// in use, twice.
const maxTransports = 64

// Transports gives transports and keeps them, so that connections are used
// again. The zero value is ready to use; its methods may be called from several
// goroutines.
type Transports struct {
	// Registries lays the rules of the registry configuration over each
	// transport; nil for none.
	Registries Registries

	mu   sync.Mutex
	kept map[string]*http.Transport
}

// Get gives the transport for a TLS. public makes it refuse addresses that are
// not: it is for where the answer of a public server leads.
func (t *Transports) Get(with TLS, public bool) (http.RoundTripper, error) {
	key := fmt.Sprintf("%t %x %x %x", public, sha256.Sum256(with.CA), sha256.Sum256(with.Certificate), sha256.Sum256(with.Key))
	t.mu.Lock()
	defer t.mu.Unlock()
	if found, ok := t.kept[key]; ok {
		return t.ruled(found), nil
	}
	config, err := with.Config()
	if err != nil {
		return nil, err
	}
	if t.kept == nil {
		t.kept = map[string]*http.Transport{}
	}
	for old, transport := range t.kept { // any: it is made anew when needed
		if len(t.kept) < maxTransports {
			break
		}
		transport.CloseIdleConnections()
		delete(t.kept, old)
	}
	t.kept[key] = newTransport(config, public)
	return t.ruled(t.kept[key]), nil
}

// Registries lays rules over a transport; *reach.Config is one.
type Registries interface {
	Over(base *http.Transport) http.RoundTripper
}

func (t *Transports) ruled(base *http.Transport) http.RoundTripper {
	if t.Registries == nil {
		return base
	}
	return t.Registries.Over(base)
}

// NewTransport gives a transport of its own, with the rules for addresses; public
// is as for Get.
func NewTransport(public bool) *http.Transport {
	return newTransport(&tls.Config{MinVersion: tls.VersionTLS12}, public)
}

func newTransport(config *tls.Config, public bool) *http.Transport {
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second, Control: control(public)}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    15 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           32,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// What is pinned is the bytes as the server has them.
		DisableCompression: true,
	}
}
