// SPDX-License-Identifier: Apache-2.0

package parse_test

import (
	"errors"
	"strings"
	"testing"

	"rukpak.io/rukpak/internal/parse"
)

// nested are values of a depth, in each way of writing them.
func nested(depth int) map[string]string {
	var block, both strings.Builder
	for i := range depth {
		block.WriteString(strings.Repeat(" ", i) + "a:\n")
		if i%2 == 0 { // a list may begin where the mapping around it does
			both.WriteString(strings.Repeat(" ", i) + "a:\n" + strings.Repeat(" ", i))
		} else {
			both.WriteString("- ")
			if i+1 < depth {
				both.WriteString("b: 1\n")
			}
		}
	}
	return map[string]string{
		"lists":          strings.Repeat("[", depth) + strings.Repeat("]", depth),
		"mappings":       strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth),
		"in lines":       block.String(),
		"lists in lines": strings.Repeat("- ", depth) + "a",
		"the second":     "a: b\n---\n" + strings.Repeat("[", depth) + strings.Repeat("]", depth),
		"both":           both.String(),
	}
}

func TestValuesThatAreTooDeepAreRefused(t *testing.T) {
	for name, text := range nested(502) {
		if err := parse.Deep([]byte(text)); !errors.Is(err, parse.ErrDeep) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	const very = 20_000 // more than the parser of YAML takes
	for _, text := range []string{strings.Repeat("[", very), strings.Repeat(`{"a":`, very), strings.Repeat("- ", very) + "a"} {
		if err := parse.Deep([]byte(text)); !errors.Is(err, parse.ErrDeep) {
			t.Errorf("%.10s...: got %v", text, err)
		}
	}
	if err := parse.Expands([]byte(nested(502)["lists"])); !errors.Is(err, parse.ErrDeep) {
		t.Errorf("with aliases looked at: %v", err)
	}
}

func TestValuesThatAreNotTooDeepAreTaken(t *testing.T) {
	for name, text := range nested(499) {
		if err := parse.Deep([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", "a: |\n  " + strings.Repeat("[", 1000), strings.Repeat("a: {b: c}\n---\n", 1000), "a: [" + strings.Repeat("[],", 1000) + "]"} {
		if err := parse.Deep([]byte(text)); err != nil {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}
