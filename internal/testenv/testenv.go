// SPDX-License-Identifier: Apache-2.0

// Package testenv starts a real Kubernetes control plane on this machine, for tests, `make demo` and `make dev`:
// etcd and kube-apiserver, and on demand kube-controller-manager, kube-scheduler and nodes played by kwok, on which
// Pods become ready. It stands beside RukPak's flow and plays the cluster that the flow ends in; the packages below
// it play what the flow begins with, such as an OCI registry.
//
// A test package shares one environment (see Shared). Start gives one without a test.
package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"rukpak.io/rukpak/internal/testenv/assets"
	"rukpak.io/rukpak/internal/testenv/process"
)

// Options say what an environment has. The zero value is etcd and kube-apiserver.
type Options struct {
	// Controllers adds kube-controller-manager: namespaces go when deleted, owned objects are collected,
	// service accounts and the Pods of Deployments and Jobs are made.
	Controllers bool
	// Nodes adds so many nodes, with kube-scheduler and kwok, which lets Pods run and become ready; it implies
	// Controllers. A Pod annotated testenv.rukpak.io/pod "not-ready" or "failed" is so for good; the latter is for
	// Jobs, since a ReplicaSet would replace failed Pods without end.
	Nodes int
	// APIServerArgs are further flags of kube-apiserver, such as "--v=4".
	APIServerArgs []string
	// Progress is told what takes time, in lines. Nil for nobody.
	Progress io.Writer
	// NoBuild makes Start fail, rather than build for a quarter of an hour, on a machine that lacks the programs.
	NoBuild bool
}

// Env is a running control plane. Its methods are safe for use by several goroutines, but for those that stop and
// start servers.
type Env struct {
	options Options
	dir     *process.Dir
	paths   assets.Paths
	config  *rest.Config

	apiPort, etcdPort, peerPort *process.Port

	etcd, apiServer *process.Process
	players         []*process.Process // controller manager, scheduler, kwok
}

// startTries is how often a start is tried anew when a port was taken by a stranger in the last moment.
const startTries = 3

// Start starts an environment and returns when it is ready: in some seconds where the programs are there, see
// package assets for where they come from. Stop ends it; so does the end of this process, however it ends.
func Start(ctx context.Context, options Options) (*Env, error) {
	if options.Nodes > 0 {
		options.Controllers = true
	}
	paths, err := find(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("programs of the control plane: %w", err)
	}
	for try := 1; ; try++ {
		env, err := start(ctx, options, paths)
		if err == nil {
			return env, nil
		}
		if try == startTries || !errors.Is(err, errPortTaken) {
			return nil, fmt.Errorf("start of the control plane: %w", err)
		}
	}
}

func find(ctx context.Context, options Options) (assets.Paths, error) {
	finder, err := assets.New(options.Progress)
	if err != nil {
		return nil, err
	}
	finder.NoBuild = options.NoBuild
	names := []string{assets.Etcd, assets.APIServer, assets.Kubectl}
	if options.Controllers {
		names = append(names, assets.ControllerManager)
	}
	if options.Nodes > 0 {
		names = append(names, assets.Scheduler, assets.Kwok)
	}
	return finder.Find(ctx, names...)
}

func start(ctx context.Context, options Options, paths assets.Paths) (*Env, error) {
	env := &Env{options: options, paths: paths}
	if err := env.prepare(); err != nil {
		return nil, errors.Join(err, env.Stop())
	}
	if err := env.up(ctx); err != nil {
		return nil, errors.Join(err, env.Stop())
	}
	return env, nil
}

// prepare reserves ports and writes all files that the servers read.
func (e *Env) prepare() (err error) {
	if e.dir, err = process.TempDir(); err != nil {
		return err
	}
	for _, port := range []**process.Port{&e.apiPort, &e.etcdPort, &e.peerPort} {
		if *port, err = process.ReservePort(); err != nil {
			return err
		}
	}
	if err := e.credentials(); err != nil {
		return err
	}
	return os.WriteFile(e.path(stagesFile), stages, 0o600)
}

// up starts the servers. Etcd and the API server start together, as the latter waits for the former.
func (e *Env) up(ctx context.Context) (err error) {
	begun := time.Now()
	if e.etcd, err = process.Start(e.etcdSpec()); err != nil {
		return err
	}
	if err := e.startAPIServer(ctx); err != nil {
		return err
	}
	e.say("API server %s is ready after %s", e.url(), time.Since(begun).Round(100*time.Millisecond))
	if !e.options.Controllers {
		return nil
	}
	if err := e.startPlayers(); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.awaitControllers(groupCtx) })
	if e.options.Nodes > 0 {
		group.Go(func() error { return e.addNodes(groupCtx) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	e.say("controllers and %d nodes are ready after %s", e.options.Nodes, time.Since(begun).Round(100*time.Millisecond))
	return nil
}

func (e *Env) startPlayers() error {
	specs := []process.Spec{e.controllerSpec()}
	if e.options.Nodes > 0 {
		specs = append(specs, e.schedulerSpec(), e.kwokSpec())
	}
	e.players = nil
	for _, spec := range specs {
		player, err := process.Start(spec)
		if err != nil {
			return err
		}
		e.players = append(e.players, player)
	}
	return nil
}

// keepEnv is the variable that keeps data and logs of an environment for somebody to look at.
const keepEnv = "RUKPAK_KEEP_TESTENV"

// Stop ends all servers and removes their data; it can be called more than once. With RUKPAK_KEEP_TESTENV set,
// the data and the servers' logs stay, and where is said on standard error.
func (e *Env) Stop() error {
	for _, running := range append(e.players, e.apiServer, e.etcd) {
		if running != nil {
			running.Stop(0) // what they could save is thrown away anyway
		}
	}
	e.players, e.apiServer, e.etcd = nil, nil, nil
	for _, port := range []*process.Port{e.apiPort, e.etcdPort, e.peerPort} {
		if port != nil {
			port.Release()
		}
	}
	if e.dir == nil {
		return nil
	}
	dir := e.dir
	e.dir = nil
	if os.Getenv(keepEnv) != "" {
		dir.Keep()
		_, _ = fmt.Fprintln(os.Stderr, "testenv: data and logs are kept in", dir.Path)
		return nil
	}
	return dir.Close()
}

func (e *Env) say(format string, args ...any) {
	if e.options.Progress != nil {
		_, _ = fmt.Fprintf(e.options.Progress, "control plane: "+format+"\n", args...)
	}
}
