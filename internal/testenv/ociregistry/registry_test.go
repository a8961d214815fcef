// SPDX-License-Identifier: Apache-2.0

package ociregistry_test

import (
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

func TestImageComesBackAsItWasPushed(t *testing.T) {
	for title, options := range map[string]ociregistry.Options{
		"memory": {},
		"folder": {Dir: t.TempDir()},
		"TLS":    {TLS: true},
		"auth":   {User: "robot", Password: "secret"},
	} {
		t.Run(title, func(t *testing.T) {
			registry := ociregistry.New(t, options)
			reference, pushed := push(t, registry, as(options)...)
			pulled, err := remote.Image(reference, with(registry, as(options)...)...)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate.Image(pulled); err != nil {
				t.Error(err)
			}
			if got, want := digest(t, pulled), digest(t, pushed); got != want {
				t.Errorf("digest: got %s, want %s", got, want)
			}
		})
	}
}

func TestRegistryWithAuthenticationRefuses(t *testing.T) {
	options := ociregistry.Options{User: "robot", Password: "secret"}
	registry := ociregistry.New(t, options)
	reference, _ := push(t, registry, as(options)...)
	for title, who := range map[string]remote.Option{
		"nobody":         remote.WithAuth(authn.Anonymous),
		"wrong password": remote.WithAuth(&authn.Basic{Username: "robot", Password: "guess"}),
	} {
		t.Run(title, func(t *testing.T) {
			_, err := remote.Image(reference, with(registry, who)...)
			wantStatus(t, err, http.StatusUnauthorized)
		})
	}
}

func TestRegistryWithTLSIsNotTrustedWithoutItsAuthority(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{TLS: true})
	client := &http.Client{Transport: &http.Transport{}}
	response, err := client.Get("https://" + registry.Host() + "/v2/")
	if err == nil {
		_ = response.Body.Close()
		t.Fatal("trusted")
	}
	if !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v, want a certificate that is not trusted", err)
	}
}

func TestOutageKeepsAddressAndContent(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	reference, pushed := push(t, registry)
	registry.Stop()
	if _, err := remote.Image(reference, with(registry)...); err == nil {
		t.Error("a stopped registry answers")
	}
	if err := registry.Restart(); err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Image(reference, with(registry)...)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := digest(t, pulled), digest(t, pushed); got != want {
		t.Errorf("digest: got %s, want %s", got, want)
	}
}

func TestRequestsAreRecorded(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	reference, _ := push(t, registry)
	registry.ForgetRequests()
	if _, err := remote.Head(reference, with(registry)...); err != nil {
		t.Fatal(err)
	}
	requests := registry.Requests()
	last := requests[len(requests)-1]
	if last.Method != http.MethodHead || last.Path != "/v2/test/image/manifests/v1" {
		t.Errorf("last request: got %s %s", last.Method, last.Path)
	}
}

var blobs = regexp.MustCompile(`^/v2/.*/blobs/`)

func TestFaults(t *testing.T) {
	const size = 4096
	tests := []struct {
		name   string
		action fault.Action
		check  func(t *testing.T, err error)
	}{
		{"status 404", fault.Status(http.StatusNotFound), func(t *testing.T, err error) { wantStatus(t, err, http.StatusNotFound) }},
		{"status 401", fault.Status(http.StatusUnauthorized), func(t *testing.T, err error) { wantStatus(t, err, http.StatusUnauthorized) }},
		{"reset", fault.Reset(), wantError},
		{"truncated", fault.Truncate(100), func(t *testing.T, err error) {
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %v, want an unexpected end", err)
			}
		}},
		{"corrupted", fault.Corrupt(1000), wantDigestError},
		{"replaced", fault.Replace(make([]byte, size)), wantError},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			registry := ociregistry.New(t, ociregistry.Options{})
			reference, _ := push(t, registry)
			registry.Faults.Add(fault.Rule{Method: http.MethodGet, Path: blobs, Action: test.action})
			test.check(t, pullLayer(reference, with(registry)...))
			registry.Faults.Clear()
			if err := pullLayer(reference, with(registry)...); err != nil {
				t.Errorf("after Clear: %v", err)
			}
		})
	}
}

func TestFaultPassesAfterItsTimes(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	reference, _ := push(t, registry)
	registry.Faults.Add(fault.Rule{Path: blobs, Times: 1, Action: fault.Status(http.StatusForbidden)})
	wantStatus(t, pullLayer(reference, with(registry)...), http.StatusForbidden)
	if err := pullLayer(reference, with(registry)...); err != nil {
		t.Error(err)
	}
}

func TestStalledAnswerGoesOnWhenCleared(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	reference, _ := push(t, registry)
	registry.Faults.Add(fault.Rule{Method: http.MethodGet, Path: blobs, Action: registry.Faults.Stall(0)})
	done := make(chan error, 1)
	go func() { done <- pullLayer(reference, with(registry)...) }()
	select {
	case err := <-done:
		t.Fatalf("not stalled: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	registry.Faults.Clear()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func push(t *testing.T, registry *ociregistry.Registry, options ...remote.Option) (name.Reference, v1.Image) {
	t.Helper()
	image, err := random.Image(4096, 1)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(registry.Host() + "/test/image:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, image, with(registry, options...)...); err != nil {
		t.Fatal(err)
	}
	return reference, image
}

func pullLayer(reference name.Reference, options ...remote.Option) error {
	image, err := remote.Image(reference, options...)
	if err != nil {
		return err
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	content, err := layers[0].Compressed()
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, content)
	return errors.Join(err, content.Close())
}

func as(options ociregistry.Options) []remote.Option {
	if options.User == "" {
		return nil
	}
	return []remote.Option{remote.WithAuth(&authn.Basic{Username: options.User, Password: options.Password})}
}

func with(registry *ociregistry.Registry, options ...remote.Option) []remote.Option {
	once := remote.WithRetryBackoff(remote.Backoff{Steps: 1, Duration: time.Millisecond})
	return append([]remote.Option{remote.WithTransport(registry.Transport()), once}, options...)
}

func digest(t *testing.T, image v1.Image) string {
	t.Helper()
	hash, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

func wantStatus(t *testing.T, err error, status int) {
	t.Helper()
	var answer *transport.Error
	if !errors.As(err, &answer) || answer.StatusCode != status {
		t.Errorf("got %v, want status %d", err, status)
	}
}

func wantError(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Error("got no error")
	}
}

func wantDigestError(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "sha256") {
		t.Errorf("got %v, want a digest that differs", err)
	}
}
