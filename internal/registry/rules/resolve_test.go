// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"

	"rukpak.io/rukpak/internal/registry"
)

const someDigest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func reference(t *testing.T, text string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(text)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestLongestPrefixWins(t *testing.T) {
	set := NewSet([]Rule{
		{Prefix: "*"}, {Prefix: "*.example.com"}, {Prefix: "example.com"}, {Prefix: "example.com:5000"}, {Prefix: "example.com/team"},
		{Prefix: "example.com/team/app"}, {Prefix: "docker.io/library"}, {Prefix: "*.eu.example.com"}, {Prefix: "a.eu.example.com"},
	}, nil)
	for ref, want := range map[string]string{
		"other.org/x":                   "*",
		"example.com/x":                 "example.com",
		"example.com:5000/x":            "example.com:5000",
		"example.com:5001/x":            "*", // another server, and the host alone is not about it
		"example.com/team":              "example.com/team",
		"example.com/team:v1":           "example.com/team",
		"example.com/team" + someDigest: "example.com/team",
		"example.com/team-b/app":        "example.com", // a path covers whole parts
		"example.com/team/app/x":        "example.com/team/app",
		"a.example.com/x":               "*.example.com",
		"a.b.example.com:8443/x":        "*.example.com",
		"badexample.com/x":              "*",
		"b.eu.example.com/x":            "*.eu.example.com",
		"a.eu.example.com/x":            "a.eu.example.com",
		"other.org/x.example.com/y":     "*", // a wildcard does not cross "/"
		"nginx":                         "docker.io/library",
		"index.docker.io/library/nginx": "docker.io/library",
		"docker.io/acme/app":            "*",
	} {
		t.Run(ref, func(t *testing.T) {
			rule := set.Match(Text(reference(t, ref)))
			if rule == nil || rule.Prefix != want {
				t.Errorf("got %+v, want %q", rule, want)
			}
		})
	}
	if rule := NewSet([]Rule{{Prefix: "example.com"}}, nil).Match("other.org/x"); rule != nil {
		t.Errorf("a rule matches a reference that it is not about: %+v", rule)
	}
}

func TestEndpointsInOrder(t *testing.T) {
	set := NewSet([]Rule{
		{Prefix: "docker.io", From: "hub", Mirrors: []Mirror{
			{Location: "m1.example.com/hub", From: "hub mirror 0", For: Digests},
			{Location: "m2.example.com:5000", From: "hub mirror 1"},
			{Location: "m3.example.com", From: "hub mirror 2", For: Tags},
		}},
		{Prefix: "moved.example.com/old", From: "moved", Rewrite: "new.example.com/base/new"},
		{Prefix: "only.example.com", From: "only", MirrorOnly: true, Mirrors: []Mirror{{Location: "m1.example.com/only", For: Digests, From: "only mirror 0"}}},
		{Prefix: "*.wild.example.com", From: "wild", Rewrite: "cache.example.com/wild"},
		{Prefix: "pin.example.com/app:v1", From: "pin", Rewrite: "pin.example.com/app:v2"},
		{Prefix: "indirect.example.com", From: "indirect", Mirrors: []Mirror{{Location: "bad.example.com/x", From: "indirect mirror 0"}, {Location: "plainname", From: "indirect mirror 1"}}},
		{Prefix: "bad.example.com", From: "bad", Blocked: true},
	}, nil)
	for ref, want := range map[string]string{
		"nginx":                         "m2.example.com:5000/library/nginx:latest ns=docker.io; m3.example.com/library/nginx:latest ns=docker.io; index.docker.io/library/nginx:latest",
		"acme/app" + someDigest:         "m1.example.com/hub/acme/app@ ns=docker.io; m2.example.com:5000/acme/app@ ns=docker.io; index.docker.io/acme/app@",
		"moved.example.com/old/app:v1":  "new.example.com/base/new/app:v1",
		"moved.example.com/older:v1":    "moved.example.com/older:v1",
		"only.example.com/a/b:v1":       "error: only cannot be used: it leaves no endpoint for only.example.com/a/b:v1: m1.example.com (it is only for references by digest)",
		"only.example.com/a/b@":         "m1.example.com/only/a/b@ ns=only.example.com",
		"a.b.wild.example.com/x:v1":     "cache.example.com/wild/x:v1",
		"pin.example.com/app:v1":        "pin.example.com/app:v2",
		"pin.example.com/app:v10":       "pin.example.com/app:v10",
		"bad.example.com/x:v1":          "error: bad.example.com/x:v1 is blocked by bad",
		"indirect.example.com/x:v1":     "indirect.example.com/x:v1",
		"unknown.example.com:8443/x:v1": "unknown.example.com:8443/x:v1",
	} {
		t.Run(ref, func(t *testing.T) {
			found, err := set.Resolve(reference(t, strings.Replace(ref, "b@", "b"+someDigest, 1)))
			var got []string
			for _, e := range found.Endpoints {
				text := strings.Replace(e.Reference.Name(), someDigest, "@", 1)
				if e.Namespace != "" {
					text += " ns=" + e.Namespace
				}
				got = append(got, text)
			}
			if err != nil {
				got = append(got, "error: "+err.Error())
			}
			if diff := cmp.Diff(want, strings.Join(got, "; ")); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMirrorsHaveNothingOfTheRuleTheyStandIn(t *testing.T) {
	login := func(user string) []registry.Login {
		l := registry.Login{}
		l.Username = user
		return []registry.Login{l}
	}
	set := NewSet([]Rule{
		{Prefix: "primary.example.com", From: "primary", Primary: Access{CA: []byte("p"), Logins: login("primary"), PlainHTTP: true, SkipVerify: true}, Mirrors: []Mirror{
			{Location: "m1.example.com/x"}, {Location: "m2.example.com", Access: Access{CA: []byte("own")}}, {Location: "m3.example.com"},
		}},
		{Prefix: "m1.example.com", From: "m1", Primary: Access{CA: []byte("m1"), Logins: login("m1"), PlainHTTP: true}},
		{Prefix: "m2.example.com", From: "m2", Primary: Access{CA: []byte("m2"), Logins: login("m2")}},
	}, nil)
	found, err := set.Resolve(reference(t, "primary.example.com/a:v1"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range found.Endpoints {
		e := &found.Endpoints[i]
		text := e.Host() + " ca=" + string(e.CA)
		for _, candidate := range set.Credentials(e).Candidates(e.Reference.Context()) {
			config, err := candidate.Authorization()
			if err != nil {
				t.Fatal(err)
			}
			text += " user=" + config.Username
		}
		if e.PlainHTTP {
			text += " http"
		}
		got = append(got, text)
	}
	want := []string{
		"m1.example.com ca=m1 user=m1", // what its own address says, but never less safety
		"m2.example.com ca=own user=m2",
		"m3.example.com ca=",
		"primary.example.com ca=p user=primary http",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
}

func TestBrokenRulesFailClosed(t *testing.T) {
	broken := errors.New("no such Secret")
	set := NewSet([]Rule{{Prefix: "a.example.com", From: "a", Problem: broken}}, nil)
	_, err := set.Resolve(reference(t, "a.example.com/x"))
	if problem, ok := errors.AsType[*ProblemError](err); !ok || problem.Rule != "a" || !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestURLs(t *testing.T) {
	set := NewSet([]Rule{
		{Prefix: "charts.example.com", Rewrite: "cache.example.com/charts"},
		{Prefix: "git.example.com:8443", Rewrite: "git.local:9443"},
	}, nil)
	for from, want := range map[string]string{
		"https://charts.example.com/index.yaml?x=1":   "https://cache.example.com/charts/index.yaml?x=1",
		"https://charts.example.com:443/a/":           "https://cache.example.com/charts/a/",
		"https://charts.example.com":                  "https://cache.example.com/charts",
		"https://charts.example.com:8443/index.yaml":  "",
		"https://git.example.com:8443/a%2Fb.git/refs": "https://git.local:9443/a/b.git/refs",
		"https://other.example.com/x":                 "",
	} {
		u, err := url.Parse(from)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if moved, ok := set.RewriteURL(u); ok {
			got = moved.String()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", from, got, want)
		}
	}
}
