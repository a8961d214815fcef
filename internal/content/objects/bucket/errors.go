// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"

	"rukpak.io/rukpak/internal/content/objects"
)

// failed makes an error of what minio-go says; nil stays nil.
func (b *Bucket) failed(ctx context.Context, op string, err error) error {
	if err == nil || objects.Given(ctx, err) {
		return err
	}
	kind, err := judge(err)
	if kind == missing {
		return fs.ErrNotExist
	}
	return &objects.Error{Place: b.String(), Op: op, Kind: kind, Err: err}
}

const missing objects.Kind = -1

// judge keeps of an answer its status and code, and not its words, in which keys
// may be and which differ each time.
func judge(err error) (objects.Kind, error) {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok || answer.StatusCode == 0 {
		return objects.Unavailable, plainly(err)
	}
	text := strings.TrimSpace(fmt.Sprintf("the service answers %d %s", answer.StatusCode, http.StatusText(answer.StatusCode)))
	if code := word(answer.Code); code != "" {
		text += " (" + code + ")"
	}
	return kindOf(answer.StatusCode, answer.Code), errors.New(text)
}

func kindOf(status int, code string) objects.Kind {
	switch code {
	case "NoSuchKey":
		return missing
	case "NoSuchBucket":
		return objects.NoPlace
	case "XAdminUserNotFound": // versitygw's InvalidAccessKeyId
		return objects.Refused
	case "QuotaExceeded", "XMinioStorageFull", "XAdminBucketQuotaExceeded":
		return objects.Full
	}
	switch {
	case status == http.StatusNotFound:
		return missing
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return objects.Refused
	case status == http.StatusInsufficientStorage:
		return objects.Full
	case status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		return objects.Unsupported
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= http.StatusInternalServerError:
		return objects.Unavailable
	}
	return objects.Broken
}

// plainly leaves out ports and addresses, which differ each time: an error that
// says the same is to read the same.
func plainly(err error) error {
	if strings.Contains(err.Error(), "Connection closed by foreign host") {
		return errors.New("the connection ended before an answer came")
	}
	if at, ok := errors.AsType[*url.Error](err); ok {
		err = at.Err
	}
	if at, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("%s: %w", at.Op, at.Err)
	}
	return err
}

const maxWord = 64

// word keeps a code as services use them.
func word(text string) string {
	kept := strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			return c
		}
		return -1
	}, text)
	return kept[:min(len(kept), maxWord)]
}
