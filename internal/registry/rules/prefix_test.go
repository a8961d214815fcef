// SPDX-License-Identifier: Apache-2.0

package rules

import "testing"

func TestCoversIsAboutWholeElements(t *testing.T) {
	for _, tc := range []struct {
		prefix, repository string
		covers             bool
	}{
		{"registry.example.com/team", "registry.example.com/team/app", true},
		{"registry.example.com/team/*", "registry.example.com/team/app", true},
		{"registry.example.com/team/*", "registry.example.com/team", true},
		{"registry.example.com/team", "registry.example.com/team-b/app", false},
		{"registry.example.com/team", "evil.com/registry.example.com/team/app", false},
		{"registry.example.com", "registry.example.com.evil.com/app", false},
		{"registry.example.com", "registry.example.com:5000/app", false},
		{"registry.example.com/team", "registry.example.com:443/team/app", true},
		{"registry.example.com/team", "REGISTRY.example.com/team/app", true},
		{"*.example.com", "a.example.com/app", true},
		{"*.example.com", "example.com/app", false},
		{"docker.io/library", "index.docker.io/library/nginx", true},
		{"*", "anything.example.org/x", true},
	} {
		if got := Covers(tc.prefix, tc.repository) > 0; got != tc.covers {
			t.Errorf("Covers(%q, %q) = %v", tc.prefix, tc.repository, got)
		}
	}
	if Covers("registry.example.com/team", "registry.example.com/team/app") <= Covers("registry.example.com", "registry.example.com/team/app") {
		t.Error("a longer prefix does not count for more")
	}
}
