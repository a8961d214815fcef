// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"archive/tar"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/web"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/webserver"
	"rukpak.io/rukpak/internal/unpack"
)

func packed(t *testing.T, name, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))})
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err != nil || w.Close() != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fetch pins and fetches, as the controller does, into a store of its own.
func fetch(t *testing.T, s Source, limits unpack.Limits) error {
	t.Helper()
	store, err := content.OpenDisk(t.Context(), t.TempDir(), content.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // the test is over
	session, err := store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	to := source.Destination{Session: session, Budget: unpack.NewBudget(limits)}
	pinned, err := s.Resolve(t.Context(), to)
	if err != nil {
		return err
	}
	_, _, err = s.Fetch(t.Context(), pinned, to)
	return err
}

// The file server of source-controller asks for no login and speaks plain HTTP:
// all that counts is that nothing but the bytes of the digest is taken.
func TestFaultsOfTheFileServerOfFluxAreClassifiedAndHeal(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	body := packed(t, "app.yaml", strings.Repeat("# text\n", 10_000))
	url := server.Put("/gitrepository/team-a/app/latest.tar.gz", body)
	other := server.Put("/other", packed(t, "evil.yaml", "kind: Evil\n"))
	src := func(stall time.Duration) Source {
		return Source{
			Kind: "GitRepository", Name: "team-a/app", Artifact: Artifact{URL: url, Digest: digest.FromBytes(body), Revision: "main@sha1:0123"},
			Fetcher: web.New(web.NewClient(web.Options{Stall: stall})),
		}
	}
	for name, tc := range map[string]struct {
		action fault.Action
		reason string
		want   string
	}{
		"Absent":       {fault.Status(http.StatusNotFound), source.ReasonNotFound, "404"},
		"Unauthorised": {fault.Status(http.StatusUnauthorized), source.ReasonAuthenticationFailed, "401"},
		"Down":         {fault.Status(http.StatusBadGateway), source.ReasonSourceUnreachable, "502"},
		"Reset":        {fault.Reset(), source.ReasonSourceUnreachable, "ended"},
		"Half":         {fault.Truncate(30), source.ReasonSourceUnreachable, "after 30 of"},
		"Slow":         {server.Faults.Stall(30), source.ReasonSourceUnreachable, "not a byte came"},
		"Corrupt":      {fault.Corrupt(30), source.ReasonContentMismatch, "but the source asks for"},
		"Empty":        {fault.Replace(nil), source.ReasonEmptyContent, "not a byte"},
		"Elsewhere":    {webserver.Redirect(other), source.ReasonContentMismatch, "but the source asks for"},
		"ToMetadata":   {webserver.Redirect("http://169.254.169.254/"), source.ReasonSourceError, "metadata service"},
	} {
		t.Run(name, func(t *testing.T) {
			defer server.Faults.Clear()
			server.Faults.Add(fault.Rule{Action: tc.action, Times: 3})
			err := fetch(t, src(300*time.Millisecond), unpack.Limits{})
			if source.ReasonOf(err) != tc.reason || source.KindOf(err) == source.Terminal || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "GitRepository team-a/app ") {
				t.Errorf("got %s, %s: %v", source.KindOf(err), source.ReasonOf(err), err)
			}
			server.Faults.Clear()
			if err := fetch(t, src(0), unpack.Limits{}); err != nil {
				t.Errorf("after it was mended: %v", err)
			}
		})
	}
	if err := fetch(t, src(0), unpack.Limits{UnpackedBytes: 100}); source.ReasonOf(err) != source.ReasonLimitExceeded || source.KindOf(err) != source.Terminal {
		t.Errorf("huge: %v", err)
	}
}
