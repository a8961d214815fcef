// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"rukpak.io/rukpak/internal/registry/rules"
)

// maxManifest bounds a manifest or index, as registries do.
const maxManifest = 4 << 20

var (
	errPlainHTTP = errors.New("it would go over plain HTTP; set insecure to allow that for this registry")
	errManifest  = fmt.Errorf("the manifest, or a page of tags, is larger than %d bytes", maxManifest)
)

// stallError says that a registry went silent.
type stallError struct{ after time.Duration }

func (e *stallError) Error() string { return fmt.Sprintf("not a byte came for %s", e.after) }

// slowError says that a layer took too long, though bytes came now and then.
type slowError struct {
	after  time.Duration
	digest string
}

func (e *slowError) Error() string {
	return fmt.Sprintf("blob %s did not come within %s", e.digest, e.after)
}

// guard stands below go-containerregistry: it decides between HTTP and HTTPS,
// ends requests that stall, and bounds what is read into memory.
type guard struct {
	base     http.RoundTripper
	host     string // of the registry
	insecure bool
	either   bool // HTTPS or HTTP, as go-containerregistry finds
	stall    time.Duration
	endpoint *rules.Endpoint   // nil without a rule
	onward   http.RoundTripper // to other hosts, if the registry has a public address; nil is base
	seen     *seen
}

// RoundTrip sends one request.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	sent := request.Clone(ctx)
	switch {
	case g.either && request.URL.Host == g.host:
	case g.insecure && request.URL.Host == g.host:
		sent.URL.Scheme = "http" // also where go-containerregistry tries HTTPS first
	case !g.insecure && request.URL.Scheme != "https":
		closeBody(request)
		cancel(nil)
		return nil, errPlainHTTP
	}
	if g.endpoint != nil && request.URL.Host == g.host {
		adapt(sent, g.endpoint)
	}
	watch := &watchdog{after: g.stall, cancel: cancel}
	watch.timer = time.AfterFunc(g.stall, watch.bite)
	if sent.Body != nil && sent.Body != http.NoBody {
		sent.Body = &watchedBody{ReadCloser: sent.Body, watch: watch, upload: true}
	}
	response, err := g.way(request.URL.Host).RoundTrip(g.seen.trace(sent, request.URL.Host == g.host))
	watch.timer.Stop()
	if err != nil {
		err = watch.explain(ctx, err)
		cancel(nil)
		return nil, err
	}
	response.Body = &watchedBody{ReadCloser: response.Body, watch: watch, ctx: ctx}
	if strings.Contains(request.URL.Path, "/manifests/") || strings.HasSuffix(request.URL.Path, "/tags/list") {
		response.Body = &boundedBody{ReadCloser: response.Body, left: maxManifest}
	}
	return response, nil
}

// way is what a request to a host is sent with.
func (g *guard) way(host string) http.RoundTripper {
	if host != g.host && g.onward != nil && g.seen.public.Load() {
		return g.onward
	}
	return g.base
}

// seen remembers what kind of address a registry has.
type seen struct {
	private func(netip.Addr) bool
	public  atomic.Bool
}

// trace lets a request to the registry tell its address.
func (s *seen) trace(request *http.Request, registry bool) *http.Request {
	if !registry {
		return request
	}
	return request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		at, err := netip.ParseAddrPort(got.Conn.RemoteAddr().String())
		s.public.Store(err == nil && !s.private(at.Addr()))
	}}))
}

// adapt makes a request one to a mirror: the registry API may stand at another
// path there, and the mirror is told whose content is asked for.
func adapt(request *http.Request, e *rules.Endpoint) {
	for key, values := range e.Headers {
		request.Header[key] = values
	}
	rest, ok := strings.CutPrefix(request.URL.Path, "/v2/")
	if !ok {
		return
	}
	if e.APIPath != "" {
		request.URL.Path, request.URL.RawPath = strings.TrimSuffix(e.APIPath, "/")+"/"+rest, ""
	}
	if e.Namespace != "" && rest != "" {
		query := request.URL.Query()
		query.Set("ns", e.Namespace)
		request.URL.RawQuery = query.Encode()
	}
}

func closeBody(request *http.Request) {
	if request.Body != nil {
		_ = request.Body.Close() // the contract of RoundTripper asks for it; nothing was sent
	}
}

// watchdog cancels a request in which nothing moves.
type watchdog struct {
	after  time.Duration
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func (w *watchdog) bite() { w.cancel(&stallError{w.after}) }

// explain replaces the error of a cancelled request by the reason.
func (w *watchdog) explain(ctx context.Context, err error) error {
	if stalled, ok := errors.AsType[*stallError](context.Cause(ctx)); ok {
		return stalled
	}
	return err
}

// watchedBody times reading. The time that its reader takes between two reads
// does not count for a download; for an upload the clock runs on, for only the
// network reads there.
type watchedBody struct {
	io.ReadCloser
	watch  *watchdog
	ctx    context.Context // of a response
	upload bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.timer.Reset(b.watch.after)
	n, err := b.ReadCloser.Read(p)
	if b.upload {
		return n, err
	}
	b.watch.timer.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.watch.explain(b.ctx, err)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	err := b.ReadCloser.Close()
	if !b.upload {
		b.watch.timer.Stop()
		b.watch.cancel(nil)
	}
	return err
}

// boundedBody fails after so many bytes.
type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errManifest
	}
	return n, err
}
