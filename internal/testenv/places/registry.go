// SPDX-License-Identifier: Apache-2.0

package places

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"rukpak.io/rukpak/internal/content/objects"
	"rukpak.io/rukpak/internal/content/objects/objectstest"
	"rukpak.io/rukpak/internal/content/objects/registry"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

const (
	user       = "manager"
	password   = "testing-only"
	repository = "/team/store"
)

// Registry is a repository of a registry of its own.
func Registry(t *testing.T) objectstest.Place {
	dir := t.TempDir()
	server := ociregistry.New(t, ociregistry.Options{Dir: dir, TLS: true, User: user, Password: password})
	return objectstest.Place{
		Many: 120,
		Open: func(t *testing.T) objects.Backend { return OpenRegistry(t, server, password) },
		Harm: func(t *testing.T, object string, harm objectstest.Harm) { spoilRegistry(t, server, dir, object, harm) },
		Fail: func(_ *testing.T, what objectstest.Fault) func() {
			rule := fault.Rule{Action: actions[what]}
			if what == objectstest.Half {
				rule.Path = regexp.MustCompile("/blobs/")
			}
			server.Faults.Add(rule)
			return server.Faults.Clear
		},
		Requests: func() (asked []string) {
			for _, r := range server.Requests() {
				asked = append(asked, r.Method+" "+r.Path)
			}
			return asked
		},
		Litter: func(t *testing.T) {
			for _, tag := range []string{"latest", "v1.0", "packs-UPPER"} {
				PushImage(t, server, tag)
			}
		},
	}
}

// PushImage puts an image into the repository, as somebody else would.
func PushImage(t *testing.T, server *ociregistry.Registry, tag string) {
	t.Helper()
	image, err := random.Image(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.NewTag(server.Host() + repository + ":" + tag)
	if err == nil {
		err = remote.Write(ref, image, remote.WithTransport(server.Transport()), remote.WithAuth(&authn.Basic{Username: user, Password: password}))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// NewRegistry starts one that asks for the credentials of OpenRegistry.
func NewRegistry(t *testing.T) *ociregistry.Registry {
	t.Helper()
	return ociregistry.New(t, ociregistry.Options{TLS: true, User: user, Password: password})
}

// OpenRegistry gives a place in a repository, as somebody with a password sees it;
// "" stands for the right one.
func OpenRegistry(t *testing.T, server *ociregistry.Registry, with string) objects.Backend {
	t.Helper()
	if with == "" {
		with = password
	}
	opened, err := registry.New(registry.Options{
		Repository: server.Host() + repository, Login: &authn.Basic{Username: user, Password: with}, Transport: server.Transport(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// spoilRegistry changes the file that the registry keeps of an object's bytes.
func spoilRegistry(t *testing.T, server *ociregistry.Registry, dir, object string, harm objectstest.Harm) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+server.Host()+"/v2"+repository+"/manifests/"+strings.Replace(object, "/", "-", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", ocispec.MediaTypeImageManifest)
	request.SetBasicAuth(user, password)
	response, err := server.Transport().RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it is only read
	data, err := io.ReadAll(response.Body)
	var manifest ocispec.Manifest
	if err == nil {
		err = json.Unmarshal(data, &manifest)
	}
	if err != nil || len(manifest.Layers) == 0 {
		t.Fatalf("%v: %s", err, data)
	}
	sum := manifest.Layers[0].Digest.Encoded()
	HarmFile(t, filepath.Join(dir, "docker/registry/v2/blobs/sha256", sum[:2], sum, "data"), harm)
}
