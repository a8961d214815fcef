// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/registry"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/testenv/forwardproxy"
)

// server notes what it is asked.
type server struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func newServer(t *testing.T, tls bool, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Authorization")))
		s.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	})
	if tls {
		s.Server = httptest.NewTLSServer(handler)
	} else {
		s.Server = httptest.NewServer(handler)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func (s *server) host() string { return s.Listener.Addr().String() }

func (s *server) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func logins(user, password string) []registry.Login {
	l := registry.Login{}
	l.Username, l.Password = user, password
	return []registry.Login{l}
}

func get(t *testing.T, c *Config, url string, header ...string) (int, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := c.Client().Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func with(list ...rules.Rule) *Config { return Fixed(rules.NewSet(list, nil), nil) }

func TestWithoutConfigurationAllIsAsByDefault(t *testing.T) {
	s := newServer(t, false, nil)
	var none *Config
	if code, err := get(t, none, s.URL+"/a"); code != http.StatusOK || err != nil {
		t.Errorf("got %d, %v", code, err)
	}
	if code, err := get(t, with(), s.URL+"/a"); code != http.StatusOK || err != nil {
		t.Errorf("got %d, %v", code, err)
	}
}

func TestNothingIsFetchedBeforeTheConfigurationIsLoaded(t *testing.T) {
	s := newServer(t, false, nil)
	c := New(nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client().Do(request); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if got := s.requests(); len(got) != 0 {
		t.Errorf("it was asked: %q", got)
	}
	c.Replace(nil)
	if _, err := get(t, c, s.URL); err != nil {
		t.Error(err)
	}
}

func TestRulesCanBeReplaced(t *testing.T) {
	s := newServer(t, true, nil)
	c := with()
	if _, err := get(t, c, s.URL); err == nil {
		t.Fatal("an unknown authority is trusted")
	}
	c.Replace(rules.NewSet([]rules.Rule{{Prefix: s.host(), From: "rule", Primary: rules.Access{CA: s.ca()}}}, nil))
	if _, err := get(t, c, s.URL); err != nil {
		t.Error(err)
	}
	c.Replace(nil)
	if _, err := get(t, c, s.URL); err == nil {
		t.Error("the authority is still trusted")
	}
	if kept := len(c.pool.transports); kept != 0 {
		t.Errorf("%d transports are kept for nothing", kept)
	}
}

func TestBlockedServers(t *testing.T) {
	s := newServer(t, false, nil)
	door := newServer(t, false, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, s.URL+"/secret", http.StatusFound)
	})
	c := with(rules.Rule{Prefix: s.host() + "/secret", From: "the rule", Blocked: true})
	for _, url := range []string{s.URL + "/secret/x", door.URL} {
		_, err := get(t, c, url)
		if blocked, ok := errors.AsType[*rules.BlockedError](err); !ok || blocked.Rule != "the rule" {
			t.Errorf("%s: got %v", url, err)
		}
	}
	if code, err := get(t, c, s.URL+"/public"); code != http.StatusOK || err != nil {
		t.Errorf("got %d, %v", code, err)
	}
	if diff := cmp.Diff([]string{"GET /public"}, s.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestWhatOnlyMirrorsMayServeIsNotAskedFor(t *testing.T) {
	s := newServer(t, false, nil)
	_, err := get(t, with(rules.Rule{Prefix: s.host(), From: "the rule", MirrorOnly: true, Mirrors: []rules.Mirror{{Location: "m.example.com"}}}), s.URL)
	if _, ok := errors.AsType[*rules.ProblemError](err); !ok || len(s.requests()) != 0 {
		t.Errorf("got %v, requests %q", err, s.requests())
	}
}

func TestCredentialsGoToTheirServerOnly(t *testing.T) {
	other := newServer(t, true, nil)
	s := newServer(t, true, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/there", http.StatusFound)
	})
	c := with(
		rules.Rule{Prefix: s.host(), From: "s", Primary: rules.Access{CA: s.ca(), Logins: logins("u", "p")}},
		rules.Rule{Prefix: other.host(), From: "other", Primary: rules.Access{CA: other.ca()}},
	)
	if _, err := get(t, c, s.URL+"/here"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"GET /here Basic dTpw"}, s.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"GET /there"}, other.requests()); diff != "" {
		t.Errorf("requests to the other (-want +got):\n%s", diff)
	}
}

