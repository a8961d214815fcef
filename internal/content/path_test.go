// SPDX-License-Identifier: Apache-2.0

package content

import (
	"strings"
	"testing"
)

func TestCleanPath(t *testing.T) {
	for name, tc := range map[string]struct{ in, want, err string }{
		"Plain":            {in: "a/b", want: "a/b"},
		"LeadingDot":       {in: "./a/b/", want: "a/b"},
		"Doubled":          {in: "a//b/./c", want: "a/b/c"},
		"Root":             {in: "./", want: "."},
		"Backslash":        {in: `system\x2d.slice`, want: `system\x2d.slice`},
		"BackslashDots":    {in: `..\..\x`, want: `..\..\x`},
		"Space":            {in: "a b", want: "a b"},
		"ThreeDots":        {in: "...", want: "..."},
		"Absolute":         {in: "/etc/passwd", err: "absolute"},
		"DotDot":           {in: "../x", err: `".."`},
		"DotDotInside":     {in: "a/../b", err: `".."`},
		"DotDotAtTheEnd":   {in: "a/..", err: `".."`},
		"Empty":            {in: "", err: "empty"},
		"NUL":              {in: "a\x00b", err: "control character 0x00"},
		"LineBreak":        {in: "a\nb", err: "control character 0x0a"},
		"TerminalEscape":   {in: "a\x1b[2J", err: "control character 0x1b"},
		"TooLong":          {in: strings.Repeat("a", maxText+1), err: "more than 16384 bytes"},
		"Latin1":           {in: "caf\xe9", err: "not valid UTF-8"},
		"OverlongDotDot":   {in: "\xc0\xae\xc0\xae/x", err: "not valid UTF-8"},
		"FullwidthDotsAre": {in: "\uff0e\uff0e/x", want: "\uff0e\uff0e/x"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := CleanPath(tc.in)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %q, %v; want an error with %q", got, err, tc.err)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Fatalf("got %q, %v; want %q", got, err, tc.want)
			}
			if got != "." {
				if err := CheckPath(got); err != nil {
					t.Errorf("a clean path does not pass the check: %v", err)
				}
			}
		})
	}
}

func TestCheckLink(t *testing.T) {
	for name, tc := range map[string]struct {
		link, target string
		rooted       bool
		err          string
	}{
		"Sibling":           {link: "a/b", target: "c"},
		"Up":                {link: "a/b", target: "../c"},
		"ToTheRoot":         {link: "a/b", target: ".."},
		"Nowhere":           {link: "a", target: "gone"},
		"OutOfTheTree":      {link: "a/b", target: "../../c", err: `target "../../c" is outside`},
		"OutAndBack":        {link: "a", target: "../tree/x", err: "outside"},
		"Parent":            {link: "a", target: "..", err: "outside"},
		"HiddenParent":      {link: "a", target: "b/../..", err: "outside"},
		"Absolute":          {link: "a", target: "/etc/passwd", err: "absolute"},
		"AbsoluteInAnImage": {link: "bin/sh", target: "/bin/busybox", rooted: true},
		"OutOfAnImage":      {link: "bin/sh", target: "../../x", rooted: true, err: "outside"},
		"Empty":             {link: "a", target: "", err: "empty"},
		"LineBreak":         {link: "a", target: "b\n", err: "control character"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckLink(tc.link, tc.target, tc.rooted)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got %v, want %q", err, tc.err)
			}
		})
	}
}
