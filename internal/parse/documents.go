// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"rukpak.io/rukpak/provisioner"
)

// chunk is a part of a file between separators: as a rule one document.
type chunk struct {
	line int // of the first byte, from 1
	data []byte
}

var (
	mark      = []byte("\ufeff") // the byte order mark
	separator = []byte("---")
)

// split cuts a file at its document separators. It takes off byte order marks at the beginning of lines, where joined
// files have them. A chunk begins with its separator if there is something else on that line.
func split(file string, data []byte) ([]chunk, *provisioner.InputError) {
	if err := checkText(file, data); err != nil {
		return nil, err
	}
	var chunks []chunk
	current := chunk{line: 1}
	directives := false // the chunk so far has nothing but comments and directives, which belong to what follows
	for number := 1; len(data) > 0; number++ {
		line := data
		if end := bytes.IndexByte(data, '\n'); end >= 0 {
			line = data[:end+1]
		}
		data = data[len(line):]
		clean := bytes.TrimPrefix(line, mark)
		if isSeparator(clean) && !directives {
			chunks = append(chunks, current)
			current = chunk{line: number}
			if isBare(clean) {
				clean = []byte("\n") // JSON may follow, and does not know separators
			}
		}
		directives = directives && !isSeparator(clean) || bytes.HasPrefix(clean, []byte("%")) && isBlank(current.data)
		current.data = append(current.data, clean...)
		if len(current.data) > MaxDocument {
			return nil, &provisioner.InputError{File: file, Line: current.line, Reason: fmt.Sprintf("the document is larger than %d MiB: split it", MaxDocument>>20)}
		}
	}
	return append(chunks, current), nil
}

func checkText(file string, data []byte) *provisioner.InputError {
	if utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
		return nil
	}
	line := 1
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 || r == 0 {
			break
		}
		if r == '\n' {
			line++
		}
		rest = rest[size:]
	}
	return &provisioner.InputError{File: file, Line: line, Reason: "is not text in UTF-8: save it as such"}
}

// isSeparator reports whether a line begins a document.
func isSeparator(line []byte) bool {
	after, found := bytes.CutPrefix(line, separator)
	return found && (len(after) == 0 || bytes.IndexByte([]byte(" \t\r\n"), after[0]) >= 0)
}

// isBare reports whether a separator has at most a comment on its line.
func isBare(line []byte) bool {
	after := bytes.TrimSpace(line[len(separator):])
	return len(after) == 0 || after[0] == '#'
}

// isBlank reports whether there are only comments and white space.
func isBlank(data []byte) bool {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// Document is a value with where it stands.
type Document struct {
	Value any // as encoding/json gives it to unstructured: int64 or float64 for numbers
	Line  int // from 1

	items []int // lines of the elements of a top-level field items
	// repeated are lines with a key that was set before to the same value, which is no fault but no good either.
	repeated []int
	expanded int // bytes, about, that aliases have added
}

// File gives the documents of a YAML or JSON file. Faults are what is wrong with it; documents before them are given too. The
// error is that of ctx.
func File(ctx context.Context, name string, data []byte) ([]Document, []*provisioner.InputError, error) {
	var docs []Document
	left := MaxValues
	faults, err := eachDocument(ctx, name, data, &left, func(doc Document) error {
		docs = append(docs, doc)
		return nil
	})
	return docs, faults, err
}

// eachDocument calls use with each document, until it fails. left is how many values there may yet be.
func eachDocument(ctx context.Context, name string, data []byte, left *int, use func(Document) error) ([]*provisioner.InputError, error) {
	chunks, fault := split(name, data)
	if fault != nil {
		return []*provisioner.InputError{fault}, nil
	}
	var all []*provisioner.InputError
	for _, chunk := range chunks {
		if err := ctx.Err(); err != nil {
			return all, err
		}
		if *left -= structure(chunk.data); *left < 0 {
			return append(all, &provisioner.InputError{File: name, Line: chunk.line, Reason: fmt.Sprintf("the files so far have more than %d values: split the bundle", MaxValues)}), nil
		}
		docs, faults := readChunk(name, chunk)
		for _, doc := range docs {
			*left -= doc.expanded / nodeSize
		}
		all = append(all, faults...)
		for _, doc := range docs {
			if err := use(doc); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// readChunk gives the documents in a chunk: JSON values one after another, or YAML.
func readChunk(file string, c chunk) ([]Document, []*provisioner.InputError) {
	if isBlank(c.data) {
		return nil, nil
	}
	if structure(c.data) > MaxStructure {
		return nil, []*provisioner.InputError{{File: file, Line: c.line, Reason: fmt.Sprintf("the document has more than %d values: split it", MaxStructure)}}
	}
	if bytes.TrimSpace(c.data)[0] != '{' {
		return readYAML(file, c)
	}
	docs, faults := readJSON(file, c)
	if len(faults) > 0 && isYAMLFile(file) {
		return readYAML(file, c) // YAML may have braces too
	}
	return docs, faults
}

func isYAMLFile(file string) bool {
	return !bytes.HasSuffix(bytes.ToLower([]byte(file)), []byte(".json"))
}

// structure is no less than about the number of values that a text can hold.
func structure(data []byte) int {
	count := 0
	for _, c := range data {
		switch c {
		case '\n', ',', ':', '[', '{', '-', '?':
			count++
		}
	}
	return count
}
