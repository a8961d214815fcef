// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/source"
)

// hop is one endpoint to ask, with what it takes to ask it.
type hop struct {
	ref         name.Reference // there
	endpoint    *rules.Endpoint
	credentials []authn.Authenticator
	secrets     []string // of the endpoint itself, never to be shown
	guard       guard
	skipped     []rules.Endpoint // of the reference: that are not asked for it
	options     []remote.Option
	pace        func(http.RoundTripper) http.RoundTripper
}

func (h *hop) host() string { return h.ref.Context().RegistryStr() }

// direct is the way without rules: that of a push, too.
func (f *Fetcher) direct(src Source, ref name.Reference) *hop {
	h := &hop{ref: ref, endpoint: &rules.Endpoint{Reference: ref}}
	h.guard = guard{base: f.options.Transport, host: h.host(), insecure: src.Insecure, stall: f.options.StallTimeout, seen: &seen{private: f.options.private}}
	if f.options.Onward != nil {
		h.guard.onward = f.options.Onward
	}
	h.credentials = f.candidates(src, ref.Context())
	return h
}

// route gives the endpoints of a reference in the order in which to ask them.
// Its error is a *source.Error.
func (f *Fetcher) route(ctx context.Context, src Source, ref name.Reference) ([]*hop, error) {
	config := f.options.Registries
	if config == nil {
		return []*hop{f.direct(src, ref)}, nil
	}
	set, found, err := config.Resolve(ctx, ref)
	if _, ok := errors.AsType[*rules.BlockedError](err); ok {
		return nil, failed(source.Waiting, source.ReasonBlocked, ref, err)
	}
	if _, ok := errors.AsType[*rules.ProblemError](err); ok {
		return nil, failed(source.Waiting, source.ReasonInvalidRegistryConfig, ref, err)
	}
	if err != nil {
		return nil, failed(source.Transient, source.ReasonCanceled, ref, err)
	}
	var hops []*hop
	for i := range found.Endpoints {
		h := f.hop(src, set, &found.Endpoints[i])
		h.skipped = found.Skipped
		hops = append(hops, h)
	}
	return hops, nil
}

// hop prepares to ask one endpoint. That the source allows plain HTTP is said of
// the registry that it names, and of no other.
func (f *Fetcher) hop(src Source, set *rules.Set, e *rules.Endpoint) *hop {
	h := f.direct(src, e.Reference)
	h.endpoint = e
	h.credentials = append(h.credentials, set.Credentials(e).Candidates(e.Reference.Context())...)
	h.guard.base = &byHost{set: set, config: f.options.Registries, endpoint: e, fallback: f.options.Transport}
	if on := f.options.Onward; on != nil {
		h.guard.onward = &byHost{set: set, config: f.options.Registries, endpoint: e, fallback: f.options.Transport, onward: on}
	}
	if e.Rule == "" {
		return h
	}
	either := e.PlainHTTP && e.SkipVerify
	h.guard.insecure = !either && (e.PlainHTTP || src.Insecure && !e.Moved)
	h.guard.either = either
	h.guard.endpoint = e
	h.pace = func(next http.RoundTripper) http.RoundTripper {
		return f.options.Registries.Paced(next, e.Rule, &e.Access)
	}
	if e.Retry.Attempts > 0 {
		h.options = append(h.options, remote.WithRetryBackoff(remote.Backoff{Steps: 1}))
	}
	if e.Proxy != nil {
		h.secrets = append(h.secrets, e.Proxy.Password)
	}
	for _, values := range e.Headers {
		h.secrets = append(h.secrets, values...)
	}
	if either { // only then does go-containerregistry try both
		if ref, err := name.ParseReference(e.Reference.Name(), name.Insecure); err == nil {
			h.ref = ref
		}
	}
	return h
}

// byHost sends requests to the endpoint as its rule says, and those to other
// hosts, such as a token server or where a redirect leads, as the rule about
// them says. Without one they go the same way, but with verification and
// without the client certificate.
type byHost struct {
	set      *rules.Set
	config   registries
	endpoint *rules.Endpoint
	fallback http.RoundTripper
	onward   *http.Transport // for hosts that no rule is about; nil means as for all
}

// registries is the part of *reach.Config that byHost needs.
type registries interface {
	Transport(access *rules.Access) (http.RoundTripper, error)
	TransportOver(base *http.Transport, access *rules.Access) (http.RoundTripper, error)
}

func (b *byHost) RoundTrip(request *http.Request) (*http.Response, error) {
	access, onward := b.endpoint.Access, b.onward
	if request.URL.Host != b.endpoint.Host() {
		access.SkipVerify, access.Certificate, access.Problem = false, nil, nil
		if about := b.set.MatchURL(request.URL); about != nil {
			if err := about.Usable(request.URL.Host); err != nil {
				closeBody(request)
				return nil, err
			}
			access, onward = about.Primary, nil // whoever wrote the rule knows the place
		}
	}
	transport, err := b.transport(&access, onward)
	if err != nil {
		closeBody(request)
		return nil, &rules.ProblemError{Rule: b.endpoint.Rule, Err: err}
	}
	return transport.RoundTrip(request)
}

