// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"

	"rukpak.io/rukpak/provisioner"
)

// memoryEnv tells a process how much memory it may have, in bytes.
const memoryEnv = "RUKPAK_RENDER_MEMORY"

// How a process ends that goes beyond what it may.
const (
	exitCPU    = 77
	exitMemory = 78
)

// grown is the memory in use after which a process is not used again, as a part of what it may have.
const grown = 0.5

// Serve is what a process of a pool does: jobs by one of these provisioners, until nobody wants any. It returns the exit
// code of the program.
func Serve(provisioners ...provisioner.Provisioner) int {
	limit, err := strconv.ParseInt(os.Getenv(memoryEnv), 10, 64)
	if err != nil || limit <= 0 {
		fmt.Fprintf(os.Stderr, "this is for the manager to start: %s is not set\n", memoryEnv)
		return 2
	}
	in, out := os.Stdin, os.Stdout
	os.Stdin, os.Stdout = nil, os.Stderr // what a library prints must not be taken for a message
	if err := confine(limit); err != nil {
		fmt.Fprintln(os.Stderr, "limit the process:", err)
		return 2
	}
	served := map[string]provisioner.Provisioner{}
	for _, one := range provisioners {
		served[one.ID()] = one
	}
	s := &server{line: newLine(in, out), served: served, limit: limit}
	for {
		if err := s.next(); err != nil {
			if errors.Is(err, io.EOF) {
				return 0
			}
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
}

// confine takes away what rendering does not need.
func confine(limit int64) error {
	debug.SetMemoryLimit(limit * 3 / 4) // the collector tries harder before the kernel says no
	debug.SetMaxStack(64 << 20)
	http.DefaultTransport = nothing{}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errNetwork }}
	return confineByKernel(limit)
}

var errNetwork = errors.New("nothing that renders content may use the network")

// nothing is a transport that reaches nobody.
type nothing struct{}

// RoundTrip fails.
func (nothing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNetwork }

type server struct {
	line   *line
	served map[string]provisioner.Provisioner
	limit  int64
}

// next does one job.
func (s *server) next() error {
	var said toProcess
	if err := s.line.receive(&said); err != nil {
		return err
	}
	if said.Job == nil {
		return errors.New("what was said is no job")
	}
	stop := boundCPU(said.Job.CPU)
	result, err := s.do(*said.Job)
	stop()
	done, err := outcomeOf(result, err)
	if err != nil {
		done = &outcome{Other: err.Error()}
	}
	done.Spent = s.spent()
	return s.line.send(fromProcess{Done: done})
}

func (s *server) spent() bool {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return float64(now.Sys-now.HeapReleased) > grown*float64(s.limit)
}

func (s *server) do(todo job) (result provisioner.Result, err error) {
	one := s.served[todo.ID]
	if one == nil {
		return result, fmt.Errorf("this process does not serve the provisioner %q", todo.ID)
	}
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the provisioner %q panicked: %v", todo.ID, cause)
		}
	}()
	asked := &asker{line: s.line}
	ctx := context.Background() // whoever does not want the answer any more ends the process
	content := tree{asked}
	if err := one.Validate(ctx, content, todo.Request.Parameters); err != nil {
		return result, err
	}
	req := provisioner.Request{
		Instance: todo.Request.Instance, Content: content, Parameters: todo.Request.Parameters, Config: todo.Request.Config,
		Revision: todo.Request.Revision, Upgrade: todo.Request.Upgrade, Origins: todo.Request.Origins, Cluster: todo.Request.Cluster,
	}
	if todo.Request.Reads {
		req.Reader = cluster{asked}
	}
	return one.Render(ctx, req)
}
