// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"rukpak.io/rukpak/internal/testenv/process"
)

const (
	readyTime  = 3 * time.Minute       // for one server on a machine that is busy with other tests
	readyPause = 50 * time.Millisecond // between two looks
	stopGrace  = 3 * time.Second       // for requests under way; open watches would make it wait for ever
	probeTime  = 5 * time.Second       // for one look
)

var errPortTaken = errors.New("the port was taken by another program")

// url is where the API server listens.
func (e *Env) url() string { return "https://" + e.apiPort.Address() }

// StartAPIServer starts kube-apiserver and waits until it is ready. After StopAPIServer it comes back at the same
// address, with the same data and credentials. The controllers, the scheduler and kwok are started anew with it: left
// alone, they would wait up to a minute before they tried to reach it again.
func (e *Env) StartAPIServer(ctx context.Context) error {
	if err := e.startAPIServer(ctx); err != nil || len(e.players) == 0 {
		return err
	}
	for _, player := range e.players {
		player.Stop(0)
	}
	if err := e.startPlayers(); err != nil {
		return err
	}
	return e.awaitControllers(ctx)
}

func (e *Env) startAPIServer(ctx context.Context) error {
	if e.apiServer != nil {
		return errors.New("the API server runs already")
	}
	server, err := process.Start(e.apiServerSpec())
	if err != nil {
		return err
	}
	e.apiServer = server
	return e.await(ctx, "API server", server, e.ready())
}

// StopAPIServer ends kube-apiserver as an upgrade of it would: connections break, requests under way may finish.
// The data stays.
func (e *Env) StopAPIServer() {
	if e.apiServer != nil {
		e.apiServer.Stop(stopGrace)
		e.apiServer = nil
	}
}

// KillAPIServer ends kube-apiserver at once, with whatever it was doing.
func (e *Env) KillAPIServer() {
	if e.apiServer != nil {
		e.apiServer.Stop(0)
		e.apiServer = nil
	}
}

// ready returns a look at /readyz, with connections of its own so that none of an earlier server is reused.
func (e *Env) ready() func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, probeTime)
		defer cancel()
		client, err := rest.HTTPClientFor(e.Config())
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url()+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz says %s", response.Status)
		}
		return nil
	}
}

// await looks again and again until look gives no error. It ends early when the server has ended.
func (e *Env) await(ctx context.Context, what string, server *process.Process, look func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-server.Done():
			return ended(server)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %s: %w; it said last:\n%s", what, readyTime, err, server.Tail(12))
		case <-time.After(readyPause):
		}
	}
}

func ended(server *process.Process) error {
	if strings.Contains(server.Tail(40), "address already in use") {
		return fmt.Errorf("%w: %w", errPortTaken, server.Err())
	}
	return server.Err()
}
