// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/web"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/webserver"
	"rukpak.io/rukpak/internal/unpack"
)

// What goes wrong with the index goes wrong with the chart too, and the error
// names what it was.
func TestFaultsOfChartsAreClassifiedAndHeal(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	packed := pack(t, "app/Chart.yaml", "name: app\nversion: 1.0.0\n", "app/templates/a.yaml", strings.Repeat("# 0123456789\n", 100))
	server.Put("/app.tgz", packed)
	server.Put("/index.yaml", indexOf(line("1.0.0", "app.tgz", digest.FromBytes(packed))))
	src := Source{Repository: server.URL(""), Chart: "app", Insecure: true}
	quick := func() *Fetcher {
		return New(Options{Client: web.NewClient(web.Options{Stall: 300 * time.Millisecond})})
	}
	for name, tc := range map[string]struct {
		path   string
		action fault.Action
		reason string
		want   string
	}{
		"Unauthorised":   {"app.tgz", fault.Status(http.StatusUnauthorized), source.ReasonAuthenticationFailed, "401"},
		"Gone":           {"app.tgz", fault.Status(http.StatusGone), source.ReasonNotFound, "410"},
		"Down":           {"app.tgz", fault.Status(http.StatusServiceUnavailable), source.ReasonSourceUnreachable, "503"},
		"Half":           {"app.tgz", fault.Truncate(40), source.ReasonSourceUnreachable, "after 40 of"},
		"Reset":          {"app.tgz", fault.Reset(), source.ReasonSourceUnreachable, "ended"},
		"Stall":          {"app.tgz", server.Faults.Stall(40), source.ReasonSourceUnreachable, "not a byte came"},
		"Corrupt":        {"app.tgz", fault.Corrupt(40), source.ReasonContentMismatch, "the source asks for"},
		"Another":        {"app.tgz", fault.Replace(simple(t, "1.0.0")), source.ReasonContentMismatch, "the source asks for"},
		"Empty":          {"app.tgz", fault.Replace(nil), source.ReasonEmptyContent, "not a byte"},
		"Loop":           {"app.tgz", webserver.Redirect("/app.tgz"), source.ReasonSourceError, "redirects more than"},
		"ToMetadata":     {"app.tgz", webserver.Redirect("http://169.254.169.254/"), source.ReasonSourceError, "metadata service"},
		"IndexStalls":    {"index.yaml", server.Faults.Stall(10), source.ReasonSourceUnreachable, "not a byte came"},
		"IndexReset":     {"index.yaml", fault.Reset(), source.ReasonSourceUnreachable, "ended"},
		"IndexEmpty":     {"index.yaml", fault.Replace(nil), source.ReasonSourceError, "it has no entries"},
		"IndexForbidden": {"index.yaml", fault.Status(http.StatusForbidden), source.ReasonAuthenticationFailed, "403"},
	} {
		t.Run(name, func(t *testing.T) {
			defer server.Faults.Clear()
			server.Faults.Add(fault.Rule{Path: regexp.MustCompile(tc.path), Action: tc.action})
			_, _, err := get(t, quick().At(src), newStore(t))
			if source.ReasonOf(err) != tc.reason || source.KindOf(err) == source.Terminal || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %s, %s: %v", source.KindOf(err), source.ReasonOf(err), err)
			}
			server.Faults.Clear()
			if _, _, err := get(t, New(Options{}).At(src), newStore(t)); err != nil {
				t.Errorf("after it was mended: %v", err)
			}
		})
	}
}

func TestAChartThatIsTooLargeIsNotTaken(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	packed := pack(t, "app/Chart.yaml", "name: app\n", "app/files/zeros", string(make([]byte, 1<<20)))
	server.Put("/app.tgz", packed)
	server.Put("/index.yaml", indexOf(line("1.0.0", "app.tgz", "")))
	for want, limits := range map[string]unpack.Limits{
		"--limit-compressed-bytes": {CompressedBytes: 100}, "--limit-unpacked-bytes": {UnpackedBytes: 1 << 10}, "--limit-files": {Files: 1},
	} {
		to := begin(t, newStore(t))
		to.Budget = unpack.NewBudget(limits)
		opened := New(Options{}).At(Source{Repository: server.URL(""), Chart: "app", Insecure: true})
		pinned, err := opened.Resolve(t.Context(), to)
		if err == nil {
			_, _, err = opened.Fetch(t.Context(), pinned, to)
		}
		if source.ReasonOf(err) != source.ReasonLimitExceeded || source.KindOf(err) != source.Terminal || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A repository behind another server: its password does not follow.
func TestCredentialsDoNotFollowARedirectOfAChart(t *testing.T) {
	home := webserver.New(t, webserver.Options{User: "ann", Password: "hunter2"})
	other := webserver.New(t, webserver.Options{})
	target := other.Put("/app.tgz", simple(t, "1.0.0"))
	home.Put("/app.tgz", nil)
	home.Put("/index.yaml", indexOf(line("1.0.0", "app.tgz", digest.FromBytes(simple(t, "1.0.0")))))
	home.Faults.Add(fault.Rule{Path: regexp.MustCompile("app.tgz"), Action: webserver.Redirect(target)})
	src := Source{Repository: home.URL(""), Chart: "app", Insecure: true, Credentials: web.Credentials{Username: "ann", Password: "hunter2", Headers: http.Header{"Private-Token": {"hunter3"}}}}
	if _, _, err := get(t, New(Options{}).At(src), newStore(t)); err != nil {
		t.Fatal(err)
	}
	for _, r := range other.Requests() {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Private-Token") != "" {
			t.Errorf("the other host saw %v", r.Header)
		}
	}
	if len(other.Requests()) == 0 {
		t.Error("the redirect was not followed")
	}
}
