// SPDX-License-Identifier: Apache-2.0

package spelling

import "testing"

func TestNamesThatLookAlikeAreToldApart(t *testing.T) {
	for name, want := range map[string]string{
		"":                                  "",
		"alice":                             "alice",
		"system:serviceaccount:ns:rukpak-1": "system:serviceaccount:ns:rukpak-1",
		"alice@example.com":                 "alice@example.com",
		"\u0430lice":                        `"\u0430lice"`,
		"ali\u200bce":                       `"ali\u200bce"`,
		"\u202eecila":                       `"\u202eecila"`,
		"M\u00fcller":                       `"M\u00fcller"`,
		"Jane Doe":                          `"Jane Doe"`,
		"alice, bob":                        `"alice, bob"`,
		"alice ":                            `"alice "`,
		"a\x1b[2Jb":                         `"a\x1b[2Jb"`,
		`"\u0430lice"`:                      `"\"\\u0430lice\""`,
		"bad\xffbyte":                       `"bad\xffbyte"`,
	} {
		if got := Name(name); got != want {
			t.Errorf("Name(%q) = %s, not %s", name, got, want)
		}
	}
	if got := Names([]string{"alice", "\u0430lice"}); got != `alice, "\u0430lice"` {
		t.Errorf("Names gives %s", got)
	}
}
