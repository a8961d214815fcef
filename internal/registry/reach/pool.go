// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/time/rate"

	"rukpak.io/rukpak/internal/registry/rules"
)

const (
	dialTimeout = 10 * time.Second
	keepAlive   = 30 * time.Second
)

// pool holds one transport for each way of connecting, so that connections are
// used again, and one limiter for each limited rule.
type pool struct {
	base *http.Transport

	mu         sync.Mutex
	transports map[string]*http.Transport
	limiters   map[string]*rate.Limiter
}

func newPool(base *http.Transport) *pool {
	if base == nil {
		base = &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext,
			ForceAttemptHTTP2:     true,
			MaxIdleConns:          100,
			MaxIdleConnsPerHost:   50,
			IdleConnTimeout:       90 * time.Second,
			TLSHandshakeTimeout:   10 * time.Second,
			ExpectContinueTimeout: time.Second,
		}
	}
	return &pool{base: base, transports: map[string]*http.Transport{}, limiters: map[string]*rate.Limiter{}}
}

// transport gives the transport for one way of connecting.
func (p *pool) transport(access *rules.Access) (*http.Transport, error) {
	key := keyOf(access)
	if key == "" {
		return p.base, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.transports[key]; found != nil {
		return found, nil
	}
	made, err := build(p.base, access)
	if err != nil {
		return nil, err
	}
	p.transports[key] = made
	return made, nil
}

// keep closes what the rules have no more use for.
func (p *pool) keep(set *rules.Set) {
	used := map[string]bool{}
	for _, rule := range set.Rules() {
		ways := []*rules.Access{&rule.Primary}
		for i := range rule.Mirrors {
			ways = append(ways, &rule.Mirrors[i].Access)
		}
		for _, way := range ways {
			used[keyOf(way)] = true
			used[limiterKey(rule.From, way.Rate)] = true
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, transport := range p.transports {
		if !used[key] {
			transport.CloseIdleConnections()
			delete(p.transports, key)
		}
	}
	for key := range p.limiters {
		if !used[key] {
			delete(p.limiters, key)
		}
	}
}

// keyOf is the same for two ways of connecting that are the same; "" for the
// default.
func keyOf(a *rules.Access) string {
	if !a.Connects() {
		return ""
	}
	sum := sha256.New()
	put := func(text string) { _, _ = fmt.Fprintf(sum, "%d:%s", len(text), text) } // a hash takes all
	put(string(a.CA))
	put(fmt.Sprint(a.SkipVerify, a.DialTimeout, a.Certificate != nil, a.Proxy != nil))
	if a.Certificate != nil {
		put(string(a.Certificate.Certificate))
		put(string(a.Certificate.Key))
	}
	if a.Proxy != nil {
		put(a.Proxy.URL)
		put(a.Proxy.User)
		put(a.Proxy.Password)
		put(strings.Join(a.Proxy.NoProxy, ","))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Check tells whether connections can be made as an Access says.
func Check(access *rules.Access) error {
	_, err := build(&http.Transport{}, access)
	return err
}

func build(base *http.Transport, a *rules.Access) (*http.Transport, error) {
	made := base.Clone()
	config := made.TLSClientConfig
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if a.CA != nil {
		roots, err := poolOf(config.RootCAs, a.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = roots
	}
	if a.Certificate != nil && len(config.Certificates) == 0 {
		pair, err := tls.X509KeyPair(a.Certificate.Certificate, a.Certificate.Key)
		if err != nil {
			return nil, fmt.Errorf("the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	config.InsecureSkipVerify = config.InsecureSkipVerify || a.SkipVerify //nolint:gosec // what the rule asks for by name
	made.TLSClientConfig = config
	if a.DialTimeout > 0 {
		made.DialContext = within(a.DialTimeout, base.DialContext)
	}
	if a.Proxy != nil {
		through, err := proxyFunc(a.Proxy)
		if err != nil {
			return nil, err
		}
		made.Proxy = through
	}
	return made, nil
}

// within bounds the time for connecting; which addresses are allowed stays up to
// the dialer.
func within(limit time.Duration, dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: keepAlive}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return dial(ctx, network, address)
	}
}

// poolOf adds certificates to those that are trusted already.
func poolOf(roots *x509.CertPool, more []byte) (*x509.CertPool, error) {
	if roots == nil {
		system, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("read the certificates of the system: %w", err)
		}
		roots = system
	}
	roots = roots.Clone()
	if !roots.AppendCertsFromPEM(more) {
		return nil, errors.New("the CA holds no certificate in PEM")
	}
	return roots, nil
}

// Proxied tells whether a server is reached through a proxy: one on the loopback address never is, nor one of NoProxy.
func Proxied(p *rules.Proxy, server *url.URL) bool {
	through, err := proxyFunc(p)
	if err != nil {
		return false
	}
	found, err := through(&http.Request{URL: server})
	return err == nil && found != nil
}

func proxyFunc(p *rules.Proxy) (func(*http.Request) (*url.URL, error), error) {
	address, err := url.Parse(p.URL)
	if err != nil || address.Host == "" {
		return nil, errors.New("the proxy is not a URL such as http://proxy.example.com:3128")
	}
	switch address.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		return nil, fmt.Errorf("the scheme of the proxy is %q; it must be http, https or socks5", address.Scheme)
	}
	if p.User != "" {
		address.User = url.UserPassword(p.User, p.Password)
	}
	config := httpproxy.Config{HTTPProxy: address.String(), HTTPSProxy: address.String(), NoProxy: strings.Join(p.NoProxy, ",")}
	choose := config.ProxyFunc()
	return func(request *http.Request) (*url.URL, error) { return choose(request.URL) }, nil
}
