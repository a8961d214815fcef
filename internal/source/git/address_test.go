// SPDX-License-Identifier: Apache-2.0

package git

import (
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"https://example.com/team/app":          "https://example.com/team/app",
		"https://Example.COM:8443/team/app.git": "https://example.com:8443/team/app.git",
		"https://example.com/app/":              "https://example.com/app",
		"https://[2001:db8::1]:443/app":         "https://[2001:db8::1]:443/app",
		"ssh://git@example.com/team/app.git":    "ssh://git@example.com/team/app.git",
		"ssh://example.com:2222/~user/app":      "ssh://example.com:2222/~user/app",
		"http://example.com/with%20space":       "http://example.com/with%20space",
	} {
		got, err := parseAddress(text)
		if err != nil || got.String() != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

func TestSameServer(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"https://example.com/a", "https://example.com:443/b", true},
		{"https://example.com/a", "https://EXAMPLE.com/b", true},
		{"ssh://git@example.com/a", "ssh://other@example.com:22/b", true},
		{"https://example.com/a", "http://example.com/a", false},
		{"https://example.com/a", "ssh://example.com/a", false},
		{"https://example.com/a", "https://example.com:8443/a", false},
		{"https://example.com/a", "https://example.com.evil.org/a", false},
	} {
		a, errA := parseAddress(tc.a)
		b, errB := parseAddress(tc.b)
		if got := a.sameServer(b); errA != nil || errB != nil || got != tc.want {
			t.Errorf("%s, %s: %t, want %t (%v, %v)", tc.a, tc.b, got, tc.want, errA, errB)
		}
	}
}

func TestURLsOfSubmodules(t *testing.T) {
	of, err := parseAddress("https://example.com/team/app.git")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"../lib.git":                     "https://example.com/team/lib.git",
		"../../other/lib":                "https://example.com/other/lib",
		"./nested.git":                   "https://example.com/team/app.git/nested.git",
		"https://other.org/lib":          "https://other.org/lib",
		"git@github.com:org/lib.git":     "ssh://git@github.com/org/lib.git",
		"github.com:org/lib":             "ssh://github.com/org/lib",
		"git@github.com:/org/lib.git":    "ssh://git@github.com/org/lib.git",
		"ssh://git@example.com:2222/lib": "ssh://git@example.com:2222/lib",
	} {
		got, err := of.submodule(text)
		if err != nil || got.String() != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "lib", "/srv/lib", "../../..", "file:///x", "ext::sh -c x", "C:\\x", "https://u:p@host/x", "-oProxyCommand=x:y"} {
		if got, err := of.submodule(text); err == nil {
			t.Errorf("%q was taken as %q", text, got)
		}
	}
}

func TestNamesThatGitAllows(t *testing.T) {
	for _, name := range []string{"main", "release/1.2", "v1.0.0", "ünï", "a-b_c", "feature/#12"} {
		if !refName(name) {
			t.Errorf("%q was refused", name)
		}
	}
	for _, name := range []string{"-x", "a b", "a..b", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a.", "@", "a@{1}", "a\n", "a\x00", "a\x7f", strings.Repeat("a", 256)} {
		if refName(name) {
			t.Errorf("%q was taken", name)
		}
	}
}

func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"https://example.com/a", "ssh://git@[::1]:22/~a/b%20c", "git@host:path", "https://u:p@h/x", "../up", "./x", "http://h:0/%0a"} {
		f.Add(seed)
	}
	of, err := parseAddress("https://example.com/team/app.git")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (address, error){parseAddress, of.submodule} {
			got, err := parse(text)
			if err != nil {
				if strings.ContainsAny(err.Error(), "\n\r\x1b") {
					t.Errorf("%q: the error has several lines: %q", text, err)
				}
				continue
			}
			again, err := parseAddress(got.String())
			if err != nil || again != got {
				t.Errorf("%q: %+v becomes %+v, %v", text, got, again, err)
			}
			if strings.ContainsAny(got.String(), " \n\r\x00") || strings.Contains(got.user, ":") || got.scheme != schemeSSH && strings.Contains(got.host, "@") {
				t.Errorf("%q was taken as %q", text, got)
			}
		}
	})
}
