// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"testing"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
)

func FuzzURL(f *testing.F) {
	for _, seed := range []string{"https://example.com/a.tgz", "http://[::1]:80/", "https://user:hunter222@example.com/", "https:a", "//x", "https://example.com/%2e%2e/%00?hunter222", "https://\n"} {
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, text string, insecure bool) {
		u, err := Parse("http", text, insecure)
		if err != nil {
			if source.KindOf(err) != source.Terminal || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if u.Scheme != "https" && (u.Scheme != "http" || !insecure) || u.User != nil || u.Hostname() == "" {
			t.Errorf("%q is taken", text)
		}
		if strings.ContainsAny(Plain(u), "?@") && !strings.ContainsAny(u.Path+u.Host, "?@") {
			t.Errorf("%q is shown as %q", text, Plain(u))
		}
		name := NameOf(u)
		if err := content.CheckPath(name); err != nil && name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
			t.Logf("%q is no name of a file, and refused later: %v", name, err)
		}
	})
}
