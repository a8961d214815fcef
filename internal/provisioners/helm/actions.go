// SPDX-License-Identifier: Apache-2.0

package helm

import "strings"

const (
	openAction  = "{{"
	closeAction = "}}"
	spaces      = " \t\r\n"
)

// action is what stands between {{ and }} in the text of a template.
type action struct {
	start, end int    // of all of it, with the braces
	inside     int    // where what it says begins, and
	closing    int    // where it ends: there the braces are, or the space and dash before them
	trimLeft   bool   // {{- : the space before it is left out
	trimRight  bool   // -}} : the space after it is left out
	comment    bool   //
	last       int    // where its last command begins
	keyword    string // the word that it begins with, if that says what it does; "" for a value
	assigns    bool   // it sets a variable and prints nothing
	counted    bool   // what it prints was counted where it was made
	templates  []span // the first operand of each call of tpl, which is the text of a template
}

type span struct{ start, end int }

// nextAction finds the first action from a place on. It is false if there is none; ok is false if text/template would not
// understand it either.
func nextAction(text string, from int) (found action, any, ok bool) {
	at := strings.Index(text[from:], openAction)
	if at < 0 {
		return action{}, false, true
	}
	a := action{start: from + at}
	a.inside = a.start + len(openAction)
	if rest := text[a.inside:]; len(rest) > 1 && rest[0] == '-' && strings.IndexByte(spaces, rest[1]) >= 0 {
		a.trimLeft = true
		a.inside += 2
	}
	if strings.HasPrefix(text[a.inside:], "/*") {
		return a.asComment(text)
	}
	if !a.scan(text) {
		return a, true, false
	}
	a.classify(text)
	return a, true, true
}

func (a action) asComment(text string) (action, bool, bool) {
	a.comment = true
	length := strings.Index(text[a.inside+2:], "*/")
	if length < 0 {
		return a, true, false
	}
	a.closing = a.inside + 2 + length + 2
	return a, true, a.close(text)
}

// close reads the end of an action at a.closing, and reports whether it is there.
func (a *action) close(text string) bool {
	rest := text[a.closing:]
	if strings.HasPrefix(rest, closeAction) {
		a.end = a.closing + len(closeAction)
		return true
	}
	if len(rest) > 1 && strings.IndexByte(spaces, rest[0]) >= 0 && rest[1] == '-' && strings.HasPrefix(rest[2:], closeAction) {
		a.trimRight = true
		a.end = a.closing + 2 + len(closeAction)
		return true
	}
	return false
}

// scan finds the end of an action, its last command, and what tpl is called with.
func (a *action) scan(text string) bool {
	a.last = a.inside
	depth := 0
	for at := a.inside; at < len(text); {
		switch text[at] {
		case '}', '-': // of }} or of -}}
			if a.closesAt(text, at) {
				return true
			}
		case '"', '\'', '`':
			next, ok := token(text, at)
			if !ok {
				return false
			}
			at = next
			continue
		case '(':
			depth++
		case ')':
			depth--
		case '|':
			if depth == 0 {
				a.last = at + 1
			}
		case 't':
			a.callsTpl(text, at)
		}
		at++
	}
	return false
}

// closesAt reports whether an action ends with the brace or the dash at a place.
func (a *action) closesAt(text string, at int) bool {
	a.closing = at
	if text[at] == '-' {
		a.closing-- // the space before it
	}
	return a.closing >= a.inside && a.close(text)
}

// callsTpl notes the operand if the function tpl is called here.
func (a *action) callsTpl(text string, at int) {
	const name = "tpl"
	before := text[at-1]
	after := at + len(name)
	if !strings.HasPrefix(text[at:], name) || isOfWord(before) || isOfName(before) || after < len(text) && isOfWord(text[after]) {
		return
	}
	if operand, found := operandAfter(text, after); found {
		a.templates = append(a.templates, operand)
	}
}

// token gives where what begins at a place ends: a quoted text, a word, or one byte.
func token(text string, at int) (int, bool) {
	switch c := text[at]; {
	case c == '"' || c == '\'':
		for next := at + 1; next < len(text) && text[next] != '\n'; next++ {
			switch text[next] {
			case '\\':
				next++
			case c:
				return next + 1, true
			}
		}
		return 0, false
	case c == '`':
		length := strings.IndexByte(text[at+1:], '`')
		return at + 1 + length + 1, length >= 0
	case isOfWord(c):
		next := at
		for next < len(text) && isOfWord(text[next]) {
			next++
		}
		return next, true
	}
	return at + 1, true
}

func isOfWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// isOfName reports whether a word after this byte is a field or a variable.
func isOfName(c byte) bool { return c == '.' || c == '$' }

// operandAfter finds the operand that follows a function: to the next space, bar or parenthesis that is not its own.
func operandAfter(text string, from int) (span, bool) {
	start := from
	for start < len(text) && strings.IndexByte(spaces, text[start]) >= 0 {
		start++
	}
	open := 0
	for at := start; at < len(text); {
		ends := strings.HasPrefix(text[at:], closeAction) || strings.IndexByte(spaces+"|,", text[at]) >= 0 || text[at] == ')'
		if open == 0 && ends {
			return span{start, at}, start > from && at > start
		}
		switch text[at] {
		case '(':
			open++
		case ')':
			open--
		}
		next, ok := token(text, at)
		if !ok {
			return span{}, false
		}
		at = next
	}
	return span{}, false
}

// classify says what an action does.
func (a *action) classify(text string) {
	said := strings.Trim(text[a.inside:a.closing], spaces)
	switch word := said[:wordLength(said)]; word {
	case "block", "break", "continue", "define", "else", "end", "if", "range", "template", "with":
		a.keyword = word
	}
	if strings.HasPrefix(said, "$") {
		rest := strings.TrimLeft(said[1+wordLength(said[1:]):], spaces)
		a.assigns = strings.HasPrefix(rest, ":=") || strings.HasPrefix(rest, "=") || strings.HasPrefix(rest, ",")
	}
	last := strings.TrimLeft(text[a.last:a.closing], spaces)
	a.counted = isCounted(last[:wordLength(last)])
}

// isCounted reports whether a function counts what it makes; what include makes is counted by what is printed in it.
func isCounted(function string) bool {
	switch function {
	case "include", "indent", "nindent", "print", "printf", "quote", "squote", "toJson", "toYaml":
		return true
	}
	return false
}

func wordLength(text string) int {
	length := 0
	for length < len(text) && isOfWord(text[length]) {
		length++
	}
	return length
}
