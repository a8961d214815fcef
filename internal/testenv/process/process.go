// SPDX-License-Identifier: Apache-2.0

// Package process runs the servers of a test control plane as children that never outlive their parent. It
// belongs to testenv, beside RukPak's flow.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Process is a child that was started. It is safe for use by several goroutines.
type Process struct {
	name    string
	log     string
	process *os.Process
	done    chan struct{}
	err     error // how it ended; written before done is closed
}

// Spec says what to start.
type Spec struct {
	Name string   // for messages, and for the file that takes the output
	Path string   // of the program
	Args []string // without the program's name
	Env  []string // added to this process's environment, "KEY=value"
	Dir  string   // working directory; takes the output as <Name>.log, appended over restarts
}

// Start starts the child and returns as soon as it runs. The child is killed by the kernel when this process ends
// in any way (on Linux).
func Start(spec Spec) (*Process, error) {
	log := filepath.Join(spec.Dir, spec.Name+".log")
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	command := exec.Command(spec.Path, spec.Args...)
	command.Dir = spec.Dir
	command.Env = append(os.Environ(), spec.Env...)
	command.Stdout, command.Stderr = output, output
	dieWithParent(command)

	started := make(chan error)
	child := &Process{name: spec.Name, log: log, done: make(chan struct{})}
	go func() {
		// The kernel binds a child's death to that of the thread that started it, so this thread has to last.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = output.Close() }()
		err := command.Start()
		child.process = command.Process
		started <- err
		if err != nil {
			return
		}
		child.err = command.Wait()
		close(child.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return child, nil
}

// PID returns the id of the child.
func (p *Process) PID() int { return p.process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err tells, after Done, how the child ended: its exit status and the last lines that it wrote.
func (p *Process) Err() error {
	return fmt.Errorf("%s ended (%w); it said last:\n%s", p.name, exitReason(p.err), p.Tail(12))
}

func exitReason(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// Stop asks the child to end, kills it when it has not after grace (at once with 0), and returns when it is gone.
func (p *Process) Stop(grace time.Duration) {
	if grace > 0 {
		_ = p.process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
			return
		case <-time.After(grace):
		}
	}
	_ = p.process.Kill()
	<-p.done
}

// Tail returns at most the last lines of what the child wrote.
func (p *Process) Tail(lines int) string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
