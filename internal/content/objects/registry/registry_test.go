// SPDX-License-Identifier: Apache-2.0

package registry_test

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

func TestRegistry(t *testing.T) {
	objectstest.Run(t, func(t *testing.T) objectstest.Place {
		dir := t.TempDir()
		server := ociregistry.New(t, ociregistry.Options{Dir: dir, TLS: true, User: "manager", Password: "testing-only"})
		return objectstest.Place{
			Many: 120,
			Open: func(t *testing.T) objects.Backend { return open(t, server, "testing-only") },
			Harm: func(t *testing.T, object string, harm objectstest.Harm) { spoil(t, server, dir, object, harm) },
			Fail: func(_ *testing.T, what objectstest.Fault) func() {
				rule := fault.Rule{Action: map[objectstest.Fault]fault.Action{
					objectstest.Busy: fault.Status(503), objectstest.Forbid: fault.Status(403), objectstest.Reset: fault.Reset(), objectstest.Half: fault.Truncate(1000),
				}[what]}
				if what == objectstest.Half {
					rule.Path = regexp.MustCompile("/blobs/")
				}
				server.Faults.Add(rule)
				return server.Faults.Clear
			},
			Litter: func(t *testing.T) {
				image, err := random.Image(10, 1)
				if err != nil {
					t.Fatal(err)
				}
				for _, tag := range []string{"latest", "v1.0", "packs-UPPER"} {
					ref, err := name.NewTag(server.Host() + "/team/store:" + tag)
					if err == nil {
						err = remote.Write(ref, image, remote.WithTransport(server.Transport()), remote.WithAuth(login("testing-only")))
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			},
		}
	})
}

func login(password string) authn.Authenticator {
	return &authn.Basic{Username: "manager", Password: password}
}

func open(t *testing.T, server *ociregistry.Registry, password string) objects.Backend {
	t.Helper()
	opened, err := registry.New(registry.Options{Repository: server.Host() + "/team/store", Login: login(password), Transport: server.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// spoil changes the file that the registry keeps of an object's bytes.
func spoil(t *testing.T, server *ociregistry.Registry, dir, object string, harm objectstest.Harm) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+server.Host()+"/v2/team/store/manifests/"+strings.Replace(object, "/", "-", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", ocispec.MediaTypeImageManifest)
	request.SetBasicAuth("manager", "testing-only")
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
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	sum := manifest.Layers[0].Digest.Encoded()
	objectstest.HarmFile(t, filepath.Join(dir, "docker/registry/v2/blobs/sha256", sum[:2], sum, "data"), harm)
}

func TestErrorsNameTheRepositoryAndWhatToDo(t *testing.T) {
	server := ociregistry.New(t, ociregistry.Options{TLS: true, User: "manager", Password: "testing-only"})
	err := open(t, server, "wrong").Put(t.Context(), "packs/a", objects.Bytes([]byte("x")))
	if !objects.Is(err, objects.Refused) || !strings.Contains(err.Error(), "oci://"+server.Host()+"/team/store") || !strings.Contains(err.Error(), "give the manager credentials") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("got %v", err)
	}
	b := open(t, server, "testing-only")
	if err := b.Put(t.Context(), "packs/a", objects.Bytes([]byte("x"))); err != nil {
		t.Fatal(err)
	}
	server.Faults.Add(fault.Rule{Method: http.MethodDelete, Action: fault.Status(405)})
	if err := b.Delete(t.Context(), "packs/a"); !objects.Is(err, objects.Unsupported) || !strings.Contains(err.Error(), "allow it there") {
		t.Errorf("where nothing can be removed: %v", err)
	}
}

func TestAManifestThatIsNotOursIsDamageAndReplaced(t *testing.T) {
	server := ociregistry.New(t, ociregistry.Options{TLS: true, User: "manager", Password: "testing-only"})
	image, err := random.Image(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.NewTag(server.Host() + "/team/store:packs-a")
	if err == nil {
		err = remote.Write(ref, image, remote.WithTransport(server.Transport()), remote.WithAuth(login("testing-only")))
	}
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, server, "testing-only")
	if _, err := b.Get(t.Context(), "packs/a"); !objects.Is(err, objects.Damaged) {
		t.Errorf("Get: %v", err)
	}
	if err := b.Put(t.Context(), "packs/a", objects.Bytes([]byte("x"))); err != nil {
		t.Error(err)
	}
	if info, err := b.Stat(t.Context(), "packs/a"); err != nil || info.Size != 1 {
		t.Errorf("%+v, %v", info, err)
	}
}
