// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"net/http"
	"time"

	"rukpak.io/rukpak/internal/registry"
)

// Rule says how the references under one prefix are reached.
type Rule struct {
	// Prefix is "host[:port]", "host[:port]/path", "*.domain" or "*"; one from a
	// file may also end in a tag or digest. Docker's registry is "docker.io".
	Prefix string
	// From says where the rule stands, for people.
	From string
	// Rewrite takes the place of the prefix when the primary is reached. Empty
	// means that the primary is where the reference says.
	Rewrite string
	// Blocked refuses every reference under the prefix.
	Blocked bool
	// MirrorOnly never asks the primary.
	MirrorOnly bool
	// Mirrors are asked in this order, before the primary.
	Mirrors []Mirror
	// Primary says how the primary is spoken to.
	Primary Access
	// Problem is why the rule cannot be used; every reference under it fails.
	Problem error
}

// Mirror is a place that may have what the primary has.
type Mirror struct {
	// Location takes the place of the prefix: "host[:port]" or
	// "host[:port]/path".
	Location string
	// APIPath is the path of the registry API; empty means "/v2".
	APIPath string
	// For says which references the mirror is asked for.
	For Scope
	// From says where the mirror stands, for people.
	From string
	Access
}

// Scope is a set of references.
type Scope string

// The scopes.
const (
	All     Scope = ""
	Digests Scope = "digest" // only references by digest
	Tags    Scope = "tag"    // only references by tag
)

// Covers tells whether a reference is in the scope.
func (s Scope) Covers(digested bool) bool {
	return s == All || (s == Digests) == digested
}

// Access says how an endpoint is spoken to. The zero value is HTTPS with the
// authorities of the system, the proxy of the environment, and nobody's
// credentials.
type Access struct {
	// CA holds certificates in PEM that are trusted besides those of the system.
	CA []byte
	// Certificate is shown to the server.
	Certificate *KeyPair
	// PlainHTTP speaks HTTP without TLS. Together with SkipVerify, HTTPS without
	// verification is tried first.
	PlainHTTP bool
	// SkipVerify takes any certificate.
	SkipVerify bool
	// Proxy is gone through; nil means that of the environment.
	Proxy *Proxy
	// Logins are credentials. They go to this endpoint and to no other.
	Logins []registry.Login
	// Headers are added to each request.
	Headers http.Header
	// DialTimeout ends an attempt to connect; 0 means the default.
	DialTimeout time.Duration
	// Retry says how often and when a request that failed is sent again.
	Retry Retry
	// Rate bounds how many requests are sent.
	Rate Rate
	// Origins say where CA, certificate, proxy and logins come from, for people.
	Origins Origins
	// Problem is why the endpoint cannot be used as it is written.
	Problem error
}

// KeyPair is a certificate and its key, in PEM.
type KeyPair struct{ Certificate, Key []byte }

// Proxy is an HTTP, HTTPS or SOCKS proxy.
type Proxy struct {
	URL      string // without credentials
	User     string
	Password string
	NoProxy  []string // hosts, .domains, addresses and CIDRs that are reached directly
}

// Retry says how often and when a request that failed is sent again.
type Retry struct {
	Attempts int           // altogether; 0 means the default of the caller
	Delay    time.Duration // before the second attempt; doubled each time
	MaxDelay time.Duration
}

// Rate bounds requests; the zero value does not.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Origins say where the parts of an Access come from. They hold no secrets.
type Origins struct {
	CA          string `json:"ca,omitempty"`
	Certificate string `json:"clientCertificate,omitempty"`
	Proxy       string `json:"proxy,omitempty"`
	Credentials string `json:"credentials,omitempty"`
}

// Connects tells whether connections are made in another way than by default.
func (a *Access) Connects() bool {
	return a.CA != nil || a.Certificate != nil || a.Proxy != nil || a.SkipVerify || a.DialTimeout != 0
}

// Completed fills what a says nothing about from the rule that is about the same
// address. Whether to speak plain HTTP or to skip verification is never
// inherited: each endpoint says so itself.
func (a Access) Completed(from *Rule) Access {
	if from == nil {
		return a
	}
	p := from.Primary
	if a.CA == nil && a.Origins.CA == "" {
		a.CA, a.Origins.CA = p.CA, p.Origins.CA
	}
	if a.Certificate == nil && a.Origins.Certificate == "" {
		a.Certificate, a.Origins.Certificate = p.Certificate, p.Origins.Certificate
	}
	if a.Proxy == nil && a.Origins.Proxy == "" {
		a.Proxy, a.Origins.Proxy = p.Proxy, p.Origins.Proxy
	}
	if a.Logins == nil && a.Origins.Credentials == "" {
		a.Logins, a.Origins.Credentials = p.Logins, p.Origins.Credentials
	}
	if a.Headers == nil {
		a.Headers = p.Headers
	}
	if a.DialTimeout == 0 {
		a.DialTimeout = p.DialTimeout
	}
	if a.Retry == (Retry{}) {
		a.Retry = p.Retry
	}
	if a.Rate == (Rate{}) {
		a.Rate = p.Rate
	}
	if a.Problem == nil {
		a.Problem = p.Problem
	}
	return a
}
