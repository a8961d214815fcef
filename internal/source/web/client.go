// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"rukpak.io/rukpak/internal/source/outbound"
)

// Defaults of Options.
const (
	DefaultTimeout = 30 * time.Minute
	tries          = 3
	maxRedirects   = 10
	userAgent      = "rukpak"
)

// backoff is the pause before the second try; before the third it is three
// times as long.
const backoff = 200 * time.Millisecond

// Transports gives what requests are sent with; *outbound.Transports is one.
type Transports interface {
	// Get gives the transport for a TLS. public makes it refuse addresses that
	// are not.
	Get(with outbound.TLS, public bool) (http.RoundTripper, error)
}

// Options of a Client. The zero value has good defaults.
type Options struct {
	Transports Transports
	Stall      time.Duration // ends a request in which no byte moves for so long
	Timeout    time.Duration // ends a request, however it moves

	private func(netip.Addr) bool // outbound.Private, but for tests
}

// Client gets files. Its methods may be called from several goroutines.
type Client struct{ options Options }

// NewClient makes a Client.
func NewClient(options Options) *Client {
	options.Stall = cmp.Or(options.Stall, outbound.DefaultStall)
	options.Timeout = cmp.Or(options.Timeout, DefaultTimeout)
	if options.Transports == nil {
		options.Transports = &outbound.Transports{}
	}
	if options.private == nil {
		options.private = outbound.Private
	}
	return &Client{options}
}

// Request says what to get.
type Request struct {
	URL         *url.URL // passes Parse
	Credentials Credentials
	ETag        string // of bytes that the caller knows; "" for none
}

// Answer is what came. Body is closed by the caller.
type Answer struct {
	Body      io.ReadCloser
	Size      int64  // that the server announces; -1 if it does not
	ETag      string // strong ones only: the same one means the same bytes
	Unchanged bool   // the bytes are those that the ETag of the request stands for; there is no body
}

// Get asks for a file. What may pass by itself is tried again, a little later,
// while no byte of the body has come. Errors are for Judge.
func (c *Client) Get(ctx context.Context, request Request) (*Answer, error) {
	limit := c.options.Timeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &SlowError{limit})
	for try := 1; ; try++ {
		answer, err := c.once(ctx, request)
		if err == nil {
			answer.Body = &limited{ReadCloser: answer.Body, ctx: ctx, cancel: cancel}
			return answer, nil
		}
		pause := backoff
		for range try - 1 {
			pause *= 3
		}
		if try == tries || !passing(err) || afterOf(err) > 2*time.Second {
			err = explain(ctx, err)
			cancel()
			return nil, err
		}
		select {
		case <-time.After(max(pause, afterOf(err))):
		case <-ctx.Done():
			err = explain(ctx, ctx.Err())
			cancel()
			return nil, err
		}
	}
}

func (c *Client) once(ctx context.Context, request Request) (*Answer, error) {
	sent, err := http.NewRequestWithContext(ctx, http.MethodGet, request.URL.String(), nil)
	if err != nil {
		return nil, err
	}
	sent.Header.Set("User-Agent", userAgent)
	sent.Header.Set("Accept-Encoding", "identity") // what is pinned is the bytes as the server has them
	if request.ETag != "" {
		sent.Header.Set("If-None-Match", request.ETag)
	}
	way := &way{client: c, first: request.URL, credentials: request.Credentials}
	client := http.Client{Transport: way, CheckRedirect: way.follow}
	response, err := client.Do(sent)
	if err != nil {
		return nil, err
	}
	return way.judge(response, request)
}

// judge turns a response into an answer or an error.
func (w *way) judge(response *http.Response, request Request) (*Answer, error) {
	switch {
	case response.StatusCode == http.StatusOK:
		return &Answer{Body: response.Body, Size: response.ContentLength, ETag: strong(response.Header.Get("ETag"))}, nil
	case response.StatusCode == http.StatusNotModified && request.ETag != "":
		return &Answer{Body: response.Body, Size: 0, ETag: request.ETag, Unchanged: true}, nil
	}
	_ = response.Body.Close() // what it says is not shown to anybody
	return nil, &StatusError{
		Host: response.Request.URL.Host, Code: response.StatusCode, After: retryAfter(response.Header, time.Now()),
		foreign: w.foreign(response.Request.URL) && !request.Credentials.empty(),
	}
}

// strong gives an ETag that stands for bytes; weak ones stand for a meaning.
func strong(etag string) string {
	if len(etag) < 2 || etag[0] != '"' || len(etag) > 1024 {
		return ""
	}
	return etag
}

// limited ends with the time of the request.
type limited struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelFunc
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = explain(l.ctx, err)
	}
	return n, err
}

func (l *limited) Close() error {
	err := l.ReadCloser.Close()
	l.cancel()
	return err
}

// explain replaces the error of a request whose time is over by the reason.
func explain(ctx context.Context, err error) error {
	if slow, ok := errors.AsType[*SlowError](context.Cause(ctx)); ok {
		return slow
	}
	return err
}
