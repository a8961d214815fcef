// SPDX-License-Identifier: Apache-2.0

package parse_test

import (
	"fmt"
	"strings"
	"testing"

	"rukpak.io/rukpak/internal/parse"
)

// laughs is a text whose aliases stand for nine times as much on each level.
func laughs(levels int) string {
	text := "a0: &a0 [x]\n"
	for i := 1; i <= levels; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	return text
}

func TestWhatAliasesWouldMakeFarLargerIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"one long text, often":    "a: &a " + strings.Repeat("x", 300<<10) + "\nb: [" + strings.Repeat("*a ,", 100_000) + "]\n",
		"aliases of aliases":      laughs(9),
		"of a key":                "a: &a " + strings.Repeat("x", 100<<10) + "\nb: [" + strings.Repeat("{*a : 1},", 1000) + "]\n",
		"merged mappings":         "a: &a {k: " + strings.Repeat("x", 100<<10) + "}\nb: [" + strings.Repeat("{<<: *a},", 1000) + "]\n",
		"in a document after one": "a: b\n---\n" + laughs(9),
		"itself":                  "a: &a [*a]\n",
		"something around it":     "a: &a\n  b: &b [*a]\n  c: *b\n",
	} {
		if parse.Expands([]byte(text)) == nil {
			t.Errorf("%s: is taken", name)
		}
	}
}

func TestAliasesThatMakeLittleAreTaken(t *testing.T) {
	for _, text := range []string{
		"a: 1\n", "a: &a {b: c}\nd: *a\ne: {<<: *a, f: g}\n", laughs(3), "text: 'R&D *'\n", "a: &a x\nb: [*a, *a]\n---\na: &a y\n",
		"a: &a x\nb: [" + strings.Repeat("*a, ", 1000) + "]\n",
	} {
		if err := parse.Expands([]byte(text)); err != nil {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}
