// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"rukpak.io/rukpak/provisioner"
)

var lineOfYAML = regexp.MustCompile(`\bline (\d+):`)

// lineIn is the line that an error about YAML names, or 0.
func lineIn(text string) int {
	found := lineOfYAML.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	line, _ := strconv.Atoi(found[1])
	return line
}

// places are how the engine names a place in a template: "web/templates/a.yaml:3:5", in parentheses or at the beginning of a
// line.
var places = regexp.MustCompile(`(?m)(?:^|\()([^\s():]+):(\d+)(?::\d+)?(?:\)|$)`)

// unmade is how text/template names a place, where the engine did not put it into its own form: it does not for what functions
// say.
var unmade = regexp.MustCompile(`template: ([^\s():]+):(\d+):\d+: executing "[^"]*" at <(.*?)>: `)

// fault makes an error of the engine: of the context, of the cluster, or about a template.
func (w *watch) fault(ctx context.Context, err error) error {
	var input *provisioner.InputError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case w.failed != nil && !errors.As(w.failed, &input):
		return w.failed // the cluster could not be asked
	}
	text := err.Error()
	fault := &provisioner.InputError{Reason: oneLine(text)}
	for _, found := range places.FindAllStringSubmatch(text, -1) {
		shown, known := w.shown[found[1]]
		if !known {
			continue
		}
		// The last place is the innermost, which is where the fault is.
		fault.File = shown
		fault.Line, _ = strconv.Atoi(found[2])
	}
	if fault.File != "" {
		fault.Reason = reasonOf(text)
	} else if all := unmade.FindAllStringSubmatchIndex(text, -1); len(all) > 0 {
		last := all[len(all)-1]
		fault.File = cmp.Or(w.shown[text[last[2]:last[3]]], text[last[2]:last[3]])
		fault.Line, _ = strconv.Atoi(text[last[4]:last[5]])
		fault.Reason = oneLine("at " + text[last[6]-1:])
	}
	if input != nil { // a limit
		return &provisioner.InputError{File: cmp.Or(input.File, fault.File), Line: fault.Line, Reason: input.Reason}
	}
	return fault
}

// reasonOf is what the engine says at last, after the places that it came by.
func reasonOf(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	first := strings.TrimSpace(lines[0])
	for _, intro := range []string{"parse error at (", "execution error at (", "parse error in ("} {
		if rest, found := strings.CutPrefix(first, intro); found {
			if _, message, found := strings.Cut(rest, "): "); found {
				return cmp.Or(oneLine(strings.Join(append([]string{message}, lines[1:]...), " ")), "the template fails without saying why")
			}
		}
	}
	var at string
	var message []string
	for _, line := range lines {
		line = strings.TrimSpace(line)
		switch {
		case places.MatchString(line):
			at, message = "", nil
		case strings.HasPrefix(line, `executing "`):
			if _, after, found := strings.Cut(line, " at <"); found {
				at = strings.TrimSuffix(after, ">:")
			}
			message = nil
		default:
			message = append(message, line)
		}
	}
	reason := cmp.Or(oneLine(strings.Join(message, " ")), oneLine(text))
	if at != "" && !strings.Contains(reason, at) {
		reason = fmt.Sprintf("at <%s>: %s", oneLine(at), reason)
	}
	return reason
}
