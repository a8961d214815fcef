// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestImageHoldsTheProgramAndCertificatesAndRunsAsNobody(t *testing.T) {
	image := pull(t, []string{"linux/amd64"}, "linux/amd64")
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{Entrypoint: []string{"/manager"}, User: "65532:65532", WorkingDir: "/"}
	if diff := cmp.Diff(want, file.Config); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	wantFiles := map[string]string{
		"manager":                           "-rwxr-xr-x program for linux/amd64",
		"etc/ssl/certs/ca-certificates.crt": "-rw-r--r-- authorities",
	}
	if diff := cmp.Diff(wantFiles, files(t, image)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSeveralPlatformsAreGatheredInAnIndex(t *testing.T) {
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		image := pull(t, []string{"linux/amd64", "linux/arm64"}, platform)
		if got := files(t, image)["manager"]; !strings.HasSuffix(got, platform) {
			t.Errorf("image for %s holds %q", platform, got)
		}
	}
}

func TestSameBytesGiveTheSameImage(t *testing.T) {
	first, second := pull(t, []string{"linux/amd64"}, "linux/amd64"), pull(t, []string{"linux/amd64"}, "linux/amd64")
	one, err := first.Digest()
	if err != nil {
		t.Fatal(err)
	}
	two, err := second.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if one != two {
		t.Errorf("digests %s and %s", one, two)
	}
}

func TestMissingCertificatesAreAnErrorThatSaysWhatToDo(t *testing.T) {
	err := run(t.Context(), options{ref: "registry.example.com/a:b", certificates: filepath.Join(t.TempDir(), "none")}, fake)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "name a file with -certificates") {
		t.Errorf("got %v", err)
	}
}

func fake(_ context.Context, platform v1.Platform) ([]byte, error) {
	return []byte("program for " + platform.String()), nil
}

// pull pushes an image to a registry in memory and gives what that has for a platform.
func pull(t *testing.T, build []string, platform string) v1.Image {
	t.Helper()
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	certificates := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(certificates, []byte("authorities"), 0o600); err != nil {
		t.Fatal(err)
	}
	ref := strings.TrimPrefix(server.URL, "http://") + "/rukpak/manager:test"
	if err := run(t.Context(), options{ref: ref, platforms: build, certificates: certificates}, fake); err != nil {
		t.Fatal(err)
	}
	parsed, err := name.NewTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := v1.ParsePlatform(platform)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(parsed, remote.WithPlatform(*wanted))
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func files(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	stream := mutate.Extract(image)
	defer func() { _ = stream.Close() }()
	found := map[string]string{}
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		found[header.Name] = header.FileInfo().Mode().String() + " " + string(data)
	}
}
