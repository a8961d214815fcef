// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"rukpak.io/rukpak/internal/content/objects"
)

func TestRequestsThatStallEnd(t *testing.T) {
	forever := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/body":
			_, _ = w.Write([]byte("half"))
			w.(http.Flusher).Flush()
			<-forever
		case "/silent":
			<-forever
		default:
			_, _ = io.Copy(w, r.Body)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(forever) })
	send := func(ctx context.Context, stall time.Duration, path string, body io.Reader) ([]byte, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		response, err := objects.Transport(http.DefaultTransport, stall).RoundTrip(request)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close() //nolint:errcheck // it is only read
		return io.ReadAll(response.Body)
	}
	for _, path := range []string{"/body", "/silent"} {
		if _, err := send(t.Context(), 50*time.Millisecond, path, nil); err == nil || !strings.Contains(err.Error(), "not a byte came for 50ms") {
			t.Errorf("%s: %v", path, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := send(ctx, time.Hour, "/silent", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller who gives up: %v", err)
	}
	if got, err := send(t.Context(), time.Minute, "/echo", strings.NewReader(strings.Repeat("x", 1<<20))); err != nil || len(got) != 1<<20 {
		t.Errorf("a request that moves: %d bytes, %v", len(got), err)
	}
}
