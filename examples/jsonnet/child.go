// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/google/go-jsonnet"
	"github.com/google/go-jsonnet/ast"
)

// An evaluation cannot be stopped, and may take all memory, so each has a process of its own, which has no file but by
// asking its parent: both speak JSON over its standard input and output.

const (
	childEnv  = "JSONNET_EXAMPLE_CHILD"
	maxMemory = 1 << 30 // of the child, where the system can hold it to that
	maxStack  = 500     // calls within one another
)

// task is the first that the child is told.
type task struct {
	Entry        string
	LibraryPaths []string
	Variables    map[string]any
	Arguments    map[string]json.RawMessage
}

// message is what the child says: that it wants a file, or what came of the task.
type message struct {
	Want   string          `json:",omitempty"`
	Output json.RawMessage `json:",omitempty"`
	Fault  *fault          `json:",omitempty"`
}

// answer is what the child is told of a file.
type answer struct {
	Data   []byte
	Absent bool
}

type fault struct {
	File   string
	Line   int
	Reason string
}

func evaluate(in io.Reader, out io.Writer) error {
	limitMemory(maxMemory)
	parent := &parent{in: json.NewDecoder(in), out: json.NewEncoder(out), files: map[string]*jsonnet.Contents{}}
	var todo task
	if err := parent.in.Decode(&todo); err != nil {
		return err
	}
	parent.libraries = todo.LibraryPaths
	vm := jsonnet.MakeVM()
	vm.MaxStack = maxStack
	vm.SetTraceOut(io.Discard)
	vm.Importer(parent)
	formatter := &formatter{ErrorFormatter: vm.ErrorFormatter}
	vm.ErrorFormatter = formatter
	for name, value := range todo.Variables {
		code, err := json.Marshal(value)
		if err != nil {
			return err
		}
		vm.ExtCode(name, string(code))
	}
	for name, value := range todo.Arguments {
		vm.TLACode(name, string(value))
	}
	output, err := vm.EvaluateFile(todo.Entry)
	if err != nil {
		return parent.out.Encode(message{Fault: formatter.fault(todo.Entry)})
	}
	return parent.out.Encode(message{Output: json.RawMessage(output)})
}

// parent imports by asking for files.
type parent struct {
	in        *json.Decoder
	out       *json.Encoder
	libraries []string
	files     map[string]*jsonnet.Contents // nil for one that is not there
}

// Import looks beside the file that imports, and then in the folders of libraries. Nothing leads out of the content.
func (p *parent) Import(from, name string) (jsonnet.Contents, string, error) {
	tries := []string{path.Join(path.Dir(from), name)}
	for _, folder := range p.libraries {
		tries = append(tries, path.Join(folder, name))
	}
	for _, try := range tries {
		if path.IsAbs(name) || !fs.ValidPath(try) {
			continue
		}
		found, err := p.file(try)
		if err != nil {
			return jsonnet.Contents{}, "", err
		}
		if found != nil {
			return *found, try, nil
		}
	}
	return jsonnet.Contents{}, "", fmt.Errorf("couldn't open import %q: it is not in the content; looked for %s", name, strings.Join(tries, ", "))
}

func (p *parent) file(name string) (*jsonnet.Contents, error) {
	if found, known := p.files[name]; known {
		return found, nil
	}
	var got answer
	if err := errors.Join(p.out.Encode(message{Want: name}), p.in.Decode(&got)); err != nil {
		return nil, err
	}
	p.files[name] = nil
	if !got.Absent {
		contents := jsonnet.MakeContentsRaw(got.Data)
		p.files[name] = &contents
	}
	return p.files[name], nil
}

// formatter remembers the error that it formats, which has more than its text.
type formatter struct {
	jsonnet.ErrorFormatter
	err error
}

// Format remembers.
func (f *formatter) Format(err error) string {
	f.err = err
	return f.ErrorFormatter.Format(err)
}

// fault names the file and the line of what went wrong.
func (f *formatter) fault(entry string) *fault {
	said := &fault{File: entry, Reason: f.err.Error()}
	var failed jsonnet.RuntimeError
	var located interface{ Loc() ast.LocationRange }
	switch {
	case errors.As(f.err, &failed):
		said.Reason = failed.Msg
		if isOfArguments(failed.Msg) {
			said.File, said.Reason = "config", failed.Msg+"; its fields are the arguments of "+entry
			return said
		}
		for _, frame := range slices.Backward(failed.StackTrace) { // the innermost is the last
			if frame.Loc.File != nil && fs.ValidPath(frame.Loc.FileName) && frame.Loc.Begin.Line > 0 {
				said.File, said.Line = frame.Loc.FileName, frame.Loc.Begin.Line
				break
			}
		}
	case errors.As(f.err, &located):
		if place := located.Loc(); place.File != nil && fs.ValidPath(place.FileName) {
			said.File, said.Line = place.FileName, place.Begin.Line
			said.Reason = strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(said.Reason, place.String())), ": ")
		}
	}
	said.Reason = strings.Join(strings.Fields(said.Reason), " ")
	return said
}

// isOfArguments tells errors of calling the entry, which the configuration gives its arguments.
func isOfArguments(text string) bool {
	return strings.HasPrefix(text, "function has no parameter") || strings.HasPrefix(text, "Missing argument")
}
