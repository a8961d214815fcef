// SPDX-License-Identifier: Apache-2.0

package spelling

import (
	"strconv"
	"strings"
)

// Name gives a name as people are to read it: as it is, if it can only be read in one way, and else quoted, with all that
// is not plain ASCII escaped. Letters of other scripts that look like another user's name, marks that have no width or
// turn the direction of writing, and a comma that makes one name look like two are seen then.
func Name(name string) string {
	plain := func(c rune) bool { return c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != ',' }
	if strings.IndexFunc(name, func(c rune) bool { return !plain(c) }) < 0 {
		return name
	}
	return strconv.QuoteToASCII(name)
}

// Names joins names as people are to read them.
func Names(names []string) string {
	shown := make([]string, 0, len(names))
	for _, name := range names {
		shown = append(shown, Name(name))
	}
	return strings.Join(shown, ", ")
}
