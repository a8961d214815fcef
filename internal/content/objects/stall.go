// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Transport ends requests in which no byte moves, in either direction, for so
// long. A slow one may take its time.
func Transport(base http.RoundTripper, stall time.Duration) http.RoundTripper {
	return &transport{base: base, stall: stall}
}

type transport struct {
	base  http.RoundTripper
	stall time.Duration
}

// RoundTrip sends a request.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	clock := time.AfterFunc(t.stall, func() { cancel(fmt.Errorf("not a byte came for %s", t.stall)) })
	sent := request.Clone(ctx)
	if request.Body != nil && request.Body != http.NoBody {
		sent.Body = &moving{ReadCloser: request.Body, clock: clock, stall: t.stall}
	}
	response, err := t.base.RoundTrip(sent)
	clock.Stop()
	if err != nil {
		err = explained(ctx, request.Context(), err)
		cancel(nil)
		return nil, err
	}
	response.Body = &arriving{ReadCloser: response.Body, of: t, ctx: ctx, outer: request.Context(), cancel: cancel}
	return response, nil
}

// explained gives the reason for which a request was cut, unless its sender did it.
func explained(ctx, outer context.Context, err error) error {
	if ctx.Err() != nil && outer.Err() == nil {
		return context.Cause(ctx)
	}
	return err
}

// moving is a body on its way out. Each time that the connection takes more of it
// the clock begins anew.
type moving struct {
	io.ReadCloser
	clock *time.Timer
	stall time.Duration
}

func (m *moving) Read(p []byte) (int, error) {
	m.clock.Reset(m.stall)
	return m.ReadCloser.Read(p)
}

// arriving times each read of an answer. What its reader does between two reads
// does not count.
type arriving struct {
	io.ReadCloser
	of     *transport
	ctx    context.Context //nolint:containedctx // that of the request
	outer  context.Context //nolint:containedctx // as above
	cancel context.CancelCauseFunc
}

func (a *arriving) Read(p []byte) (int, error) {
	clock := time.AfterFunc(a.of.stall, func() { a.cancel(fmt.Errorf("not a byte came for %s", a.of.stall)) })
	n, err := a.ReadCloser.Read(p)
	clock.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = explained(a.ctx, a.outer, err)
	}
	return n, err
}

func (a *arriving) Close() error {
	err := a.ReadCloser.Close()
	a.cancel(nil)
	return err
}
