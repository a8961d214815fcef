// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/outbound"
	"rukpak.io/rukpak/internal/unpack"
)

// failed makes a classified error whose text is one line, names the reference
// and holds none of the secrets.
func failed(kind source.Kind, reason string, ref fmt.Stringer, err error, secrets ...string) *source.Error {
	clean := &cleanError{text: scrub(describe(err).Error(), secrets), err: err}
	return &source.Error{Kind: kind, Reason: reason, Err: fmt.Errorf("oci %s: %w", ref, clean)}
}

// blobError is a fault while the bytes of a layer arrive.
type blobError struct {
	digest string
	read   int64 // bytes that came
	size   int64 // bytes that should come
	err    error
}

func (e *blobError) Error() string {
	return fmt.Sprintf("blob %s, after %d of %d bytes: %v", e.digest, e.read, e.size, describe(e.err))
}

func (e *blobError) Unwrap() error { return e.err }

// classify turns an error into a *source.Error.
func (f *Fetcher) classify(ctx context.Context, src Source, ref name.Reference, err error) error {
	if judged, ok := errors.AsType[*source.Error](err); ok {
		if _, several := errors.AsType[*missedError](err); several {
			return failed(judged.Kind, judged.Reason, ref, err, f.secrets(src, ref)...)
		}
		return err
	}
	kind, reason := judge(ctx, err)
	return failed(kind, reason, ref, err, f.secrets(src, ref)...)
}

// cleanError has a text that may be shown, and keeps the cause.
type cleanError struct {
	text string
	err  error
}

func (e *cleanError) Error() string { return e.text }
func (e *cleanError) Unwrap() error { return e.err }

func judge(ctx context.Context, err error) (source.Kind, string) {
	if _, ok := errors.AsType[*unpack.LimitError](err); ok || errors.Is(err, errManifest) {
		return source.Terminal, source.ReasonLimitExceeded
	}
	if _, ok := errors.AsType[*content.UnsafeError](err); ok {
		return source.Terminal, source.ReasonUnsafeContent
	}
	if _, ok := errors.AsType[*content.StoreError](err); ok {
		return source.Transient, source.ReasonStoreFailed
	}
	if _, ok := errors.AsType[*content.CorruptError](err); ok {
		return source.Transient, source.ReasonStoreFailed
	}
	if _, ok := errors.AsType[*rules.BlockedError](err); ok {
		return source.Waiting, source.ReasonBlocked
	}
	if _, ok := errors.AsType[*rules.ProblemError](err); ok {
		return source.Waiting, source.ReasonInvalidRegistryConfig
	}
	if ctx.Err() != nil { // of the caller
		return source.Transient, source.ReasonCanceled
	}
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		return judgeStatus(answer.StatusCode)
	}
	if _, ok := errors.AsType[*outbound.AddressError](err); ok {
		return source.Waiting, source.ReasonRegistryError
	}
	if unreachable(err) {
		return source.Transient, source.ReasonRegistryUnreachable
	}
	if _, ok := errors.AsType[*blobError](err); ok {
		return source.Transient, source.ReasonContentMismatch
	}
	return source.Transient, source.ReasonRegistryError
}

func judgeStatus(status int) (source.Kind, string) {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return source.Waiting, source.ReasonAuthenticationFailed
	case status == http.StatusNotFound, status == http.StatusGone:
		return source.Waiting, source.ReasonNotFound
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= http.StatusInternalServerError:
		return source.Transient, source.ReasonRegistryUnreachable
	default:
		return source.Transient, source.ReasonRegistryError
	}
}

// unreachable tells whether the way to the registry failed, rather than what it said.
func unreachable(err error) bool {
	if _, ok := errors.AsType[*stallError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*slowError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok { // also *url.Error
		return true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, errPlainHTTP)
}

// noToken begins an error of go-containerregistry that goes on with the whole
// answer of a token server. The registry says where that is, so it may be any
// server that we reach: what it says is for nobody to read.
const noToken = "no token in bearer response"

// describe leaves out what go-containerregistry adds: URLs, whose queries may be
// signed, answers, and a second try over HTTP that never happened.
func describe(err error) error {
	if missed, ok := errors.AsType[*missedError](err); ok {
		return missed
	}
	if blob, ok := errors.AsType[*blobError](err); ok {
		return blob
	}
	if access, ok := errors.AsType[*accessError](err); ok {
		return &accessError{tried: access.tried, err: describe(access.err)}
	}
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		return errors.New(answerText(answer))
	}
	if strings.Contains(err.Error(), noToken) {
		return errors.New("the answer of the token server that the registry names holds no token")
	}
	failed, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	host := ""
	if parsed, err := url.Parse(failed.URL); err == nil {
		host = parsed.Host
	}
	if strings.Contains(failed.Err.Error(), "server gave HTTP response to HTTPS client") {
		return fmt.Errorf("%s speaks plain HTTP, not HTTPS; set insecure to allow that for this registry", host)
	}
	return fmt.Errorf("%s: %w", host, failed.Err)
}

// answerText says what a registry answered, without the URL.
func answerText(answer *transport.Error) string {
	text := fmt.Sprintf("the registry answers %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	var details []string
	for _, d := range answer.Errors {
		details = append(details, fmt.Sprintf("%s: %s", d.Code, d.Message))
	}
	if len(details) > 0 {
		text += " (" + strings.Join(details, "; ") + ")"
	}
	return text
}

// maxText is how much of a registry's words an error repeats.
const maxText = 700

// scrub makes one line of a text and takes secrets out.
func scrub(text string, secrets []string) string {
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return text
}

// short tells whether hiding a text would make errors unreadable; it is no secret then.
func short(text string) bool { return len(text) <= 3 }

// secrets gives what must not be shown: a registry may repeat what it was sent.
func (f *Fetcher) secrets(src Source, ref name.Reference) []string {
	var secrets []string
	candidates := f.candidates(src, ref.Context())
	now, cancel := context.WithCancel(context.Background())
	cancel() // what is not loaded yet has no secrets that were sent
	if hops, err := f.route(now, src, ref); err == nil && f.options.Registries != nil {
		for _, h := range hops {
			candidates = append(candidates, h.credentials...)
			secrets = append(secrets, slices.DeleteFunc(h.secrets, short)...)
		}
	}
	for _, candidate := range candidates {
		config, err := candidate.Authorization()
		if err != nil {
			continue
		}
		basic := http.Request{Header: http.Header{}}
		basic.SetBasicAuth(config.Username, config.Password)
		_, encoded, _ := strings.Cut(basic.Header.Get("Authorization"), " ")
		for _, secret := range []string{config.Password, config.Auth, config.IdentityToken, config.RegistryToken, encoded} {
			if !short(secret) {
				secrets = append(secrets, secret)
			}
		}
	}
	return secrets
}
