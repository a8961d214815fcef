// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNotesAreTextThatReadsBackAsItWasWritten(t *testing.T) {
	for name, in := range map[string]string{
		"bytes that are no text": "a\xffb", "a cut inside a character": strings.Repeat("x", maxNotes-5) + "äääää", "long": strings.Repeat("ä", maxNotes),
	} {
		if got := cutTo(in, maxNotes); !utf8.ValidString(got) || len(got) > maxNotes {
			t.Errorf("%s: %d bytes, valid %v", name, len(got), utf8.ValidString(got))
		}
	}
}
