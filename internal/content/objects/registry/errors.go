// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"rukpak.io/rukpak/internal/content/objects"
)

const missing objects.Kind = -1

func isMissing(err error) bool {
	answer, ok := errors.AsType[*transport.Error](err)
	return ok && answer.StatusCode == http.StatusNotFound
}

// judge keeps of an answer its status and code, and not its words.
func judge(err error) (objects.Kind, error) {
	if _, ok := errors.AsType[*damagedError](err); ok {
		return objects.Damaged, err
	}
	answer, ok := errors.AsType[*transport.Error](err)
	if !ok {
		return judgeOther(err)
	}
	text := strings.TrimSpace(fmt.Sprintf("the registry answers %d %s", answer.StatusCode, http.StatusText(answer.StatusCode)))
	for _, diagnostic := range answer.Errors {
		text += fmt.Sprintf(" (%s)", diagnostic.Code)
	}
	return kindOf(answer.StatusCode), errors.New(text)
}

func kindOf(status int) objects.Kind {
	switch {
	case status == http.StatusNotFound:
		return missing
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return objects.Refused
	case status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		return objects.Unsupported
	case status == http.StatusInsufficientStorage, status == http.StatusRequestEntityTooLarge:
		return objects.Full
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= http.StatusInternalServerError:
		return objects.Unavailable
	}
	return objects.Broken
}

// judgeOther looks at errors that are no answers. Ports and addresses are left
// out: an error that says the same is to read the same.
func judgeOther(err error) (objects.Kind, error) {
	// go-containerregistry has no type for bytes that lack their digest.
	if text := err.Error(); strings.Contains(text, "error verifying") || strings.Contains(text, "does not match") {
		return objects.Damaged, errors.New("the bytes are not those that its manifest names")
	}
	if at, ok := errors.AsType[*url.Error](err); ok {
		err = at.Err
	}
	if at, ok := errors.AsType[*net.OpError](err); ok {
		err = fmt.Errorf("%s: %w", at.Op, at.Err)
	}
	return objects.Unavailable, err
}
