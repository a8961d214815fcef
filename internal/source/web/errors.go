// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/outbound"
)

// StatusError is an answer without content.
type StatusError struct {
	Host    string
	Code    int
	After   time.Duration // for which the server asks not to be asked again
	foreign bool          // it did not get the credentials
}

// Error says what the server answers, and nothing of what it writes.
func (e *StatusError) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("%s answers %d %s", e.Host, e.Code, http.StatusText(e.Code)))
	if e.After > 0 {
		text += fmt.Sprintf(" and wants to be asked again after %s", e.After)
	}
	if e.foreign && denied(e.Code) {
		text += "; the credentials are for another server and were not sent to this one"
	}
	return text
}

// SlowError says that a request took too long, though bytes came now and then.
type SlowError struct{ After time.Duration }

// Error says how long.
func (e *SlowError) Error() string { return fmt.Sprintf("it did not come within %s", e.After) }

// redirectError is a redirect that is not followed.
type redirectError struct{ err error }

func (e *redirectError) Error() string { return e.err.Error() }
func (e *redirectError) Unwrap() error { return e.err }

func denied(code int) bool {
	return code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusProxyAuthRequired
}

// Judge turns an error of Get, or of reading a body, into a *source.Error. what
// names the source and holds no secrets. ctx is the caller's.
func Judge(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*source.Error](err); ok {
		return err
	}
	if ctx.Err() != nil {
		return source.Classify(what, ctx.Err())
	}
	text := describe(err)
	fail := func(kind source.Kind, reason string) error {
		return &source.Error{Kind: kind, Reason: reason, After: afterOf(err), Err: fmt.Errorf("%s: %w", what, text)}
	}
	if status, ok := errors.AsType[*StatusError](err); ok {
		return fail(judgeStatus(status.Code))
	}
	if _, ok := errors.AsType[*belowError](err); ok {
		return fail(source.Terminal, source.ReasonInvalidReference)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fail(source.Waiting, source.ReasonUntrustedServer)
	}
	if _, ok := errors.AsType[*redirectError](err); ok {
		return fail(source.Waiting, source.ReasonSourceError)
	}
	if _, ok := errors.AsType[*outbound.AddressError](err); ok {
		return fail(source.Waiting, source.ReasonSourceError)
	}
	return source.Classify(what, text)
}

func judgeStatus(code int) (source.Kind, string) {
	switch {
	case denied(code):
		return source.Waiting, source.ReasonAuthenticationFailed
	case code == http.StatusNotFound, code == http.StatusGone:
		return source.Waiting, source.ReasonNotFound
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= http.StatusInternalServerError:
		return source.Transient, source.ReasonSourceUnreachable
	default:
		return source.Waiting, source.ReasonSourceError
	}
}

// passing tells whether trying again at once makes sense.
func passing(err error) bool {
	if status, ok := errors.AsType[*StatusError](err); ok {
		switch status.Code {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	if _, ok := errors.AsType[*outbound.StallError](err); ok {
		return false // that took long enough
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) // a connection that broke
}

func afterOf(err error) time.Duration {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.After
	}
	return 0
}

// maxAfter bounds what a server may ask for.
const maxAfter = time.Hour

// retryAfter reads seconds or a date.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return min(max(0, time.Duration(seconds)*time.Second), maxAfter)
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(0, date.Sub(now).Round(time.Second)), maxAfter)
	}
	return 0
}

// describe leaves out URLs, whose queries may be signed.
func describe(err error) error {
	failed, ok := errors.AsType[*url.Error](err)
	if !ok {
		return broken(err)
	}
	host := ""
	if parsed, err := url.Parse(failed.URL); err == nil {
		host = parsed.Host
	}
	if text := failed.Err.Error(); strings.Contains(text, "server gave HTTP response to HTTPS client") || strings.Contains(text, "first record does not look like a TLS handshake") {
		return fmt.Errorf("%s speaks plain HTTP, not HTTPS; say http:// in the URL and set insecure to allow that", host)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](failed.Err); ok {
		return fmt.Errorf("%s: %w; if its authority is private, give its certificate with the key ca.crt of the Secret", host, failed.Err)
	}
	return fmt.Errorf("%s: %w", host, broken(failed.Err))
}

func broken(err error) error {
	bare := errors.Unwrap(err) == nil
	if bare && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)) {
		return &brokenError{err}
	}
	return err
}

// brokenError says in words what an early end of a connection means.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return "the connection ended before all bytes had come" }
func (e *brokenError) Unwrap() error { return e.err }
