// SPDX-License-Identifier: Apache-2.0

package ociregistry

import (
	"crypto/subtle"
	"io"
	"log"
	"net/http"
	"slices"
	"sync"
)

// Request is one request as it arrived, faults and refused ones included.
type Request struct {
	Method, Path  string
	Query         string // undecoded
	Authorization string // the header
}

// Requests returns all requests since the start or the last ForgetRequests, in the order of their arrival: what a
// test needs to tell that nothing was fetched twice.
func (r *Registry) Requests() []Request { return r.log.all() }

// ForgetRequests begins the list of requests anew.
func (r *Registry) ForgetRequests() { r.log.forget() }

type requestLog struct {
	mu       sync.Mutex
	requests []Request
}

func (l *requestLog) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		l.requests = append(l.requests, Request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Authorization")})
		l.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

func (l *requestLog) all() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

func (l *requestLog) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = nil
}

// authenticate lets nobody pass but the user, if there is one.
func authenticate(user, password string, next http.Handler) http.Handler {
	if user == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gotUser, gotPassword, _ := r.BasicAuth()
		if same(gotUser, user) && same(gotPassword, password) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="ociregistry"`)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`)
	})
}

func same(got, want string) bool { return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1 }

// quiet takes what net/http says of broken connections, which tests break by the dozen.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
