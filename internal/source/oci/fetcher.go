// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/registry/reach"
	"rukpak.io/rukpak/internal/source/outbound"
	"rukpak.io/rukpak/internal/unpack"
)

// Defaults of Options.
const (
	DefaultJobs         = 8
	DefaultStallTimeout = 30 * time.Second
	DefaultLayerTimeout = 30 * time.Minute
)

// layersAtOnce is how many layers of one artifact are unpacked at once.
const layersAtOnce = 3

// Options of a Fetcher. The zero value has good defaults.
type Options struct {
	Limits unpack.Limits
	// Jobs is how many layers are unpacked at once, by all calls together: at most
	// three of one artifact, and at most half of them from one registry, so that a
	// slow one does not hold up the others. Each takes 3 MiB of memory, or 20 MiB
	// if it is packed with zstd.
	Jobs int
	// StallTimeout ends a request that gives no byte for so long. What goes before
	// the layers (credentials, manifest) has four times as long altogether.
	StallTimeout time.Duration
	// LayerTimeout ends the fetching of one layer.
	LayerTimeout time.Duration
	// Architecture chooses among the entries of an index with several; it is
	// that of this program if empty.
	Architecture string
	// Transport is what requests are sent with, such as one that trusts more
	// certificate authorities. nil means that of go-containerregistry.
	Transport http.RoundTripper
	// Onward is what requests are sent with to where the answer of a registry with
	// a public address leads: a token server, or a place of blobs. It refuses
	// addresses inside. nil means Transport. See package outbound.
	Onward *http.Transport
	// Registries are the rules for mirrors, authorities, proxies and credentials.
	// nil means that there are none.
	Registries *reach.Config

	private func(netip.Addr) bool // outbound.Private, but for tests
}

// Credentials finds credentials; registry.Keychain is one.
type Credentials interface {
	// Candidates gives the credentials that may open a repository, in the order
	// in which to try them.
	Candidates(target authn.Resource) []authn.Authenticator
}

// Source is where content comes from.
type Source struct {
	// Ref names it: "registry/repository:tag" or "registry/repository@sha256:...".
	// As in a Pod, no registry means Docker's, and no tag means "latest".
	Ref string
	// Semver is a range of versions of which the highest tag counts, and
	// SemverFilter a regular expression that tags have to match. Ref has no tag
	// then.
	Semver, SemverFilter string
	// Platform is what to take of an index; nil means Linux on the architecture
	// of the options, or the only thing that is there.
	Platform *Platform
	// Referrer takes an artifact that refers to the one that Ref names, in place
	// of it. With a platform it is the entry of the index that it refers to.
	Referrer *Referrer
	// Layers selects among the layers; none means all.
	Layers Selectors
	// Config is the path of the file that the config blob becomes; "" means that
	// it is left out.
	Config string
	// Insecure speaks plain HTTP, and only that.
	Insecure bool
	// Credentials may be nil. When all are refused, anonymous access is tried.
	Credentials Credentials
}

// Contents is the store that content goes to.
type Contents interface {
	Begin() (*content.Session, error)
}

// Fetcher resolves references and fetches content. Its methods may be called
// from several goroutines.
type Fetcher struct {
	store   Contents
	options Options
	jobs    chan struct{}

	mu      sync.Mutex
	hosts   map[string]chan struct{} // the part of jobs that one registry may have
	spoiled map[string]time.Time     // when a mirror gave a broken blob
}

// New makes a Fetcher that puts content into a store. A Fetcher that only
// resolves or pushes needs none.
func New(store Contents, options Options) *Fetcher {
	options.Jobs = cmp.Or(options.Jobs, DefaultJobs)
	options.StallTimeout = cmp.Or(options.StallTimeout, DefaultStallTimeout)
	options.LayerTimeout = cmp.Or(options.LayerTimeout, DefaultLayerTimeout)
	options.Architecture = cmp.Or(options.Architecture, runtime.GOARCH)
	if options.Transport == nil {
		options.Transport = remote.DefaultTransport
	}
	if options.private == nil {
		options.private = outbound.Private
	}
	return &Fetcher{store: store, options: options, jobs: make(chan struct{}, options.Jobs), hosts: map[string]chan struct{}{}, spoiled: map[string]time.Time{}}
}

// job waits until one more layer from a registry may be unpacked.
func (f *Fetcher) job(ctx context.Context, host string) (done func(), err error) {
	ofHost := f.jobsOf(host)
	for i, slots := range []chan struct{}{ofHost, f.jobs} {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-ofHost
			}
			return nil, context.Cause(ctx)
		}
	}
	return func() { <-f.jobs; <-ofHost }, nil
}

func (f *Fetcher) jobsOf(host string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hosts[host] == nil {
		f.hosts[host] = make(chan struct{}, (f.options.Jobs+1)/2)
	}
	return f.hosts[host]
}
