// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/provisioner"
)

// maxFile is the largest file that a provisioner may read, in bytes.
const maxFile = 64 << 20

// process is one that renders.
type process struct {
	options Options
	command *exec.Cmd
	line    *line
	pipes   []io.Closer
	said    *tail
	jobs    int
}

// start starts a process, without a network if the kernel lets us.
func start(options Options) (*process, error) {
	var last error
	for _, alone := range []bool{true, false} {
		p := &process{options: options, said: &tail{}}
		p.command = exec.Command(options.Command[0], options.Command[1:]...) //nolint:gosec,noctx // this very program; it is ended by end
		// It needs nothing that the manager knows.
		p.command.Env = []string{"GOTRACEBACK=none", fmt.Sprintf("%s=%d", memoryEnv, options.Memory)}
		p.command.Stderr = p.said
		p.command.SysProcAttr = attributes(alone)
		p.command.WaitDelay = time.Second
		in, err := p.command.StdoutPipe()
		if err != nil {
			return nil, err
		}
		out, err := p.command.StdinPipe()
		if err != nil {
			return nil, err
		}
		if last = p.command.Start(); last == nil {
			p.line, p.pipes = newLine(in, out), []io.Closer{in, out}
			return p, nil
		}
	}
	return nil, last
}

// end ends the process at once and waits until it is gone.
func (p *process) end() {
	_ = p.command.Process.Kill() // it may have ended
	for _, pipe := range p.pipes {
		_ = pipe.Close()
	}
	_ = p.command.Wait() // how it ended is in its state
}

// do has one job done. An error means that the process is of no use any more.
func (p *process) do(ctx context.Context, todo job, content fs.FS, reader provisioner.Reader) (*outcome, error) {
	stop := context.AfterFunc(ctx, func() { _ = p.command.Process.Kill() })
	defer stop()
	p.jobs++
	p.said.clear() // what libraries said of other content explains nothing, and is nobody else's
	if err := p.line.send(toProcess{Job: &todo}); err != nil {
		return nil, p.before(err)
	}
	for first := true; ; first = false {
		var said fromProcess
		if err := p.line.receive(&said); err != nil {
			if first && p.jobs > 1 {
				return nil, p.before(err)
			}
			return nil, err
		}
		switch {
		case said.Done != nil:
			return said.Done, nil
		case said.Ask == nil:
			return nil, errors.New("it said neither what it wants nor what it did")
		}
		if err := p.line.send(toProcess{Answer: reply(ctx, *said.Ask, content, reader)}); err != nil {
			return nil, err
		}
	}
}

// before tells a process that was gone already from one that the job brought down: the former used no time for it.
func (p *process) before(err error) error {
	if errors.Is(err, os.ErrClosed) || errors.Is(err, io.EOF) || isBrokenPipe(err) {
		if p.said.text() == "" {
			return fmt.Errorf("%w: %w", errEnded, err)
		}
	}
	return err
}

// reply answers what a process asks.
func reply(ctx context.Context, q question, content fs.FS, reader provisioner.Reader) *answer {
	a := &answer{}
	var err error
	switch q.Do {
	case opStat:
		var info fs.FileInfo
		if info, err = fs.Stat(content, q.Path); err == nil {
			a.Entries = []entry{entryOf(info)}
		}
	case opReadDir:
		a.Entries, err = list(content, q.Path)
	case opReadFile:
		a.Data, err = read(content, q.Path)
	case opReadLink:
		var to string
		to, err = fs.ReadLink(content, q.Path)
		a.Data = []byte(to)
	case opGet, opList:
		a.Data, err = readObjects(ctx, q, reader)
	default:
		err = fmt.Errorf("%q is nothing that can be asked", q.Do)
	}
	a.Failed = failureOf(err)
	return a
}

func entryOf(info fs.FileInfo) entry {
	return entry{Name: info.Name(), Size: info.Size(), Mode: info.Mode()}
}

func list(content fs.FS, path string) ([]entry, error) {
	found, err := fs.ReadDir(content, path)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(found))
	for _, one := range found {
		info, err := one.Info()
		if err != nil {
			return nil, err
		}
		entries = append(entries, entryOf(info))
	}
	return entries, nil
}

func read(content fs.FS, path string) ([]byte, error) {
	info, err := fs.Stat(content, path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it has %d bytes, more than %d MiB", info.Size(), maxFile>>20)}
	}
	return fs.ReadFile(content, path)
}

func readObjects(ctx context.Context, q question, reader provisioner.Reader) ([]byte, error) {
	if reader == nil {
		return nil, errors.New("there is no cluster to read")
	}
	kind := schema.GroupVersionKind{Group: q.Group, Version: q.Version, Kind: q.Kind}
	if q.Do == opGet {
		object, err := reader.Get(ctx, kind, q.Name)
		if err != nil {
			return nil, err
		}
		return json.Marshal([]any{object.Object})
	}
	objects, err := reader.List(ctx, kind, q.Name.Namespace)
	if err != nil {
		return nil, err
	}
	all := make([]any, 0, len(objects))
	for _, object := range objects {
		all = append(all, object.Object)
	}
	return json.Marshal(all)
}

// verdict says why a process ended in the middle of a job. What the content would do again is bad input.
func (p *process) verdict(err error) error {
	state, said := p.command.ProcessState, p.said.text()
	code := -1
	if state != nil {
		code = state.ExitCode()
	}
	switch {
	case code == exitCPU:
		return &provisioner.InputError{Reason: fmt.Sprintf("to render it takes more than %s of a processor: look for a loop without end, or split the content", p.options.CPU)}
	case strings.Contains(said, "stack exceeds") || strings.Contains(said, "stack overflow"):
		return &provisioner.InputError{Reason: "to render it takes a stack without end: look for a template that calls itself"}
	case code == exitMemory || strings.Contains(said, "out of memory") || strings.Contains(said, "cannot allocate memory"):
		return &provisioner.InputError{Reason: fmt.Sprintf("to render it takes more than %d MiB of memory: look for a loop without end, or split the content", p.options.Memory>>20)}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	return fmt.Errorf("the process that rendered it ended (%v, %w): %s", state, err, line)
}

// tail keeps the beginning of what a process said before it ended.
type tail struct {
	mu   sync.Mutex
	held []byte
}

// Write keeps at most 4 KiB.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := 4<<10 - len(t.held); room > 0 {
		t.held = append(t.held, data[:min(room, len(data))]...)
	}
	return len(data), nil
}

func (t *tail) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.held)
}
