// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"rukpak.io/rukpak/internal/registry/rules"
)

// Defaults and bounds of retries that a rule asks for.
const (
	defaultDelay    = 500 * time.Millisecond
	defaultMaxDelay = 30 * time.Second
	drained         = 64 << 10 // bytes of a refused answer that are read so that its connection can be used again
)

// Paced sends requests at the rate and with the retries of a rule. name tells
// one limit from another.
func (c *Config) Paced(next http.RoundTripper, name string, access *rules.Access) http.RoundTripper {
	if access.Rate == (rules.Rate{}) && access.Retry.Attempts < 2 {
		return next
	}
	p := &paced{next: next, retry: access.Retry}
	if access.Rate.PerSecond > 0 {
		from := defaults
		if c != nil {
			from = c.pool
		}
		p.limiter = from.limiter(name, access.Rate)
	}
	return p
}

func limiterKey(name string, limit rules.Rate) string {
	return fmt.Sprintf("%s %g %d", name, limit.PerSecond, limit.Burst)
}

func (p *pool) limiter(name string, limit rules.Rate) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := limiterKey(name, limit)
	if p.limiters[key] == nil {
		p.limiters[key] = rate.NewLimiter(rate.Limit(limit.PerSecond), max(1, limit.Burst))
	}
	return p.limiters[key]
}

type paced struct {
	next    http.RoundTripper
	retry   rules.Retry
	limiter *rate.Limiter
}

// RoundTrip sends a request, and again if it can be and has to.
func (p *paced) RoundTrip(request *http.Request) (*http.Response, error) {
	delay := cmp.Or(p.retry.Delay, defaultDelay)
	most := cmp.Or(p.retry.MaxDelay, defaultMaxDelay)
	for attempt := 1; ; attempt++ {
		if p.limiter != nil {
			if err := p.limiter.Wait(request.Context()); err != nil {
				return nil, err
			}
		}
		response, err := p.next.RoundTrip(request)
		if attempt >= p.retry.Attempts || !repeatable(request) || !passing(request.Context(), response, err) {
			return response, err
		}
		wait := min(max(delay, retryAfter(response)), most)
		if response != nil {
			_, _ = io.CopyN(io.Discard, response.Body, drained) // only for the sake of the connection
			_ = response.Body.Close()
		}
		if err := sleep(request.Context(), wait); err != nil {
			return nil, err
		}
		delay *= 2
	}
}

// repeatable tells whether a request can be sent twice.
func repeatable(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.Body == nil || r.Body == http.NoBody)
}

// passing tells whether a failure may be gone the next time.
func passing(ctx context.Context, response *http.Response, err error) bool {
	if err != nil {
		_, blocked := errors.AsType[*rules.BlockedError](err)
		return ctx.Err() == nil && !blocked
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// retryAfter is what a server asks for, in seconds or as a time.
func retryAfter(response *http.Response) time.Duration {
	if response == nil {
		return 0
	}
	text := response.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(seconds, 3600)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return time.Until(at)
	}
	return 0
}

func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
