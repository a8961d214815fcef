// SPDX-License-Identifier: Apache-2.0

package containersconf

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	imagetypes "go.podman.io/image/v5/types"

	"rukpak.io/rukpak/internal/registry/containers"
	"rukpak.io/rukpak/internal/registry/rules"
)

// Prefixes, locations and references that have much to do with one another. Two
// things are left out, in which we differ on purpose: a host with a port below
// a prefix without one, and a wildcard and a host of the same length.
var (
	prefixes = []string{
		"docker.io", "docker.io/library", "example.com", "example.com/foo", "example.com/foo/bar", "example.com:5000", "example.com:5000/foo",
		"*.example.com", "*.a.example.com", "other.org", "a.b.example.com/x",
	}
	locations = []string{"", "m1.example.org", "m2.example.org/base", "m3.example.org:5000/x/y", "example.com", "docker.io"}
	refs      = []string{
		"nginx", "nginx:1", "docker.io/acme/app", "example.com/foo", "example.com/foo:v1", "example.com/foobar", "example.com/foo/bar/baz",
		"example.com/foo/bar@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "a.example.com/x", "b.a.example.com/x:2",
		"a.b.example.com/x", "quay.io/team/app:v1", "quay.io/team/app:v2", "other.org/x", "unknown.org/x",
	}
)

// seeds is how many files are made.
const seeds = 3000

// file writes a random registries.conf.
func file(r *rand.Rand) string {
	var b strings.Builder
	one := func(of []string) string { return of[r.Intn(len(of))] }
	line := func(odds int, text string) {
		if r.Intn(odds) == 0 {
			b.WriteString(text + "\n")
		}
	}
	for range 1 + r.Intn(6) {
		b.WriteString("[[registry]]\n")
		if r.Intn(4) > 0 {
			fmt.Fprintf(&b, "prefix = %q\n", one(prefixes))
		}
		if location := one(locations); location != "" {
			fmt.Fprintf(&b, "location = %q\n", location)
		}
		line(6, "blocked = true")
		line(6, "insecure = true")
		line(6, "mirror-by-digest-only = true")
		for range r.Intn(3) {
			fmt.Fprintf(&b, "[[registry.mirror]]\nlocation = %q\n", one(locations))
			line(3, "insecure = true")
			if scope := one([]string{"digest-only", "tag-only", "", "", "", "", "", ""}); scope != "" {
				fmt.Fprintf(&b, "pull-from-mirror = %q\n", scope)
			}
		}
	}
	return b.String()
}

// theirs tells what containers' code asks: endpoints, "blocked" or "error".
func theirs(t *testing.T, path, ref string) string {
	t.Helper()
	sys := &imagetypes.SystemContext{SystemRegistriesConfPath: path, SystemRegistriesConfDirPath: "/nonexistent"}
	sysregistriesv2.InvalidateCache()
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		t.Fatal(err)
	}
	named = reference.TagNameOnly(named)
	registry, err := sysregistriesv2.FindRegistry(sys, named.String())
	switch {
	case err != nil:
		return "error"
	case registry == nil:
		return rules.Normal(named.String()) + " false"
	case registry.Blocked:
		return "blocked"
	}
	sources, err := registry.PullSourcesFromReference(named)
	if err != nil {
		return "error"
	}
	var all []string
	for _, s := range sources {
		// What is blocked itself is refused when it is asked, after this.
		own, err := sysregistriesv2.FindRegistry(sys, s.Reference.String())
		if err == nil && own != nil && own.Blocked && s.Reference.String() != named.String() {
			continue
		}
		all = append(all, fmt.Sprintf("%s %t", rules.Normal(s.Reference.String()), s.Endpoint.Insecure))
	}
	if len(all) == 0 {
		return "error"
	}
	return strings.Join(all, "; ")
}

// ours tells what RukPak asks. odd says that it passes over an endpoint whose
// reference would be none, where containers' code fails altogether.
func ours(t *testing.T, path, ref string) (answer string, odd bool) {
	t.Helper()
	document, err := containers.Read(path)
	if err != nil {
		return "error", false
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	found, err := document.Set().Resolve(parsed)
	for _, e := range found.Skipped {
		odd = odd || strings.Contains(e.Skipped, "is not a reference")
	}
	if _, blocked := errors.AsType[*rules.BlockedError](err); blocked {
		return "blocked", odd
	}
	if err != nil {
		return "error", odd
	}
	var all []string
	for _, e := range found.Endpoints {
		all = append(all, fmt.Sprintf("%s %t", rules.Normal(e.Reference.Name()), e.PlainHTTP))
	}
	return strings.Join(all, "; "), odd
}

func TestTheSameEndpointsInTheSameOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registries.conf")
	compared, different := 0, 0
	for seed := range int64(seeds) {
		text := file(rand.New(rand.NewSource(seed)))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, ref := range refs {
			want := theirs(t, path, ref)
			got, odd := ours(t, path, ref)
			if want != "error" {
				compared++
			}
			if got == want || want == "error" && odd {
				continue
			}
			t.Errorf("seed %d, %s: got %q, want %q, of\n%s", seed, ref, got, want, text)
			if different++; different > 5 {
				t.FailNow()
			}
		}
	}
	if compared < seeds {
		t.Errorf("only %d answers were no errors: do the files make sense?", compared)
	}
	t.Logf("%d answers of %d are the same and no errors", compared, seeds*len(refs))
}
