// SPDX-License-Identifier: Apache-2.0

// Package sandbox runs provisioners in processes of their own. Templates and overlays are programs that strangers wrote: a
// process can be ended when one of them does not end, takes more memory than it may, or brings the library down, and the
// manager goes on. The process reaches no network, no cluster and, where the kernel has Landlock, no files: what it reads
// it asks the manager for.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it stands
// around Render: what Wrap returns is a provisioner as any other.
package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"time"

	"rukpak.io/rukpak/provisioner"
)

// Argument is the first one of the program when it is to be a process of a pool: it calls Serve then and nothing else.
const Argument = "rukpak-render"

// Options of a Pool. The zero value of each has a default.
type Options struct {
	// Command starts the program with Argument; the default is this very program.
	Command []string
	// Processes is the most that run at once. The default is the number of processors, and at least 2.
	Processes int
	// Memory is the most that one process may have, in bytes. The default is 384 MiB, of which the program itself takes some 100.
	Memory int64
	// CPU is the most that one rendering may take of a processor. The default is 30 seconds.
	CPU time.Duration
	// Patience is the most that one rendering may take by the clock, with what it waits for. The default is 5 minutes.
	Patience time.Duration
}

// Pool keeps processes. They are started when they are needed, and used again.
type Pool struct {
	options Options
	places  chan *process // nil for one that is not started
}

// New makes a pool. Nothing is started yet.
func New(options Options) *Pool {
	if len(options.Command) == 0 {
		options.Command = []string{"/proc/self/exe", Argument}
	}
	if options.Processes == 0 {
		options.Processes = max(2, runtime.GOMAXPROCS(0))
	}
	if options.Memory == 0 {
		options.Memory = 384 << 20
	}
	if options.CPU == 0 {
		options.CPU = 30 * time.Second
	}
	if options.Patience == 0 {
		options.Patience = 5 * time.Minute
	}
	p := &Pool{options: options, places: make(chan *process, options.Processes)}
	for range options.Processes {
		p.places <- nil
	}
	return p
}

// Close ends the processes once they are idle. The pool cannot be used after it.
func (p *Pool) Close() {
	for range p.options.Processes {
		if held := <-p.places; held != nil {
			held.end()
		}
	}
}

// Wrap gives a provisioner that renders in the pool. The processes serve one with the same ID.
func (p *Pool) Wrap(inner provisioner.Provisioner) provisioner.Provisioner { return wrapped{p, inner} }

type wrapped struct {
	pool  *Pool
	inner provisioner.Provisioner
}

var _ provisioner.Placed = wrapped{}

// ID is that of the provisioner.
func (w wrapped) ID() string { return w.inner.ID() }

// UsesOrigins is that of the provisioner.
func (w wrapped) UsesOrigins(parameters, config json.RawMessage) bool {
	placed, ok := w.inner.(provisioner.Placed)
	return ok && placed.UsesOrigins(parameters, config)
}

// Validate checks parameters here. Content is not looked at: Render checks it as well, which takes one job for both.
func (w wrapped) Validate(ctx context.Context, content fs.FS, parameters json.RawMessage) error {
	if content != nil {
		return ctx.Err()
	}
	return w.inner.Validate(ctx, nil, parameters)
}

// Render checks the parameters and the content, and renders, in the pool.
func (w wrapped) Render(ctx context.Context, req provisioner.Request) (provisioner.Result, error) {
	return w.pool.run(ctx, job{ID: w.ID(), Request: request{
		Instance: req.Instance, Parameters: req.Parameters, Config: req.Config, Revision: req.Revision, Upgrade: req.Upgrade,
		Origins: req.Origins, Cluster: req.Cluster, Reads: req.Reader != nil,
	}}, req.Content, req.Reader)
}

// errEnded is what a process that had ended before it was asked gives: another one can be asked.
var errEnded = errors.New("the process had ended before")

// run does one job in a free process. One that had died while idle says nothing about the job.
func (p *Pool) run(ctx context.Context, todo job, content fs.FS, reader provisioner.Reader) (provisioner.Result, error) {
	var held *process
	select {
	case held = <-p.places:
	case <-ctx.Done():
		return provisioner.Result{}, fmt.Errorf("wait for a process that renders: %w", ctx.Err())
	}
	defer func() { p.places <- held }()
	outer := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, p.options.Patience, fmt.Errorf("it took longer than %s", p.options.Patience))
	defer cancel()
	todo.CPU = p.options.CPU
	for {
		var err error
		fresh := held == nil
		if fresh {
			if held, err = start(p.options); err != nil {
				return provisioner.Result{}, fmt.Errorf("start a process that renders: %w", err)
			}
		}
		done, err := held.do(ctx, todo, content, reader)
		if err == nil {
			if done.Spent { // it grew: the next job begins with a small one
				held.end()
				held = nil
			}
			return done.result()
		}
		held.end()
		why := held
		held = nil
		switch {
		case outer.Err() != nil:
			return provisioner.Result{}, outer.Err()
		case ctx.Err() != nil:
			return provisioner.Result{}, fmt.Errorf("the rendering was ended: %w", context.Cause(ctx))
		case errors.Is(err, errEnded) && !fresh:
			continue
		}
		return provisioner.Result{}, why.verdict(err)
	}
}
