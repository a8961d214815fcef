// SPDX-License-Identifier: Apache-2.0

package tutorial

import (
	"fmt"
	"strings"
)

// step is a block of commands of a page.
type step struct {
	line  int      // of its first command
	sh    string   // the commands
	fails bool     // the last one must not succeed
	lines []string // of the output that the page shows
}

const (
	markRun   = "<!-- test -->"
	markFails = "<!-- test: fails -->"
)

// steps finds the blocks of a page that are to be run: those marked as sh below one of the marks, each with the block
// marked as text that follows it, if any. A block of sh without a mark is for people only.
func steps(page string) (found []step, err error) {
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		mark := strings.TrimSpace(lines[i])
		if mark != markRun && mark != markFails {
			continue
		}
		body, next, err := block(lines, i+1, "```sh")
		if err != nil {
			return nil, err
		}
		made := step{line: i + 3, sh: strings.Join(body, "\n"), fails: mark == markFails}
		if shown, after, err := block(lines, skipEmpty(lines, next), "```text"); err == nil {
			made.lines, next = shown, after
		}
		found, i = append(found, made), next-1
	}
	return found, nil
}

// block reads a fenced block that begins at a line, and says which line is after it.
func block(lines []string, at int, fence string) (body []string, next int, err error) {
	if at >= len(lines) || strings.TrimSpace(lines[at]) != fence {
		return nil, at, fmt.Errorf("line %d: no %s block", at+1, fence)
	}
	for i := at + 1; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) == "```" {
			return body, i + 1, nil
		}
		body = append(body, lines[i])
	}
	return nil, at, fmt.Errorf("line %d: the block has no end", at+1)
}

func skipEmpty(lines []string, at int) int {
	for at < len(lines) && strings.TrimSpace(lines[at]) == "" {
		at++
	}
	return at
}

// missing gives the lines that the page shows and the output does not have. Runs of blanks count as one; "..." is
// anything.
func (s step) missing(output string) (lost []string) {
	var have []string
	for line := range strings.Lines(output) {
		have = append(have, strings.Join(strings.Fields(line), " "))
	}
	for _, line := range s.lines {
		if want := strings.Join(strings.Fields(line), " "); want != "" && !hasLine(have, want) {
			lost = append(lost, line)
		}
	}
	return lost
}

func hasLine(have []string, want string) bool {
	parts := strings.Split(want, "...")
	for _, line := range have {
		rest, ok := line, true
		for _, part := range parts {
			var found bool
			if _, rest, found = strings.Cut(rest, strings.TrimSpace(part)); !found {
				ok = false
				break
			}
		}
		if ok {
			return true
		}
	}
	return false
}
