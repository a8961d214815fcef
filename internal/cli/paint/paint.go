// SPDX-License-Identifier: Apache-2.0

// Package paint colours words for a terminal, or leaves them as they are. It
// stands beside RukPak's flow, in the command line only, and decides once for
// all verbs whether there is colour.
package paint

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Modes of the flag --color.
const (
	Auto   = "auto" // colour where output goes to a terminal
	Always = "always"
	Never  = "never"
)

// Check says whether mode is one of the modes.
func Check(mode string) error {
	switch mode {
	case Auto, Always, Never:
		return nil
	}
	return fmt.Errorf("--color is %q; it may be %s, %s or %s", mode, Auto, Always, Never)
}

// Painter colours words. The zero value does not.
type Painter struct{ on bool }

// New decides whether there is colour. The variables NO_COLOR and TERM=dumb
// turn off what Auto would turn on.
func New(mode string, terminal bool, env func(string) string) Painter {
	if mode == Auto {
		return Painter{on: terminal && env("NO_COLOR") == "" && env("TERM") != "dumb"}
	}
	return Painter{on: mode == Always}
}

// On says whether there is colour.
func (p Painter) On() bool { return p.on }

func (p Painter) with(code, text string) string {
	if !p.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold is for titles.
func (p Painter) Bold(text string) string { return p.with("1", text) }

// Faint is for what may be overlooked.
func (p Painter) Faint(text string) string { return p.with("2", text) }

// Good is for what is as it should be.
func (p Painter) Good(text string) string { return p.with("32", text) }

// Busy is for what is on its way or waits.
func (p Painter) Busy(text string) string { return p.with("33", text) }

// Bad is for what failed.
func (p Painter) Bad(text string) string { return p.with("31", text) }

// Clean makes characters visible that would play tricks on a terminal: codes
// that move, colour or hide, and those that turn the direction of writing. What
// other people wrote goes through it before it is shown.
func Clean(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || c == '\u2028' || c == '\u2029' {
			return '\ufffd'
		}
		return c
	}, text)
}

// CleanLines is Clean for a text of several lines, which stay so.
func CleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		cells := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
		for j, cell := range cells {
			cells[j] = Clean(cell)
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// Width is the number of columns that text takes, colour codes not counted.
func Width(text string) int {
	width := 0
	for len(text) > 0 {
		if strings.HasPrefix(text, "\x1b[") {
			if end := strings.IndexByte(text, 'm'); end > 0 {
				text = text[end+1:]
				continue
			}
		}
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		width++
	}
	return width
}
