// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/webserver"
	"rukpak.io/rukpak/internal/unpack"
)

// later answers a status with a Retry-After.
func later(code int, after string) fault.Action {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(code)
	}
}

func drip(w http.ResponseWriter, r *http.Request, _ http.Handler) {
	w.Header().Set("Content-Length", "1000")
	for range 500 {
		if _, err := w.Write([]byte("x")); err != nil || r.Context().Err() != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		time.Sleep(10 * time.Millisecond)
	}
}

func TestFaultsOfServersAreClassifiedAndHeal(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	data := tarOf(t, "a", strings.Repeat("x", 100_000))
	url := server.Put("/a.tar", data)
	for name, tc := range map[string]struct {
		action fault.Action
		reason string
		kind   source.Kind
		want   string
		after  time.Duration
	}{
		"Unauthorised": {fault.Status(401), source.ReasonAuthenticationFailed, source.Waiting, "401 Unauthorized", 0},
		"Forbidden":    {fault.Status(403), source.ReasonAuthenticationFailed, source.Waiting, "403 Forbidden", 0},
		"NotFound":     {fault.Status(404), source.ReasonNotFound, source.Waiting, "404 Not Found", 0},
		"Gone":         {fault.Status(410), source.ReasonNotFound, source.Waiting, "410 Gone", 0},
		"Teapot":       {fault.Status(418), source.ReasonSourceError, source.Waiting, "418", 0},
		"NoContent":    {fault.Status(204), source.ReasonSourceError, source.Waiting, "204", 0},
		"NotModified":  {fault.Status(304), source.ReasonSourceError, source.Waiting, "304", 0},
		"ServerError":  {fault.Status(500), source.ReasonSourceUnreachable, source.Transient, "500", 0},
		"Overload":     {later(429, "120"), source.ReasonSourceUnreachable, source.Transient, "429 Too Many Requests and wants to be asked again after 2m0s", 2 * time.Minute},
		"LongOverload": {later(503, "86400"), source.ReasonSourceUnreachable, source.Transient, "503", time.Hour},
		"Reset":        {fault.Reset(), source.ReasonSourceUnreachable, source.Transient, "the connection ended", 0},
		"Cut":          {fault.Truncate(50_000), source.ReasonSourceUnreachable, source.Transient, "after 50000 of 101888 bytes: the connection ended", 0},
		"Stall":        {server.Faults.Stall(10), source.ReasonSourceUnreachable, source.Transient, "not a byte came for 200ms", 0},
		"StallAtOnce":  {server.Faults.Stall(0), source.ReasonSourceUnreachable, source.Transient, "not a byte came for 200ms", 0},
		"Drip":         {drip, source.ReasonSourceUnreachable, source.Transient, "it did not come within 1s", 0},
		"Loop":         {webserver.Redirect(url), source.ReasonSourceError, source.Waiting, "redirects more than 10 times", 0},
		"ToFile":       {webserver.Redirect("file:///etc/passwd"), source.ReasonSourceError, source.Waiting, "something else than HTTP", 0},
		"ToMetadata":   {webserver.Redirect("http://169.254.169.254/latest/meta-data?hunter2"), source.ReasonSourceError, source.Waiting, "metadata service", 0},
		"ToNowhere":    {webserver.Redirect("http://no-such-host.invalid/?hunter2"), source.ReasonSourceUnreachable, source.Transient, "no-such-host.invalid", 0},
	} {
		t.Run(name, func(t *testing.T) {
			client := NewClient(Options{})
			switch {
			case name == "Drip":
				client = NewClient(Options{Timeout: time.Second})
			case strings.HasPrefix(name, "Stall"):
				client = NewClient(Options{Stall: 200 * time.Millisecond})
			}
			src := Source{URL: url, Insecure: true}
			server.Faults.Add(fault.Rule{Action: tc.action})
			_, err := get(t, New(client), src, newStore(t), unpack.Limits{})
			server.Faults.Clear()
			if source.ReasonOf(err) != tc.reason || source.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %s, %s: %v", source.KindOf(err), source.ReasonOf(err), err)
			}
			if got := afterIn(err); got != tc.after {
				t.Errorf("after %s, want %s", got, tc.after)
			}
			if !strings.HasPrefix(err.Error(), "http "+url) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error must be one line that names the URL: %v", err)
			}
			if _, err := get(t, New(NewClient(Options{})), src, newStore(t), unpack.Limits{}); err != nil {
				t.Errorf("after the fault: %v", err)
			}
		})
	}
}

func afterIn(err error) time.Duration {
	if failed, ok := err.(*source.Error); ok { //nolint:errorlint // the contract says that it is this type
		return failed.After
	}
	return 0
}

func TestAPassingFaultIsNotEvenNoticed(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	src := Source{URL: server.Put("/a", []byte("x")), Insecure: true}
	for name, action := range map[string]fault.Action{
		"Unavailable": fault.Status(503), "Gateway": fault.Status(502), "Reset": fault.Reset(), "SoonAgain": later(429, "1"),
	} {
		server.Faults.Add(fault.Rule{Times: 1, Action: action})
		if _, err := get(t, New(NewClient(Options{})), src, newStore(t), unpack.Limits{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		server.Faults.Clear()
	}
}

func TestADeadServerIsTransient(t *testing.T) {
	for _, url := range []string{"https://127.0.0.1:1/a", "https://no-such-host.invalid/a"} {
		_, err := get(t, New(NewClient(Options{})), Source{URL: url}, newStore(t), unpack.Limits{})
		if source.ReasonOf(err) != source.ReasonSourceUnreachable || source.KindOf(err) != source.Transient {
			t.Errorf("got %v", err)
		}
	}
}

func TestGivingUpIsNotTheServersFault(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	src := Source{URL: server.Put("/a", []byte("x")), Insecure: true}
	server.Faults.Add(fault.Rule{Action: server.Faults.Stall(0)})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := New(NewClient(Options{})).At(src).Resolve(ctx, begin(t, newStore(t), unpack.Limits{}))
	if source.KindOf(err) != source.Transient || time.Since(deadline(ctx)) > 5*time.Second {
		t.Errorf("got %v", err)
	}
}

func deadline(ctx context.Context) time.Time {
	when, _ := ctx.Deadline()
	return when
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "soon": 0, "99999999": time.Hour, "99999999999999999999": 0,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Fri, 02 Jan 2026 03:04:00 GMT": 0, "Sat, 02 Jan 2027 03:04:00 GMT": time.Hour,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}
