// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/internal/ownership"
)

// RenderOptions say how a plan is shown.
type RenderOptions struct {
	// Colour adds the codes of terminals.
	Colour bool
	// Width is the number of columns into which values are cut; 0 means 100, less than 40 means 40.
	Width int
	// Objects, if not nil, gives the objects that are added, to be shown in full. What is secret in them is not.
	Objects func(ownership.ID) *unstructured.Unstructured
}

// Render writes a plan for people: what the content may do at runtime, what the account lacks to install it, then an object
// a paragraph with what would fail at it, a field a line, then images and the counts.
func Render(w io.Writer, p *Plan, options RenderOptions) error {
	if options.Width == 0 {
		options.Width = 100
	}
	r := &renderer{options: options, width: max(options.Width, 40)}
	r.runtime(p.RuntimeLines())
	r.section(bad, LackingTitle(p.Installer), p.Missing)
	r.section(busy, HealingTitle, p.MissingForHealing)
	for _, change := range p.Changes {
		r.change(change)
	}
	if len(p.Changes) > 0 {
		r.out.WriteByte('\n')
	}
	r.section(bad, "CRD upgrades:", crdLines(p.CRDs))
	r.section("", "Images:", p.Images)
	r.line(bold, "", "Plan: "+p.Summary())
	_, err := w.Write(r.out.Bytes())
	return err
}

// Codes of terminals.
const (
	bold = "1"
	good = "32"
	busy = "33"
	bad  = "31"
	dim  = "2"
)

type renderer struct {
	options RenderOptions
	width   int
	out     bytes.Buffer
}

// line writes one line, with control characters made visible: content is not to play tricks on the terminal.
func (r *renderer) line(code, indent, text string) {
	text = printable(text)
	if r.options.Colour && code != "" {
		text = "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	r.out.WriteString(indent + text + "\n")
}

func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\t' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u2028' || c >= '\u202a' && c <= '\u202e' || c >= '\u2066' && c <= '\u2069' {
			return '\ufffd'
		}
		return c
	}, text)
}

func (r *renderer) section(code, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	r.line(code, "", title)
	for _, line := range lines {
		r.line("", "  ", line)
	}
	r.out.WriteByte('\n')
}

// runtime writes what the content may do.
func (r *renderer) runtime(lines []Line) {
	for _, line := range lines {
		r.line(map[Mood]string{Alarming: bad, Relieving: good}[line.Mood], "", line.Text)
	}
	if len(lines) > 0 {
		r.out.WriteByte('\n')
	}
}

// signs of actions, with their colours.
var signs = map[Action][2]string{
	Add: {"+", good}, Alter: {"~", busy}, Remove: {"-", bad}, Keep: {"=", dim}, Run: {">", busy}, Conflict: {"!", bad}, Unchanged: {" ", dim},
}

func (r *renderer) change(change Change) {
	sign, code := signs[change.Action][0], signs[change.Action][1]
	if change.Recreated {
		sign = "-/+"
	}
	remarks := remarksOf(change)
	title := sign + " " + change.ID().String()
	if len(remarks) > 0 {
		title += " (" + strings.Join(remarks, "; ") + ")"
	}
	r.line(code, "", title)
	if change.Problem != nil {
		message := strings.TrimPrefix(change.Problem.Message, change.ID().String())
		r.line(bad, "    ", "! "+strings.TrimLeft(message, ": "))
	}
	for _, field := range change.Fields {
		r.field(field)
	}
	if change.MoreFields > 0 {
		r.line(dim, "    ", fmt.Sprintf("and %d more fields", change.MoreFields))
	}
	if (change.Action == Add || change.Action == Run) && r.options.Objects != nil {
		if object := r.options.Objects(change.ID()); object != nil {
			r.manifest(object)
		}
	}
}

// remarksOf are what there is to say of a change beside its name.
func remarksOf(change Change) []string {
	var remarks []string
	if change.Adopted {
		remarks = append(remarks, "taken over")
	}
	if change.After != "" {
		remarks = append(remarks, "after "+change.After)
	}
	if change.Unchecked {
		remarks = append(remarks, "not checked by the API server")
	}
	switch change.Action {
	case Keep:
		remarks = append(remarks, "kept")
	case Run:
		remarks = append(remarks, "task of phase "+change.Phase)
	}
	if change.Note != "" {
		remarks = append(remarks, change.Note)
	}
	return remarks
}

