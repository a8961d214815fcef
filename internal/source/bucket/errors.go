// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"

	"rukpak.io/rukpak/internal/source"
)

var errMore = errors.New("there are more bytes than were listed")

// changedError says that a bucket holds something else than what was pinned.
type changedError struct{ problem string }

func (e *changedError) Error() string { return e.problem + "; make a new Bundle to use it" }

// protocolError is an answer that no S3 service gives.
type protocolError struct{ problem string }

func (e *protocolError) Error() string { return e.problem }

// manyError says that a folder has too many objects.
type manyError struct{}

func (e *manyError) Error() string {
	return fmt.Sprintf("it has more than %d objects; put them into an archive and name that as the object", maxObjects)
}

// partError is a fault while an object arrives.
type partError struct {
	key        string
	read, size int64
	err        error
}

func (e *partError) Error() string {
	return fmt.Sprintf("object %q, after %d of %d bytes: %v", e.key, e.read, e.size, e.err)
}

func (e *partError) Unwrap() error { return e.err }

// unknownUser is what versitygw says, with status 404, where others say
// InvalidAccessKeyId with 403.
const unknownUser = "XAdminUserNotFound"

// judgeAnswer classifies an answer of the service.
func judgeAnswer(answer *minio.ErrorResponse) (source.Kind, string) {
	switch code := answer.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden, answer.Code == unknownUser:
		return source.Waiting, source.ReasonAuthenticationFailed
	case code == http.StatusNotFound, code == http.StatusGone:
		return source.Waiting, source.ReasonNotFound
	case code == http.StatusPreconditionFailed:
		return source.Waiting, source.ReasonContentMismatch
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= http.StatusInternalServerError:
		return source.Transient, source.ReasonSourceUnreachable
	}
	return source.Waiting, source.ReasonSourceError
}

// broken puts right what minio-go says of a connection that ended.
func broken(err error) error {
	if strings.Contains(err.Error(), "Connection closed by foreign host") {
		return errors.New("the connection ended before an answer came")
	}
	return err
}

// maxCode bounds what an error repeats of an answer.
const maxCode = 64

// answerError says what a service answers: status and code, and not its words,
// in which keys may be.
func (a *at) answerError(answer *minio.ErrorResponse) error {
	if answer.StatusCode == http.StatusPreconditionFailed {
		return &changedError{"an object was changed since it was listed"}
	}
	if answer.StatusCode == 0 {
		return errors.New("the answer is none of an S3 service")
	}
	text := strings.TrimSpace(fmt.Sprintf("the service answers %d %s", answer.StatusCode, http.StatusText(answer.StatusCode)))
	if code := plain(answer.Code); code != "" {
		text += " (" + code + ")"
	}
	if region := plain(answer.Region); region != "" && answer.StatusCode < http.StatusUnauthorized && region != a.source.Region {
		text += fmt.Sprintf("; the bucket may be in the region %q", region)
	}
	if (answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized) && a.source.AccessKey == "" {
		text += "; no secretRef gives it keys"
	}
	return errors.New(text)
}

// plain keeps a word as services use them.
func plain(text string) string {
	word := strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			return c
		}
		return -1
	}, text)
	return word[:min(len(word), maxCode)]
}
