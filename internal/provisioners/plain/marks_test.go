// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestMarksAndLineEndsDoNotMatter renders one text in the ways that editors save it.
func TestMarksAndLineEndsDoNotMatter(t *testing.T) {
	text := configMap + "data: {a: \"b\\n\"}\n---\n" + strings.Replace(configMap, "name: a", "name: b", 1) + "data:\n  text: |\n    one\n    two\n"
	want := outcome(t, fstest.MapFS{"x.yaml": {Data: []byte(text)}})
	if strings.Contains(want, "error") {
		t.Fatal(want)
	}
	for name, variant := range map[string]string{
		"MarkAtBeginning":     "\ufeff" + text,
		"MarkBeforeSeparator": strings.Replace(text, "---", "\ufeff---", 1),
		"MarkAfterSeparator":  strings.Replace(text, "---\n", "---\n\ufeff", 1),
		"MarkAndSeparator":    "\ufeff---\n" + text,
		"CRLF":                strings.ReplaceAll(text, "\n", "\r\n"),
		"MarkAndCRLF":         "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n"),
		"NoLastLineEnd":       strings.TrimSuffix(text, "\n") + "\n",
		"SpaceAfterSeparator": strings.Replace(text, "---\n", "--- \t\n", 1),
		"BlankLines":          "\n\n" + text + "\n\n---\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, outcome(t, fstest.MapFS{"x.yaml": {Data: []byte(variant)}})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
