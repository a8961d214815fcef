// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"net/url"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
)

// TestAServerIsBlockedInEverySpelling has ways to write the address of a server that a rule blocks. One that does not
// parse is refused elsewhere.
func TestAServerIsBlockedInEverySpelling(t *testing.T) {
	set := NewSet([]Rule{
		{Prefix: "bad.example.com", From: "host", Blocked: true},
		{Prefix: "docker.io/evil", From: "hub", Blocked: true},
		{Prefix: "some.example.com:443/evil", From: "port", Blocked: true},
	}, nil)
	for _, text := range []string{
		"bad.example.com/x:1", "BAD.example.com/x:1", "bad.example.com:443/x:1", "bad.example.com./x:1", "bad.example.com.:443/x:1",
		"bad.example.com:80/x:1", "ｂad.example.com/x:1", "bad。example.com/x:1", "bad.example.com/x" + someDigest,
		"evil/x", "docker.io/evil/x", "index.docker.io/evil/x", "index.docker.io:443/evil/x", "registry-1.docker.io/evil/x",
		"Docker.io./evil/x", "registry-1.docker.io:443/evil/x", "some.example.com/evil/x", "some.example.com:443/evil/x",
	} {
		ref, err := name.ParseReference(text)
		if err != nil {
			continue
		}
		_, err = set.Resolve(ref)
		if _, ok := errors.AsType[*BlockedError](err); !ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		"https://bad.example.com/x", "https://bad.example.com.:443/x", "https://bad.example.com./x", "http://bad.example.com:80/x",
		"https://ｂad.example.com/x", "https://bad。example.com/x", "http://bad.example.com:443/x", "https://BAD.EXAMPLE.COM/",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if rule := set.MatchURL(u); rule == nil || !rule.Blocked {
			t.Errorf("%s is not blocked", text)
		}
	}
}

func TestAMirrorIsAskedAlsoWhereThePortIsWritten(t *testing.T) {
	set := NewSet([]Rule{{Prefix: "a.example.com/team", From: "a", Mirrors: []Mirror{{Location: "m.example.com:443/cache"}}}}, nil)
	for _, text := range []string{"a.example.com/team/app:1", "a.example.com:443/team/app:1", "A.example.com./team/app:1"} {
		found, err := set.Resolve(reference(t, text))
		if err != nil || len(found.Endpoints) != 2 || found.Endpoints[0].Reference.Name() != "m.example.com:443/cache/app:1" {
			t.Errorf("%s: %v, %v", text, found.Endpoints, err)
		}
	}
}
