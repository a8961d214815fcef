// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Functions that are put into templates.
const (
	callEnter  = "rukpakEnter"  // a template begins to run
	callLeave  = "rukpakLeave"  // it ends
	callStep   = "rukpakStep"   // a loop turns once more
	callOut    = "rukpakOut"    // a value is printed
	callNested = "rukpakNested" // a text becomes a template
)

// block is what stands between an action such as {{range}} and its {{end}}.
type block struct {
	keyword string
	body    int  // where it begins
	trim    bool // the action before has -}}
	solid   bool // there is more in it than space, comments and definitions
}

// insertion is text to be put into another one.
type insertion struct {
	at   int
	text string
}

// weaver puts calls into the text of a template that tell how it runs, and changes nothing else: no line moves, and what is
// printed stays the same.
type weaver struct {
	text    string
	blocks  []block
	inserts []insertion
}

// watched gives the text of a template with such calls in it. number is that of the file, or negative for a text of no file. A
// text that text/template cannot parse is given back as it is, so that the error is about what people wrote; ok is false if
// blocks are nested too deep to be parsed.
func watched(text string, number int) (woven string, ok bool) {
	if !strings.Contains(text, openAction) {
		return text, true
	}
	w := &weaver{text: text, blocks: []block{{keyword: "define"}}}
	end := 0
	for {
		a, found, readable := nextAction(text, end)
		if !readable {
			return text, true
		}
		if !found {
			break
		}
		w.literal(text[end:a.start])
		if !w.take(a) {
			return text, true
		}
		if len(w.blocks) > maxNesting {
			return "", false
		}
		end = a.end
	}
	if len(w.blocks) != 1 {
		return text, true
	}
	w.literal(text[end:])
	if w.blocks[0].solid {
		last := len(text)
		if text[end:] != "" && text[last-1] == openAction[0] {
			last-- // a brace at the end must not join those of the call
		}
		w.inserts = append(w.inserts, insertion{0, call(callEnter, number, len(text))}, insertion{last, openAction + callLeave + closeAction})
	}
	return w.woven(), true
}

func call(name string, arguments ...int) string {
	said := openAction + name
	for _, one := range arguments {
		said += " " + strconv.Itoa(one)
	}
	return said + closeAction
}

func (w *weaver) literal(text string) {
	if strings.TrimSpace(text) != "" {
		w.solid()
	}
}

func (w *weaver) solid() { w.blocks[len(w.blocks)-1].solid = true }

// take notes what an action needs. It reports whether blocks and ends match.
func (w *weaver) take(a action) bool {
	if a.comment {
		return true
	}
	for _, operand := range a.templates {
		w.inserts = append(w.inserts, insertion{operand.start, "(" + callNested + " "}, insertion{operand.end, ")"})
	}
	switch a.keyword {
	case "end":
		if len(w.blocks) == 1 {
			return false
		}
		w.close(a)
		return true
	case "define":
	default:
		w.solid()
	}
	switch {
	case a.keyword == "range", a.keyword == "define", a.keyword == "block", a.keyword == "if", a.keyword == "with":
		w.blocks = append(w.blocks, block{keyword: a.keyword, body: a.end, trim: a.trimRight})
	case a.keyword == "" && !a.assigns && !a.counted && a.inside < a.closing:
		pipe := " | "
		if a.last > a.inside && strings.Trim(w.text[a.last:a.closing], spaces) == "" {
			pipe = " " // it ends with a bar, which text/template lets pass
		}
		w.inserts = append(w.inserts, insertion{a.closing, pipe + callOut})
	}
	return true
}

// close ends a block at its {{end}}.
func (w *weaver) close(end action) {
	last := w.blocks[len(w.blocks)-1]
	w.blocks = w.blocks[:len(w.blocks)-1]
	length := end.start - last.body
	var first string
	switch last.keyword {
	case "range":
		first = call(callStep, length)
	case "define", "block":
		if !last.solid { // an empty definition does not replace another one of the same name, and has to stay empty
			return
		}
		first = call(callEnter, unnamed, length)
		leave := openAction + callLeave + closeAction
		if end.trimLeft {
			leave = openAction + "- " + callLeave + closeAction
		}
		w.inserts = append(w.inserts, insertion{end.start, leave})
	default:
		return
	}
	if last.trim {
		first = strings.TrimSuffix(first, closeAction) + " -" + closeAction
	}
	w.inserts = append(w.inserts, insertion{last.body, first})
}

func (w *weaver) woven() string {
	slices.SortStableFunc(w.inserts, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
	var woven strings.Builder
	woven.Grow(len(w.text) + 24*len(w.inserts))
	end := 0
	for _, one := range w.inserts {
		woven.WriteString(w.text[end:one.at])
		woven.WriteString(one.text)
		end = one.at
	}
	woven.WriteString(w.text[end:])
	return woven.String()
}
