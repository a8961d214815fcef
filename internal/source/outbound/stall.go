// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// DefaultStall is how long a request may go without a byte.
const DefaultStall = 30 * time.Second

// StallError says that a server went silent.
type StallError struct{ After time.Duration }

// Error says for how long.
func (e *StallError) Error() string { return fmt.Sprintf("not a byte came for %s", e.After) }

// Watched ends requests in which nothing moves for so long. Their errors are a
// *StallError then.
func Watched(base http.RoundTripper, stall time.Duration) http.RoundTripper {
	return &watched{base: base, stall: stall}
}

type watched struct {
	base  http.RoundTripper
	stall time.Duration
}

// RoundTrip sends one request.
func (w *watched) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	clock := time.AfterFunc(w.stall, func() { cancel(&StallError{w.stall}) })
	response, err := w.base.RoundTrip(request.WithContext(ctx))
	clock.Stop()
	if err != nil {
		err = explain(ctx, err)
		cancel(nil)
		return nil, err
	}
	response.Body = &watchedBody{ReadCloser: response.Body, clock: clock, watch: w, ctx: ctx, cancel: cancel}
	return response, nil
}

// explain replaces the error of a request that was cut by the reason for it.
func explain(ctx context.Context, err error) error {
	if stalled, ok := errors.AsType[*StallError](context.Cause(ctx)); ok {
		return stalled
	}
	return err
}

// watchedBody times each read. What its reader does between two reads does not count.
type watchedBody struct {
	io.ReadCloser
	clock  *time.Timer
	watch  *watched
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.clock.Reset(b.watch.stall)
	n, err := b.ReadCloser.Read(p)
	b.clock.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = explain(b.ctx, err)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	err := b.ReadCloser.Close()
	b.clock.Stop()
	b.cancel(nil)
	return err
}
