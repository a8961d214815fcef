// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// backoff of what is tried again at once: 0.2 s, then 0.6 s. Whoever calls
// tries again later.
var backoff = remote.Backoff{Duration: 200 * time.Millisecond, Factor: 3, Jitter: 0.1, Steps: 3}

const userAgent = "rukpak"

// remoteOptions are those of go-containerregistry for one endpoint.
func (f *Fetcher) remoteOptions(h *hop, auth authn.Authenticator) []remote.Option {
	guarded := h.guard
	transport := http.RoundTripper(&guarded)
	if h.pace != nil {
		transport = h.pace(transport)
	}
	return append([]remote.Option{
		remote.WithTransport(transport),
		remote.WithAuth(auth),
		remote.WithRetryBackoff(backoff),
		remote.WithUserAgent(userAgent),
		remote.WithJobs(layersAtOnce),
	}, h.options...)
}

// accessError is the answer to the first of several credentials.
type accessError struct {
	tried int // sets of credentials
	err   error
}

func (e *accessError) Error() string {
	if e.tried == 0 {
		return fmt.Sprintf("%v; no pull secret has credentials for it", e.err)
	}
	return fmt.Sprintf("%v; tried credentials: %d", e.err, e.tried)
}

func (e *accessError) Unwrap() error { return e.err }

// withCredentials calls do with each set of credentials in turn, and then
// anonymously, until the registry lets one pass. What it gives is a puller
// that was let in, or the error that the first set met.
func (f *Fetcher) withCredentials(ctx context.Context, h *hop, do func(context.Context, *remote.Puller) error) (*remote.Puller, error) {
	return tryEach(ctx, h, func(auth authn.Authenticator) (*remote.Puller, error) {
		puller, err := remote.NewPuller(f.remoteOptions(h, auth)...)
		if err != nil {
			return nil, err
		}
		return puller, f.inTime(ctx, puller, do)
	})
}

// tryEach tries each set of credentials in turn, and then none, until one is let
// in. The error is that of the first.
func tryEach[T any](ctx context.Context, h *hop, try func(authn.Authenticator) (T, error)) (T, error) {
	var first error
	var none T
	for _, auth := range append(slices.Clone(h.credentials), authn.Anonymous) {
		in, err := try(auth)
		if err == nil {
			return in, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil || !refused(err) {
			break
		}
	}
	if denied(first) {
		return none, &accessError{tried: len(h.credentials), err: first}
	}
	return none, first
}

// inTime bounds what a registry can make of a few small requests.
func (f *Fetcher) inTime(ctx context.Context, puller *remote.Puller, do func(context.Context, *remote.Puller) error) error {
	ctx, cancel := context.WithTimeout(ctx, 4*f.options.StallTimeout)
	defer cancel()
	return do(ctx, puller)
}

func (f *Fetcher) candidates(src Source, repository name.Repository) []authn.Authenticator {
	if src.Credentials == nil {
		return nil
	}
	return src.Credentials.Candidates(repository)
}

// denied tells whether a registry or its token server wants other credentials.
func denied(err error) bool {
	answer, ok := errors.AsType[*transport.Error](err)
	return ok && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden)
}

// refused is denied, and "not found" too: some registries say that to hide what
// one may not see.
func refused(err error) bool {
	answer, ok := errors.AsType[*transport.Error](err)
	return ok && (denied(err) || answer.StatusCode == http.StatusNotFound)
}
