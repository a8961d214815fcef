// SPDX-License-Identifier: Apache-2.0

// Package tomlfile reads TOML as a tree that keeps the order of keys and their
// lines: registry configuration of containerd is about order, and errors in any
// have to name file and line. It serves internal/registry, in the first step of
// RukPak's flow.
package tomlfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Kind of a value.
type Kind string

// The kinds that registry configuration has. Others keep their text.
const (
	String Kind = "string"
	Bool   Kind = "boolean"
	Array  Kind = "array"
	Object Kind = "table"
	Other  Kind = "other"
)

// Value is a value and where it stands.
type Value struct {
	Line  int
	Kind  Kind
	Text  string // of String, Bool and Other
	Items []*Value
	Table *Table
}

// Table is keys and values in the order in which they stand.
type Table struct {
	Line int
	Keys []Key
}

// Key is one key of a table.
type Key struct {
	Name  string
	Line  int
	Value *Value
}

// Error says what is wrong with a file, and where.
type Error struct {
	File    string
	Line    int // 0 if it is about the whole file
	Problem string
}

// Error names file and line.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Problem)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
}

// Get gives the value of a key, or nil.
func (t *Table) Get(name string) *Value {
	for i := range t.Keys {
		if t.Keys[i].Name == name {
			return t.Keys[i].Value
		}
	}
	return nil
}

// Parse reads a file. Its error is an *Error.
func Parse(file string, data []byte) (*Table, error) {
	var whole map[string]any
	if err := toml.Unmarshal(data, &whole); err != nil { // all rules of TOML, such as those on keys that stand twice
		return nil, located(file, err)
	}
	parser := unstable.Parser{}
	parser.Reset(data)
	b := builder{parser: &parser, file: file, root: &Table{Line: 1}}
	b.current = b.root
	for parser.NextExpression() {
		if err := b.add(parser.Expression()); err != nil {
			return nil, err
		}
	}
	if err := parser.Error(); err != nil {
		return nil, located(file, err)
	}
	return b.root, nil
}

func located(file string, err error) error {
	problem := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "toml: "), "unstable: ")
	found := &Error{File: file, Problem: "it is not TOML: " + strings.Join(strings.Fields(problem), " ")}
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		found.Line, _ = e.Position()
	}
	return found
}

type builder struct {
	parser  *unstable.Parser
	file    string
	root    *Table
	current *Table
}

func (b *builder) line(r unstable.Range) int { return b.parser.Shape(r).Start.Line }

func (b *builder) add(node *unstable.Node) error {
	switch node.Kind {
	case unstable.Table, unstable.ArrayTable:
		return b.header(node)
	case unstable.KeyValue:
		return b.keyValue(b.current, node)
	}
	return nil
}

// header begins a table.
func (b *builder) header(node *unstable.Node) error {
	at := b.root
	keys := node.Key()
	for keys.Next() {
		key := keys.Node()
		name, line := string(key.Data), b.line(key.Raw)
		if node.Kind == unstable.ArrayTable && keys.IsLast() {
			at = appendTable(at, name, line)
			if at == nil {
				return b.fail(line, name)
			}
			break
		}
		if at = descend(at, name, line); at == nil {
			return b.fail(line, name)
		}
		if keys.IsLast() {
			at.Line = line
		}
	}
	b.current = at
	return nil
}

func (b *builder) fail(line int, name string) error {
	return &Error{File: b.file, Line: line, Problem: fmt.Sprintf("%q is no table", name)}
}

// descend gives the table of a key, that of the last element of an array, or a
// new one; nil if the key has another kind of value.
func descend(at *Table, name string, line int) *Table {
	value := at.Get(name)
	switch {
	case value == nil:
		table := &Table{Line: line}
		at.Keys = append(at.Keys, Key{Name: name, Line: line, Value: &Value{Line: line, Kind: Object, Table: table}})
		return table
	case value.Kind == Object:
		return value.Table
	case value.Kind == Array && len(value.Items) > 0:
		return value.Items[len(value.Items)-1].Table
	}
	return nil
}

// appendTable adds a table to an array of tables.
func appendTable(at *Table, name string, line int) *Table {
	value := at.Get(name)
	if value == nil {
		value = &Value{Line: line, Kind: Array}
		at.Keys = append(at.Keys, Key{Name: name, Line: line, Value: value})
	}
	if value.Kind != Array {
		return nil
	}
	table := &Table{Line: line}
	value.Items = append(value.Items, &Value{Line: line, Kind: Object, Table: table})
	return table
}

func (b *builder) keyValue(at *Table, node *unstable.Node) error {
	keys := node.Key()
	for keys.Next() {
		key := keys.Node()
		name, line := string(key.Data), b.line(key.Raw)
		if !keys.IsLast() {
			if at = descend(at, name, line); at == nil {
				return b.fail(line, name)
			}
			continue
		}
		value, err := b.value(node.Value(), line)
		if err != nil {
			return err
		}
		at.Keys = append(at.Keys, Key{Name: name, Line: line, Value: value})
	}
	return nil
}

func (b *builder) value(node *unstable.Node, line int) (*Value, error) {
	if node.Raw.Length > 0 {
		line = b.line(node.Raw)
	}
	v := &Value{Line: line, Text: string(node.Data)}
	switch node.Kind {
	case unstable.String:
		v.Kind = String
	case unstable.Bool:
		v.Kind = Bool
	case unstable.Array:
		v.Kind, v.Text = Array, ""
		items := node.Children()
		for items.Next() {
			item, err := b.value(items.Node(), line)
			if err != nil {
				return nil, err
			}
			v.Items = append(v.Items, item)
		}
	case unstable.InlineTable:
		v.Kind, v.Text, v.Table = Object, "", &Table{Line: line}
		pairs := node.Children()
		for pairs.Next() {
			if err := b.keyValue(v.Table, pairs.Node()); err != nil {
				return nil, err
			}
		}
	default:
		v.Kind = Other
	}
	return v, nil
}