func TestCredentialsOfTheCallerAndPlainHTTP(t *testing.T) {
	s := newServer(t, false, nil)
	for name, tc := range map[string]struct {
		access rules.Access
		header []string
		want   string
	}{
		"NotOverPlainHTTP":  {rules.Access{Logins: logins("u", "p")}, nil, "GET /"},
		"UnlessAllowed":     {rules.Access{Logins: logins("u", "p"), PlainHTTP: true}, nil, "GET / Basic dTpw"},
		"CallersGoBefore":   {rules.Access{Logins: logins("u", "p"), PlainHTTP: true}, []string{"Authorization", "Bearer x"}, "GET / Bearer x"},
		"NoCredentialsHere": {rules.Access{PlainHTTP: true}, nil, "GET /"},
	} {
		t.Run(name, func(t *testing.T) {
			s.seen = nil
			if _, err := get(t, with(rules.Rule{Prefix: s.host(), From: "rule", Primary: tc.access}), s.URL+"/", tc.header...); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.want}, s.requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRewriteLeavesTheCallersCredentialsBehind(t *testing.T) {
	s := newServer(t, true, nil)
	c := with(rules.Rule{Prefix: "charts.example.com", From: "rule", Rewrite: s.host() + "/cache", Primary: rules.Access{CA: s.ca()}})
	if _, err := get(t, c, "https://charts.example.com/stable/index.yaml?v=1", "Authorization", "Bearer x", "Cookie", "a=b"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"GET /cache/stable/index.yaml?v=1"}, s.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestProxyOfARule(t *testing.T) {
	s := newServer(t, false, nil)
	proxy := forwardproxy.New(t, forwardproxy.Options{User: "u", Password: "p", Hosts: map[string]string{"hidden.test": s.host(), "hidden.test:80": s.host()}})
	rule := rules.Rule{Prefix: "hidden.test", From: "rule", Primary: rules.Access{Proxy: &rules.Proxy{URL: proxy.URL(), User: "u", Password: "p"}}}
	if code, err := get(t, with(rule), "http://hidden.test/a"); code != http.StatusOK || err != nil {
		t.Errorf("got %d, %v", code, err)
	}
	if diff := cmp.Diff([]string{"GET http://hidden.test/a"}, proxy.Seen()); diff != "" {
		t.Errorf("through the proxy (-want +got):\n%s", diff)
	}
	rule.Primary.Proxy.NoProxy = []string{"hidden.test"}
	if _, err := get(t, with(rule), "http://hidden.test/a"); err == nil {
		t.Error("what is to be reached directly went through the proxy")
	}
}

func TestOverATransportOfTheCaller(t *testing.T) {
	s := newServer(t, true, nil)
	dialled := 0
	base := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled++
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	c := with(rules.Rule{Prefix: s.host(), From: "rule", Primary: rules.Access{CA: s.ca(), DialTimeout: time.Minute}})
	response, err := (&http.Client{Transport: c.Over(base)}).Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if dialled != 1 {
		t.Errorf("the caller's dialer was used %d times", dialled)
	}
	c.Replace(rules.NewSet([]rules.Rule{{Prefix: s.host(), From: "rule", Blocked: true}}, nil))
	if _, err := (&http.Client{Transport: c.Over(base)}).Get(s.URL); err == nil {
		t.Error("a rule that came later has no effect")
	}
}

func TestRetries(t *testing.T) {
	for name, tc := range map[string]struct {
		attempts, failures int
		retryAfter         string
		method             string
		want, requests     int
		atLeast            time.Duration
	}{
		"None":         {attempts: 1, failures: 1, want: 503, requests: 1},
		"Enough":       {attempts: 3, failures: 2, want: 200, requests: 3},
		"NotEnough":    {attempts: 3, failures: 3, want: 503, requests: 3},
		"ServerSays":   {attempts: 2, failures: 1, retryAfter: "1", want: 200, requests: 2, atLeast: 80 * time.Millisecond},
		"NotForWrites": {attempts: 3, failures: 1, method: http.MethodPost, want: 503, requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			left := tc.failures
			s := newServer(t, false, func(w http.ResponseWriter, _ *http.Request) {
				if left > 0 {
					left--
					w.Header().Set("Retry-After", tc.retryAfter)
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			})
			retry := rules.Retry{Attempts: tc.attempts, Delay: time.Millisecond, MaxDelay: 100 * time.Millisecond}
			c := with(rules.Rule{Prefix: s.host(), From: "rule", Primary: rules.Access{Retry: retry}})
			request, err := http.NewRequestWithContext(t.Context(), tc.method, s.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			response, err := c.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != tc.want || len(s.requests()) != tc.requests || time.Since(begun) < tc.atLeast {
				t.Errorf("status %d after %d requests and %s", response.StatusCode, len(s.requests()), time.Since(begun))
			}
		})
	}
}

func TestRateLimit(t *testing.T) {
	s := newServer(t, false, nil)
	c := with(rules.Rule{Prefix: s.host(), From: "rule", Primary: rules.Access{Rate: rules.Rate{PerSecond: 20, Burst: 2}}})
	begun := time.Now()
	for range 6 {
		if _, err := get(t, c, s.URL); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begun); took < 190*time.Millisecond { // two at once, four more at 50 ms each
		t.Errorf("six requests took %s", took)
	}
}

func TestWhatCannotBeConnectedWith(t *testing.T) {
	for name, tc := range map[string]struct {
		access rules.Access
		want   string
	}{
		"CA":          {rules.Access{CA: []byte("x")}, "holds no certificate"},
		"Certificate": {rules.Access{Certificate: &rules.KeyPair{}}, "client certificate"},
		"Proxy":       {rules.Access{Proxy: &rules.Proxy{URL: "proxy:3128"}}, "not a URL"},
		"Scheme":      {rules.Access{Proxy: &rules.Proxy{URL: "ftp://proxy:3128"}}, `"ftp"`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Check(&tc.access); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
			_, err := get(t, with(rules.Rule{Prefix: "a.example.com", From: "the rule", Primary: tc.access}), "http://a.example.com")
			if problem, ok := errors.AsType[*rules.ProblemError](err); !ok || problem.Rule != "the rule" {
				t.Errorf("got %v", err)
			}
		})
	}
	broken := rules.Access{Problem: fmt.Errorf("no such Secret")}
	if _, err := get(t, with(rules.Rule{Prefix: "a.example.com", From: "the rule", Primary: broken}), "http://a.example.com"); err == nil || !strings.Contains(err.Error(), "no such Secret") {
		t.Errorf("got %v", err)
	}
}
