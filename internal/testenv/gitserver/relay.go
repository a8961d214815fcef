// SPDX-License-Identifier: Apache-2.0

package gitserver

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
)

// Relay stands before a server and passes on what is said, up to a point.
type Relay struct {
	Address string

	after atomic.Int64 // bytes from the server, after which nothing comes; less than zero for no end
	cut   atomic.Bool  // what then happens: the connection breaks, instead of going silent
}

// NewRelay starts a relay that ends with the test.
func NewRelay(t testing.TB, to string) *Relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	r := &Relay{Address: listener.Addr().String()}
	r.after.Store(-1)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go r.serve(client, to)
		}
	}()
	return r
}

// Stall makes all later connections go silent after so many bytes from the server.
func (r *Relay) Stall(after int64) { r.cut.Store(false); r.after.Store(after) }

// Cut makes all later connections break after so many bytes from the server.
func (r *Relay) Cut(after int64) { r.cut.Store(true); r.after.Store(after) }

// Heal lets later connections be.
func (r *Relay) Heal() { r.after.Store(-1) }

func (r *Relay) serve(client net.Conn, to string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(server, client) // it ends with one of the connections
	}()
	if after := r.after.Load(); after >= 0 {
		_, _ = io.CopyN(client, server, after)
		if !r.cut.Load() {
			<-ended
		}
		return
	}
	_, _ = io.Copy(client, server)
}