func (r *renderer) manifest(object *unstructured.Unstructured) {
	text, err := yaml.Marshal(Redact(object).Object)
	if err != nil {
		r.line(bad, "    ", "cannot be written as YAML: "+err.Error())
		return
	}
	for line := range strings.Lines(string(text)) {
		r.line(good, "    ", strings.TrimRight("+ "+line, "\n"))
	}
}

func (r *renderer) field(field Field) {
	switch {
	case field.Redacted:
		r.redacted(field)
	case field.Old == nil:
		r.value(good, "+ "+field.Path+": ", field.New)
	case field.New == nil:
		r.value(bad, "- "+field.Path+": ", field.Old)
	default:
		r.changed(field)
	}
}

func (r *renderer) redacted(field Field) {
	switch {
	case field.Old == nil:
		r.line(good, "    ", "+ "+field.Path+": "+redacted)
	case field.New == nil:
		r.line(bad, "    ", "- "+field.Path+": "+redacted)
	default:
		r.line(busy, "    ", "~ "+field.Path+": "+redacted+", changed")
	}
}

// value writes a value behind its path, or below it if it has lines.
func (r *renderer) value(code, title string, value json.RawMessage) {
	lines := linesOf(value)
	if lines == nil {
		r.line(code, "    ", r.cut(title+shown(value)))
		return
	}
	r.line(code, "    ", strings.TrimRight(title, " "))
	for _, line := range lines {
		r.line(code, "      ", r.cut(title[:2]+line))
	}
}

func (r *renderer) changed(field Field) {
	old, now := linesOf(field.Old), linesOf(field.New)
	if old != nil && now != nil {
		r.line(busy, "    ", "~ "+field.Path+":")
		r.lines(old, now)
		return
	}
	before, after := itemsOf(field.Old), itemsOf(field.New)
	one := fmt.Sprintf("~ %s: %s -> %s", field.Path, shown(field.Old), shown(field.New))
	if utf8.RuneCountInString(one) <= min(r.width-4, readable) {
		r.line(busy, "    ", one)
		return
	}
	r.line(busy, "    ", "~ "+field.Path+":")
	if len(before)+len(after) > 2 {
		r.lines(before, after)
		return
	}
	r.line(bad, "      ", r.cut("- "+shown(field.Old)))
	r.line(good, "      ", r.cut("+ "+shown(field.New)))
}

// lines writes what differs between two texts, with a line of context on both sides.
func (r *renderer) lines(old, now []string) {
	for _, edit := range editsBetween(old, now) {
		switch edit.sign {
		case '-':
			r.line(bad, "      ", r.cut("- "+edit.line))
		case '+':
			r.line(good, "      ", r.cut("+ "+edit.line))
		default:
			r.line(dim, "      ", r.cut("  "+edit.line))
		}
	}
}

func (r *renderer) cut(line string) string {
	limit := r.width - 6
	if utf8.RuneCountInString(line) <= limit {
		return line
	}
	return string([]rune(line)[:limit-3]) + "..."
}

// readable is the longest line that is not broken at all, however wide the output is.
const readable = 160

// itemsOf are the items of a list, one a line, and nil for all else.
func itemsOf(value json.RawMessage) []string {
	var items []json.RawMessage
	if err := json.Unmarshal(value, &items); err != nil {
		return nil
	}
	lines := make([]string, len(items))
	for i, item := range items {
		lines[i] = string(item)
	}
	return lines
}

// linesOf are the lines of a text that has several, and nil for all else.
func linesOf(value json.RawMessage) []string {
	var text string
	if err := json.Unmarshal(value, &text); err != nil || !strings.Contains(strings.TrimRight(text, "\n"), "\n") {
		return nil
	}
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}

// shown is a value in a line: text without quotes if nobody can take it for something else.
func shown(value json.RawMessage) string {
	var text string
	if err := json.Unmarshal(value, &text); err != nil || text == "" || strings.TrimSpace(text) != text || strings.ContainsAny(text, "\n\"") {
		return string(value)
	}
	if json.Valid([]byte(text)) || strings.Contains(text, " -> ") {
		return string(value)
	}
	return text
}
