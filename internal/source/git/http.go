// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"rukpak.io/rukpak/internal/source/outbound"
)

const (
	service      = "git-upload-pack"
	infoRefs     = "/info/refs"
	maxRedirects = 5
	userAgent    = "git/2.0 (rukpak)" // some servers answer only what calls itself git
)

// statusError is an answer of HTTP that is no success.
type statusError struct {
	code  int
	host  string
	moved bool          // a redirect led there, and credentials did not go along
	after time.Duration // for which the server asks not to be asked again
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("%s answers %d %s", e.host, e.code, http.StatusText(e.code))
	if e.moved {
		text += "; a redirect led there, so it was sent no credentials: use its url"
	}
	return text
}

// overHTTP is a conversation in git's "smart" protocol: each request is a POST.
type overHTTP struct {
	fetcher     *Fetcher
	at          address
	credentials Credentials
	onlyPublic  bool // where the server may be

	base       string // URL of the repository, after redirects
	trusted    bool   // it is still where the credentials belong
	seenPublic bool
	body       io.ReadCloser // of the last answer
}

var _ conversation = (*overHTTP)(nil)

func (c *overHTTP) public() bool { return c.seenPublic }

func (c *overHTTP) close() {
	if c.body != nil {
		_ = c.body.Close() // all that matters was read
		c.body = nil
	}
}

// begin asks which references there are. This first request is redirected where
// a repository has moved; the others then go there directly.
func (c *overHTTP) begin(ctx context.Context) (io.Reader, error) {
	c.base, c.trusted = c.at.String(), true
	for range maxRedirects + 1 {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+infoRefs+"?service="+service, nil)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Git-Protocol", "version=2")
		response, err := c.send(request)
		if err != nil {
			return nil, err
		}
		if location := response.Header.Get("Location"); response.StatusCode/100 == 3 && location != "" {
			if err := c.redirect(request.URL, location); err != nil {
				return nil, err
			}
			continue
		}
		return c.answer(response, "application/x-"+service+"-advertisement")
	}
	return nil, &redirectError{fmt.Sprintf("it redirects more than %d times", maxRedirects)}
}

// redirectError is a redirect that is not followed.
type redirectError struct{ problem string }

func (e *redirectError) Error() string { return e.problem }

func (c *overHTTP) redirect(from *url.URL, location string) error {
	to, err := from.Parse(location)
	if err != nil {
		return &redirectError{"it redirects to a malformed URL"}
	}
	base, ok := strings.CutSuffix(to.EscapedPath(), infoRefs)
	next, err := parseAddress(to.Scheme + "://" + to.Host + base)
	switch {
	case !ok || err != nil || next.scheme == schemeSSH:
		return &redirectError{fmt.Sprintf("it redirects to %s, to what is no repository; is the url right?", to.Host)}
	case next.scheme == schemeHTTP && from.Scheme != schemeHTTP:
		return &redirectError{fmt.Sprintf("it redirects to plain HTTP at %s, which is not followed", next.host)}
	}
	if !next.sameServer(c.at) {
		c.trusted = false
	}
	c.onlyPublic = c.onlyPublic || c.seenPublic
	c.base = next.String()
	return nil
}

// ask posts a request.
func (c *overHTTP) ask(ctx context.Context, body []byte) (io.Reader, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/"+service, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Git-Protocol", "version=2")
	request.Header.Set("Content-Type", "application/x-"+service+"-request")
	request.Header.Set("Accept", "application/x-"+service+"-result")
	response, err := c.send(request)
	if err != nil {
		return nil, err
	}
	return c.answer(response, "application/x-"+service+"-result")
}

// send sends a request, with credentials only where they belong.
func (c *overHTTP) send(request *http.Request) (*http.Response, error) {
	c.close()
	request.Header.Set("User-Agent", userAgent)
	if c.trusted {
		c.credentials.authorize(request)
	}
	transport, err := c.fetcher.options.Transports.Get(outbound.TLS{CA: c.credentials.CA}, c.onlyPublic)
	if err != nil {
		return nil, err
	}
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if at, err := netip.ParseAddrPort(got.Conn.RemoteAddr().String()); err == nil {
			c.seenPublic = !outbound.Private(at.Addr())
		}
	}}
	request = request.WithContext(httptrace.WithClientTrace(request.Context(), trace))
	response, err := outbound.Watched(transport, c.fetcher.options.StallTimeout).RoundTrip(request) //nolint:bodyclose // close does it
	if err != nil {
		return nil, &reachError{request.URL.Host, err}
	}
	c.body = response.Body
	return response, nil
}

// answer judges an answer before git's protocol begins in it.
func (c *overHTTP) answer(response *http.Response, mediaType string) (io.Reader, error) {
	host := response.Request.URL.Host
	if response.StatusCode != http.StatusOK {
		return nil, &statusError{response.StatusCode, host, !c.trusted && c.credentials.forHTTP(), retryAfter(response.Header)}
	}
	got, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || got != mediaType {
		return nil, badAnswer("%s does not answer as a git server (it gives the media type %.60q); is the url right?", host, got)
	}
	return &arriving{r: response.Body, host: host}, nil
}

// maxAfter bounds how long a server may ask to be left alone.
const maxAfter = time.Hour

// retryAfter reads seconds; the other form, a date, needs clocks that agree, and
// is left to the pauses between tries.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxAfter)
}

// reachError is a failure on the way to a server or back.
type reachError struct {
	host string
	err  error
}

func (e *reachError) Error() string { return fmt.Sprintf("%s: %v", e.host, e.err) }
func (e *reachError) Unwrap() error { return e.err }

// arriving names the server in errors of reading.
type arriving struct {
	r    io.Reader
	host string
}

func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &reachError{a.host, err}
	}
	return n, err
}
