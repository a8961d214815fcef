// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"context"
	"net/http"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/unpack"
)

// Defaults of Options.
const (
	DefaultJobs         = 3
	DefaultStallTimeout = 30 * time.Second
)

// Options of a Fetcher. The zero value has good defaults.
type Options struct {
	Limits unpack.Limits
	// Jobs is how many layers are unpacked at once, by all calls together. Each
	// takes up to about 10 MiB of memory.
	Jobs int
	// StallTimeout ends a request that gives no byte for so long.
	StallTimeout time.Duration
	// Architecture chooses among the entries of an index with several; it is
	// that of this program if empty.
	Architecture string
	// Transport is what requests are sent with, such as one that trusts more
	// certificate authorities. nil means that of go-containerregistry.
	Transport http.RoundTripper
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
	// Insecure speaks plain HTTP, and only that.
	Insecure bool
	// Credentials may be nil. When all are refused, anonymous access is tried.
	Credentials Credentials
}

// Stats says what a fetch had to do.
type Stats struct {
	Layers  int   // that the content is made of
	Fetched int   // of them, fetched now
	Bytes   int64 // fetched now, as packed
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
}

// New makes a Fetcher that puts content into a store. A Fetcher that only
// resolves or pushes needs none.
func New(store Contents, options Options) *Fetcher {
	options.Jobs = cmp.Or(options.Jobs, DefaultJobs)
	options.StallTimeout = cmp.Or(options.StallTimeout, DefaultStallTimeout)
	options.Architecture = cmp.Or(options.Architecture, runtime.GOARCH)
	if options.Transport == nil {
		options.Transport = remote.DefaultTransport
	}
	return &Fetcher{store: store, options: options, jobs: make(chan struct{}, options.Jobs)}
}

// job waits until one more layer may be unpacked.
func (f *Fetcher) job(ctx context.Context) (done func(), err error) {
	select {
	case f.jobs <- struct{}{}:
		return func() { <-f.jobs }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
