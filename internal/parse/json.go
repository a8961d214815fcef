// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"rukpak.io/rukpak/provisioner"
)

// readJSON gives the values of a chunk up to the first fault. encoding/json alone would take the last of equal keys
// and tell no line.
func readJSON(file string, c chunk) ([]Document, []*provisioner.InputError) {
	r := &jsonReader{data: c.data, first: c.line, line: c.line, decoder: json.NewDecoder(bytes.NewReader(c.data))}
	r.decoder.UseNumber()
	var docs []Document
	for {
		line := r.next()
		if isBlank(c.data[r.offset:]) {
			return docs, nil
		}
		r.items, r.repeated = nil, nil
		value, err := r.value(0)
		if err != nil {
			line, reason := r.explain(err)
			return docs, []*provisioner.InputError{{File: file, Line: line, Reason: reason}}
		}
		docs = append(docs, Document{Value: value, Line: line, items: r.items, repeated: r.repeated})
	}
}

type jsonReader struct {
	data     []byte
	decoder  *json.Decoder
	offset   int // up to which lines are counted
	first    int // line of the first byte
	line     int // at offset
	items    []int
	repeated []int
}

// next is the line of the next token.
func (r *jsonReader) next() int {
	end := int(r.decoder.InputOffset())
	for end < len(r.data) && bytes.IndexByte([]byte(" \t\r\n,:"), r.data[end]) >= 0 {
		end++
	}
	return r.countTo(end)
}

func (r *jsonReader) countTo(end int) int {
	if end > r.offset {
		r.line += bytes.Count(r.data[r.offset:end], []byte("\n"))
		r.offset = end
	}
	return r.line
}

// explain gives the line of an error and what it means.
func (r *jsonReader) explain(err error) (line int, reason string) {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return r.countTo(min(int(syntax.Offset), len(r.data))), "is not JSON: " + syntax.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return r.first + bytes.Count(bytes.TrimSpace(r.data), []byte("\n")), "is not JSON: it ends early"
	}
	return r.line, err.Error()
}

func (r *jsonReader) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("is nested more than %d levels deep", maxDepth)
	}
	r.next()
	token, err := r.decoder.Token()
	if err != nil {
		return nil, err
	}
	return r.after(token, depth)
}

// after is the value that begins with token.
func (r *jsonReader) after(token json.Token, depth int) (any, error) {
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return r.object(depth)
		}
		return r.array(depth, nil)
	case json.Number:
		return jsonNumber(token)
	}
	return token, nil
}

func (r *jsonReader) object(depth int) (any, error) {
	fields := map[string]any{}
	for r.decoder.More() {
		r.next()
		token, err := r.decoder.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string)
		line := r.line
		value, err := r.field(key, depth)
		if err != nil {
			return nil, err
		}
		if before, twice := fields[key]; twice {
			if !reflect.DeepEqual(before, value) {
				return nil, fmt.Errorf("the key %q is set twice, to different values: remove one", key)
			}
			r.repeated = append(r.repeated, line)
		}
		fields[key] = value
	}
	_, err := r.decoder.Token()
	return fields, err
}

func (r *jsonReader) field(key string, depth int) (any, error) {
	if depth > 0 || key != "items" {
		return r.value(depth + 1)
	}
	token, err := r.decoder.Token()
	if err != nil {
		return nil, err
	}
	if token == json.Delim('[') {
		return r.array(depth+1, &r.items)
	}
	return r.after(token, depth+1)
}

// array reads the elements and, unless lines is nil, adds their lines to it.
func (r *jsonReader) array(depth int, lines *[]int) (any, error) {
	list := []any{}
	for r.decoder.More() {
		if line := r.next(); lines != nil {
			*lines = append(*lines, line)
		}
		value, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err := r.decoder.Token()
	return list, err
}
