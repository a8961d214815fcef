// SPDX-License-Identifier: Apache-2.0

package git

import (
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
	"unicode"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/outbound"
)

// slowError says that it took too long, though bytes came now and then.
type slowError struct{ after time.Duration }

func (e *slowError) Error() string { return fmt.Sprintf("it was not done within %s", e.after) }

// name is what errors call the source. A URL that does not parse may hold a
// password, and is not shown.
func (a *at) name() string {
	if where, err := parseAddress(a.source.URL); err == nil {
		return "git " + where.String()
	}
	return "git"
}

func (a *at) invalid(err error) error {
	return &source.Error{Kind: source.Terminal, Reason: source.ReasonInvalidReference, Err: fmt.Errorf("%s: %w", a.name(), err)}
}

// failed makes a classified error whose text is one line and holds no secrets.
func (a *at) failed(ctx context.Context, err error) error {
	if slow, ok := errors.AsType[*slowError](context.Cause(ctx)); ok {
		err = slow // whatever it looked like
	}
	kind, reason := judge(ctx, err)
	clean := &cleanError{text: scrub(a.describe(err), a.source.Credentials.secrets()), err: err}
	var after time.Duration
	if answer, ok := errors.AsType[*statusError](err); ok {
		after = answer.after
	}
	return &source.Error{Kind: kind, Reason: reason, After: after, Err: fmt.Errorf("%s: %w", a.name(), clean)}
}

// cleanError has a text that may be shown, and keeps the cause.
type cleanError struct {
	text string
	err  error
}

func (e *cleanError) Error() string { return e.text }
func (e *cleanError) Unwrap() error { return e.err }

// is tells whether an error of a type is in a chain.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func judge(ctx context.Context, err error) (source.Kind, string) {
	if judged, ok := errors.AsType[*source.Error](err); ok { // such as by the rules of the registry configuration
		return judged.Kind, judged.Reason
	}
	switch {
	case is[*slowError](err):
		return source.Transient, source.ReasonSourceUnreachable
	case ctx.Err() != nil: // of the caller
		return source.Transient, source.ReasonCanceled
	case is[*hostKeyError](err), is[*tls.CertificateVerificationError](err):
		return source.Waiting, source.ReasonUntrustedServer
	case is[*redirectError](err), is[*outbound.AddressError](err):
		return source.Waiting, source.ReasonSourceError
	case is[*loginError](err):
		return source.Waiting, source.ReasonAuthenticationFailed
	case is[*absentError](err), is[*goneError](err):
		return source.Waiting, source.ReasonNotFound
	case is[*subPathError](err):
		return source.Terminal, source.ReasonNotFound
	case is[*rangeError](err), is[*noURLError](err), errors.Is(err, errObjectFormat):
		return source.Terminal, source.ReasonInvalidReference
	case is[*pointerError](err):
		return source.Terminal, source.ReasonUnsupportedContent
	case is[*tooManyError](err), errors.Is(err, errWords):
		return source.Terminal, source.ReasonLimitExceeded
	}
	return judgeAnswer(err)
}

// judgeAnswer judges what a server said, or how it broke off.
func judgeAnswer(err error) (source.Kind, string) {
	if answer, ok := errors.AsType[*statusError](err); ok {
		return judgeStatus(answer.code)
	}
	if said, ok := errors.AsType[*serverError](err); ok {
		return judgeWords(said.text)
	}
	switch {
	case is[*packError](err):
		return source.Transient, source.ReasonContentMismatch
	case is[*wrongKindError](err):
		return source.Terminal, source.ReasonInvalidReference
	case is[*protocolError](err):
		return source.Transient, source.ReasonSourceError
	}
	shared := source.Classify("", err) // limits, unsafe content, the store; else it was unreachable
	return source.KindOf(shared), source.ReasonOf(shared)
}

func judgeStatus(status int) (source.Kind, string) {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return source.Waiting, source.ReasonAuthenticationFailed
	case status == http.StatusNotFound, status == http.StatusGone:
		return source.Waiting, source.ReasonNotFound
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= http.StatusInternalServerError:
		return source.Transient, source.ReasonSourceUnreachable
	default:
		return source.Waiting, source.ReasonSourceError
	}
}

// absentWords are how servers of SSH say that there is no repository. They have
// no codes for it, and many say the same of one that somebody may not see.
var absentWords = []string{"not found", "could not be found", "does not exist", "does not appear to be a git repository", "not a git repository", "no such"}

func judgeWords(text string) (source.Kind, string) {
	text = strings.ToLower(text)
	for _, words := range absentWords {
		if strings.Contains(text, words) {
			return source.Waiting, source.ReasonNotFound
		}
	}
	if strings.Contains(text, "denied") || strings.Contains(text, "unauthorized") {
		return source.Waiting, source.ReasonAuthenticationFailed
	}
	return source.Transient, source.ReasonSourceError
}

// describe says what is wrong and, where that is known, what to do.
func (a *at) describe(err error) string {
	text := err.Error()
	if failed, ok := errors.AsType[*url.Error](err); ok {
		text = failed.Err.Error()
	}
	if answer, refused := errors.AsType[*statusError](err); refused {
		return text + a.hint(answer)
	}
	switch {
	case is[*tls.CertificateVerificationError](err):
		text += "; if it has an authority of its own, give that in the key " + keyCA + " of the Secret that secretRef names"
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		text = "the server speaks plain HTTP, not HTTPS; an http:// url with insecure allows that"
	case is[net.Error](err), is[*outbound.StallError](err): // they say it all
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		text += " (the answer ends too early)"
	}
	return text
}

// hint says what an answer may mean.
func (a *at) hint(answer *statusError) string {
	switch {
	case answer.moved:
	case answer.code == http.StatusUnauthorized && !a.source.Credentials.forHTTP():
		return "; give credentials in a Secret that secretRef names"
	case answer.code == http.StatusUnauthorized, answer.code == http.StatusForbidden:
		return "; the credentials in the Secret do not open this repository"
	case answer.code == http.StatusNotFound:
		return "; many servers say that also of repositories that the credentials do not open"
	}
	return ""
}

// maxText is how much of a server's words an error repeats.
const maxText = 700

// scrub makes one line of a text and takes secrets out.
func scrub(text string, secrets []string) string {
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(text) > maxText {
		text = text[:maxText] + "..."
	}
	return strings.ToValidUTF8(text, "?")
}
