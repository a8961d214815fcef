// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"io"
	"net/http"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

// forward answers as the registry at host would.
func forward(t *testing.T, w http.ResponseWriter, r *http.Request, host string) {
	t.Helper()
	request, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+host+r.URL.RequestURI(), r.Body)
	if err != nil {
		t.Error(err)
		return
	}
	request.Header = r.Header.Clone()
	request.Header.Del("Authorization")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Error(err)
		return
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	for key, values := range response.Header {
		w.Header()[key] = values
	}
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body) // the client may have gone
}

// pushAs is push with credentials.
func pushAs(t testing.TB, registry *ociregistry.Registry, repository string, image v1.Image, auth authn.Authenticator) string {
	t.Helper()
	ref, err := name.ParseReference(registry.Host() + "/" + repository)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image, remote.WithTransport(registry.Transport()), remote.WithAuth(auth)); err != nil {
		t.Fatal(err)
	}
	return ref.Name()
}
