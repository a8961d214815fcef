// SPDX-License-Identifier: Apache-2.0

package version

import (
	"strings"
	"testing"
)

func TestTheHighestVersionInARangeIsChosen(t *testing.T) {
	all := []string{"v1.0.0", "1.2.0", "1.10.0", "1.9.9", "2.0.0", "2.1.0-rc.1", "1.2", "latest", "3.0", "1.10.0-debug", "sha256-abc.sig"}
	for name, tc := range map[string]struct {
		text, filter string
		names        []string
		want         string
		err          string
	}{
		"All":           {"*", "", all, "2.0.0", ""},
		"Range":         {">=1.2.0 <2", "", all, "1.10.0", ""},
		"Caret":         {"^1.0.0", "", all, "1.10.0", ""},
		"Tilde":         {"~1.9", "", all, "1.9.9", ""},
		"X":             {"1.9.x", "", all, "1.9.9", ""},
		"WithV":         {"1.0.0", "", all, "v1.0.0", ""},
		"PreRelease":    {">=2.0.0-0", "", all, "2.1.0-rc.1", ""},
		"Filter":        {">=1.0.0-0 <2", "-debug$", all, "1.10.0-debug", ""},
		"Build":         {"*", "", []string{"1.0.0+b", "1.0.0+a"}, "1.0.0+a", ""},
		"BuildReversed": {"*", "", []string{"1.0.0+a", "1.0.0+b"}, "1.0.0+a", ""},
		"None":          {">=4", "", all, "", `none of 7 versions is in the range ">=4"; the highest is 2.1.0-rc.1`},
		"NoneFiltered":  {">=4", "^1", all, "", `none of 4 versions that matches "^1" is in the range`},
		"NoVersions":    {"*", "", []string{"latest", "1.2"}, "", "none of 2 names is a version"},
		"Nothing":       {"*", "", nil, "", "no versions at all"},
		"BadRange":      {"newest", "", all, "", `"newest" is not a range`},
		"BadFilter":     {"*", "(", all, "", `"(" is not a regular expression`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := NewRange(tc.text, tc.filter)
			var got string
			if err == nil {
				got, err = r.Highest(tc.names)
			}
			if got != tc.want || (tc.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func FuzzRanges(f *testing.F) {
	f.Add(">=1.2.0 <2", "v1.2.3")
	f.Add("^1 || ~2.1-0", "2.1.0-rc.1+b")
	f.Fuzz(func(t *testing.T, text, name string) {
		r, err := NewRange(text, "")
		if err != nil {
			return
		}
		if got, err := r.Highest([]string{name}); err == nil && got != name {
			t.Errorf("range %q of %q gives %q", text, name, got)
		}
	})
}
