// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"rukpak.io/rukpak/internal/source/outbound"
)

// Bounds of one request.
const (
	DefaultTimeout = 10 * time.Second
	maxResponse    = 64 << 10 // bytes that are read, and thrown away, so that the connection is used again
	maxToken       = 16 << 10 // bytes
)

// Credentials are what a Secret has for a receiver.
type Credentials struct {
	Token string // bearer
	CA    []byte // in PEM, trusted beside the system's authorities
}

// StatusError says that a receiver has answered and not taken the event.
type StatusError struct{ Code int }

// Error says what was answered, but nothing of what the receiver wrote.
func (e *StatusError) Error() string {
	if e.Code >= 300 && e.Code < 400 {
		return fmt.Sprintf("it answered %d, which leads elsewhere and is not followed: name the url at which events are taken", e.Code)
	}
	return fmt.Sprintf("it answered %d %s", e.Code, http.StatusText(e.Code))
}

// ConfigError says that something has to be changed before anything can be sent.
type ConfigError struct{ problem string }

// Misconfigured makes one.
func Misconfigured(problem string) *ConfigError { return &ConfigError{problem} }

// Error says what.
func (e *ConfigError) Error() string { return e.problem }

// Sender posts events. Its zero value is ready to use; its methods may be called from several goroutines.
type Sender struct {
	Timeout time.Duration // of one request; 0 is DefaultTimeout

	transports outbound.Transports
}

// Send posts one event. It is taken if the answer is a 2xx. Neither url nor token are in the error.
func (s *Sender) Send(ctx context.Context, to string, with Credentials, content []byte) error {
	timeout := s.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := request(ctx, to, with, content)
	if err != nil {
		return err
	}
	transport, err := s.transports.Get(outbound.TLS{CA: with.CA}, false)
	if err != nil {
		return &ConfigError{"key ca.crt of its Secret: " + err.Error()}
	}
	sender := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := sender.Do(request)
	if err != nil {
		return plain(ctx, err, timeout)
	}
	defer response.Body.Close() //nolint:errcheck // nothing in it matters
	_, _ = io.CopyN(io.Discard, response.Body, maxResponse)
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return &StatusError{response.StatusCode}
	}
	return nil
}

func request(ctx context.Context, to string, with Credentials, content []byte) (*http.Request, error) {
	parsed, err := url.Parse(to)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, &ConfigError{"its url is not an absolute one with http or https"}
	}
	if parsed.User != nil {
		return nil, &ConfigError{"its url has a user or a password: put a token into its Secret instead"}
	}
	if with.Token != "" && parsed.Scheme != "https" {
		return nil, &ConfigError{"its Secret has a token, which is sent by https only: give it a url with https, or take the key token away"}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(content))
	if err != nil {
		return nil, &ConfigError{"its url cannot be used"}
	}
	request.Header.Set("Content-Type", event.ApplicationCloudEventsJSON+"; charset=utf-8")
	request.Header.Set("User-Agent", "rukpak")
	if with.Token != "" {
		if len(with.Token) > maxToken || strings.ContainsFunc(with.Token, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
			return nil, &ConfigError{"key token of its Secret is not a token: one line without spaces"}
		}
		request.Header.Set("Authorization", "Bearer "+with.Token)
	}
	return request, nil
}

// plain takes out of an error what is secret, as the url may be, and what differs each time, as the own port does.
func plain(ctx context.Context, err error, timeout time.Duration) error {
	if refused, ok := errors.AsType[*outbound.AddressError](err); ok {
		return refused
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", timeout)
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	if untrusted, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("%w; if its authority is private, put its certificate into the key ca.crt of its Secret", untrusted)
	}
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		if lookup.IsNotFound {
			return errors.New("there is no host of the name in its url")
		}
		return errors.New("the name in its url cannot be looked up")
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("%s: %w", operation.Op, operation.Err)
	}
	return err
}
