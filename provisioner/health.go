// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// readyTime is how old the last answer to a request for work may be.
const readyTime = 2 * time.Minute

// serveHealth answers on an address until it is stopped: /healthz while no call is stuck, /readyz while work can be asked
// for, or is at hand.
func (s *server) serveHealth(ctx context.Context, address string) (stop func(), err error) {
	if address == "" || address == "0" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for health checks: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if stuck := s.stuck.Load(); stuck > 0 {
			http.Error(w, fmt.Sprintf("%d calls of the provisioner did not end with their context", stuck), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.asked.Load() < time.Now().Add(-readyTime).UnixNano() && s.busy.Load() == 0 {
			http.Error(w, "no work could be asked for; the log says why", http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: shortTime}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("health checks are no longer answered", "error", err)
		}
	}()
	return func() { _ = server.Close() }, nil
}
