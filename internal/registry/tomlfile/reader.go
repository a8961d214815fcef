// SPDX-License-Identifier: Apache-2.0

package tomlfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"rukpak.io/rukpak/internal/spelling"
)

// Reader takes values out of a tree and keeps what is wrong with them, so that
// one reading names all faults of a file.
type Reader struct {
	File   string
	Notes  []Note
	faults []error
}

// Fail notes a fault.
func (r *Reader) Fail(line int, format string, args ...any) {
	r.faults = append(r.faults, &Error{File: r.File, Line: line, Problem: fmt.Sprintf(format, args...)})
}

// Err gives all faults, joined.
func (r *Reader) Err() error { return errors.Join(r.faults...) }

// At says where a line of the file is.
func (r *Reader) At(line int) string { return fmt.Sprintf("%s:%d", r.File, line) }

// Note is something in a file that is passed over.
type Note struct {
	Line int
	Text string
	Rule string // the From of the rule that it is about, if a reader says so
}

// Note notes something that is passed over.
func (r *Reader) Note(line int, format string, args ...any) {
	r.Notes = append(r.Notes, Note{Line: line, Text: fmt.Sprintf(format, args...)})
}

// Known notes keys that are not among the known ones. They are no fault, for the
// tools whose files these are pass over them too.
func (r *Reader) Known(t *Table, names ...string) {
	for _, key := range t.Keys {
		if !slices.Contains(names, key.Name) {
			meant := ""
			if near := spelling.Nearest(key.Name, names); near != "" {
				meant = fmt.Sprintf(" (did you mean %s?)", near)
			}
			r.Note(key.Line, "the key %q is not known and has no effect%s; known are %s", key.Name, meant, strings.Join(names, ", "))
		}
	}
}

// About says of the notes from the given one on which rule they are about.
func (r *Reader) About(rule string, from int) {
	for i := from; i < len(r.Notes); i++ {
		r.Notes[i].Rule = rule
	}
}

// String gives a text; "" if there is none.
func (r *Reader) String(t *Table, name string) (text string, line int) {
	v := t.Get(name)
	if v == nil {
		return "", t.Line
	}
	if v.Kind != String {
		r.wrong(v, name, String)
		return "", v.Line
	}
	return v.Text, v.Line
}

// Bool gives a truth value; set is false if there is none.
func (r *Reader) Bool(t *Table, name string) (value, set bool) {
	v := t.Get(name)
	if v == nil {
		return false, false
	}
	if v.Kind != Bool {
		r.wrong(v, name, Bool)
		return false, false
	}
	return v.Text == "true", true
}

// Strings gives a list of texts.
func (r *Reader) Strings(t *Table, name string) []string {
	v := t.Get(name)
	if v == nil {
		return nil
	}
	if v.Kind != Array {
		r.wrong(v, name, Array)
		return nil
	}
	return r.texts(v, name)
}

// StringOrStrings gives a text, or a list of them.
func (r *Reader) StringOrStrings(v *Value, name string) []string {
	switch v.Kind {
	case String:
		return []string{v.Text}
	case Array:
		return r.texts(v, name)
	}
	r.Fail(v.Line, "%s is of the kind %s; it must be a string or an array of strings", name, v.Kind)
	return nil
}

func (r *Reader) texts(v *Value, name string) []string {
	list := []string{}
	for _, item := range v.Items {
		if item.Kind != String {
			r.wrong(item, "an element of "+name, String)
			continue
		}
		list = append(list, item.Text)
	}
	return list
}

// Tables gives the tables of an array.
func (r *Reader) Tables(t *Table, name string) []*Table {
	v := t.Get(name)
	if v == nil {
		return nil
	}
	if v.Kind != Array {
		r.wrong(v, name, Array)
		return nil
	}
	var list []*Table
	for _, item := range v.Items {
		if item.Kind != Object {
			r.wrong(item, "an element of "+name, Object)
			continue
		}
		list = append(list, item.Table)
	}
	return list
}

// Table gives a table, or nil.
func (r *Reader) Table(t *Table, name string) *Table {
	v := t.Get(name)
	if v == nil {
		return nil
	}
	if v.Kind != Object {
		r.wrong(v, name, Object)
		return nil
	}
	return v.Table
}

func (r *Reader) wrong(v *Value, name string, want Kind) {
	r.Fail(v.Line, "%s is of the kind %s; it must be of the kind %s", name, v.Kind, want)
}

// Quote makes a TOML string. The escapes of JSON are among those of TOML.
func Quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return `""` // a string can always be marshalled
	}
	return strings.ReplaceAll(string(quoted), "\x7f", `\u007f`) // which JSON lets stand
}