func (b *byHost) transport(access *rules.Access, onward *http.Transport) (http.RoundTripper, error) {
	switch {
	case access.Problem != nil:
		return nil, access.Problem
	case onward != nil:
		return b.config.TransportOver(onward, access)
	case access.Connects():
		return b.config.Transport(access)
	}
	return b.fallback, nil
}

// reached is a way that was found open.
type reached struct {
	puller *remote.Puller
	hops   []*hop // the first is that of the puller
}

// ask calls do for each endpoint in turn until one succeeds. A mirror that fails
// in any way is passed over.
func (f *Fetcher) ask(ctx context.Context, src Source, ref name.Reference, do func(context.Context, *remote.Puller, name.Reference) error) (*reached, error) {
	hops, err := f.route(ctx, src, ref)
	if err != nil {
		return nil, err
	}
	missed := &missedError{}
	for i, h := range hops {
		puller, err := f.withCredentials(ctx, h, func(ctx context.Context, puller *remote.Puller) error { return do(ctx, puller, h.ref) })
		if err == nil {
			return &reached{puller: puller, hops: hops[i:]}, nil
		}
		missed.add(h, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, missed.result()
}

// missedError is what several endpoints answered.
type missedError struct {
	hops   []*hop
	errors []error
	chosen int // whose answer counts
}

func (e *missedError) add(h *hop, err error) {
	e.hops = append(e.hops, h)
	e.errors = append(e.errors, err)
}

// result is the answer of the primary if it was asked. Of mirrors alone it is
// one that may be another next time, for that is what decides whether to try
// again soon.
func (e *missedError) result() error {
	e.chosen = len(e.errors) - 1
	if e.hops[e.chosen].endpoint.Mirror {
		e.chosen = max(0, slices.IndexFunc(e.errors, func(err error) bool {
			kind, _ := judge(context.Background(), err)
			return kind == source.Transient
		}))
	}
	return e.told()
}

// last is the error of the endpoint that was asked last, whatever the others said.
func (e *missedError) last() error {
	e.chosen = len(e.errors) - 1
	return e.told()
}

// told gives the answer alone where the reference says already who gave it.
func (e *missedError) told() error {
	if h := e.hops[e.chosen]; len(e.errors) == 1 && !h.endpoint.Moved && len(h.skipped) == 0 {
		return e.errors[0]
	}
	return e
}

// Error is the answer that counts, those of the others, and who was not asked.
func (e *missedError) Error() string {
	var others []string
	for i, err := range e.errors {
		if i != e.chosen {
			others = append(others, said(e.hops[i], err))
		}
	}
	text := said(e.hops[e.chosen], e.errors[e.chosen])
	if len(others) > 0 {
		text += "; asked before: " + strings.Join(others, "; ")
	}
	if skipped := e.hops[e.chosen].skipped; len(skipped) > 0 {
		text += "; passed over: " + rules.Reasons(skipped)
	}
	return text
}

// said is what an endpoint answered. One that is elsewhere than the reference
// says is named with the rule that leads there.
func said(h *hop, err error) string {
	text := describe(err).Error()
	if clean, ok := errors.AsType[*cleanError](err); ok { // without the reference, which is named already
		text = clean.text
	}
	if !h.endpoint.Moved {
		return fmt.Sprintf("%s: %s", rules.Normal(h.host()), text)
	}
	return fmt.Sprintf("%s (%s): %s", rules.Normal(h.ref.Context().Name()), h.endpoint.Rule, text)
}

// Unwrap gives the answer that counts.
func (e *missedError) Unwrap() error { return e.errors[e.chosen] }

// How long, and for how many blobs, it is kept that a mirror gave a broken one.
const (
	brokenFor = time.Hour
	maxBroken = 1000
)

// broken notes that a blob of a mirror broke off or was not what it should be.
// Without that a broken mirror would be asked again and again, for the layers
// that arrive tell too late that another endpoint has to be asked.
func (f *Fetcher) broken(h *hop, digest string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.spoiled) >= maxBroken {
		clear(f.spoiled)
	}
	f.spoiled[h.host()+" "+digest] = time.Now()
}

// order puts mirrors last that gave a broken blob not long ago.
func (f *Fetcher) order(hops []*hop, digest string) []*hop {
	f.mu.Lock()
	defer f.mu.Unlock()
	var sound, last []*hop
	for _, h := range hops {
		if at, ok := f.spoiled[h.host()+" "+digest]; ok && time.Since(at) < brokenFor {
			last = append(last, h)
			continue
		}
		sound = append(sound, h)
	}
	return append(sound, last...)
}
