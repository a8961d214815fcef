// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"rukpak.io/rukpak/provisioner"
)

const (
	maxFile   = 16 << 20 // bytes of one file that is imported
	maxOutput = 24 << 20 // bytes of all that the child says
	maxLog    = 4 << 10
)

// run has a task done by a child, and gives it the files that it asks for.
func run(ctx context.Context, content fs.FS, todo task) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program)
	command.Env = []string{childEnv + "=1", "GOMAXPROCS=1", "GOTRACEBACK=none"}
	log := &head{}
	command.Stderr = log
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the evaluation: %w", err)
	}
	output, said := serve(content, todo, in, out)
	_ = in.Close()
	if said != nil {
		_ = command.Process.Kill() // it may wait for a file that it never gets
	}
	ended := command.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case provisioner.IsInputError(said) || isOf(said):
		return nil, said
	case said != nil || ended != nil:
		// Nothing else can make it end like that. Too deep a recursion that Jsonnet does not count ends the same way.
		return nil, &provisioner.InputError{File: todo.Entry, Reason: fmt.Sprintf("its evaluation needs more than %d MiB of memory, or broke down: %s", maxMemory>>20, log)}
	}
	return output, nil
}

// contentError is one of reading the content.
type contentError struct{ error }

func (e contentError) Unwrap() error { return e.error }

func isOf(err error) bool {
	_, is := errors.AsType[contentError](err)
	return is
}

func serve(content fs.FS, todo task, in io.Writer, out io.Reader) ([]byte, error) {
	to, from := json.NewEncoder(in), json.NewDecoder(io.LimitReader(out, maxOutput))
	if err := to.Encode(todo); err != nil {
		return nil, err
	}
	for {
		var said message
		if err := from.Decode(&said); err != nil {
			return nil, err
		}
		switch {
		case said.Fault != nil:
			return nil, &provisioner.InputError{File: said.Fault.File, Line: said.Fault.Line, Reason: said.Fault.Reason}
		case said.Want == "":
			return said.Output, nil
		}
		got, err := read(content, said.Want)
		if err != nil {
			return nil, err
		}
		if err := to.Encode(got); err != nil {
			return nil, err
		}
	}
}

func read(content fs.FS, name string) (answer, error) {
	info, err := fs.Stat(content, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) || err == nil && info.IsDir() {
		return answer{Absent: true}, nil
	}
	if err != nil {
		return answer{}, contentError{err}
	}
	if info.Size() > maxFile {
		return answer{}, &provisioner.InputError{File: name, Reason: fmt.Sprintf("is larger than %d MiB, and imported", maxFile>>20)}
	}
	data, err := fs.ReadFile(content, name)
	if err != nil {
		return answer{}, contentError{err}
	}
	return answer{Data: data}, nil
}

// head keeps the beginning of what is written to it.
type head struct{ bytes.Buffer }

// Write never fails.
func (h *head) Write(p []byte) (int, error) {
	if room := maxLog - h.Len(); room > 0 {
		h.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// String is its first line.
func (h *head) String() string {
	first, _, _ := strings.Cut(h.Buffer.String(), "\n")
	return first
}
