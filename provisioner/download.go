// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// barrenTries is how often in a row a download may break off, or not begin, without a byte that is new.
const barrenTries = 5

// download reads a document that does not change, and goes on where it broke off: an API server ends each request after a
// minute, however much has yet to come. It takes as long as its context lets it.
type download struct {
	ctx   context.Context //nolint:containedctx // it is a reader, of one job
	begin func(from int64) (*http.Response, error)

	body   io.ReadCloser
	at     int64 // bytes that were read
	barren int
}

// Read reads on.
func (d *download) Read(p []byte) (int, error) {
	for {
		err := d.open()
		if err == nil {
			var n int
			n, err = d.body.Read(p)
			d.at += int64(n)
			if n > 0 {
				d.barren = 0
				return n, nil // an error comes again, or is found by reading on
			}
			if errors.Is(err, io.EOF) {
				return 0, io.EOF
			}
			if err == nil {
				return 0, nil
			}
			d.close()
		}
		if d.barren++; d.barren >= barrenTries || final(err) || d.ctx.Err() != nil {
			return 0, err
		}
		sleep(d.ctx, max(firstPause/4, retryAfter(err)))
	}
}

// open asks for what is not yet read, if there is no answer being read.
func (d *download) open() error {
	if d.body != nil {
		return nil
	}
	response, err := d.begin(d.at)
	if err != nil {
		return err
	}
	d.body = response.Body
	if d.at == 0 || response.StatusCode == http.StatusPartialContent {
		return nil
	}
	if _, err := io.CopyN(io.Discard, d.body, d.at); err != nil { // an older manager sends all of it again
		d.close()
		return fmt.Errorf("read again what was there before: %w", err)
	}
	return nil
}

func (d *download) close() {
	if d.body != nil {
		_ = d.body.Close() // it was only read
		d.body = nil
	}
}

// final says of a refusal that it stays: the job is gone, or not ours.
func final(err error) bool {
	var said apierrors.APIStatus
	if !errors.As(err, &said) {
		return false
	}
	code := said.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout
}
