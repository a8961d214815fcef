// SPDX-License-Identifier: Apache-2.0

// Command demo shows RukPak doing its main job on this machine, without a
// cluster: it starts a control plane, a registry and the manager, and then
// tells the story by running the real command line. "make demo" and "make dev"
// call it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"rukpak.io/rukpak/internal/devenv"
	"rukpak.io/rukpak/internal/testenv/assets"
)

func main() {
	empty := flag.Bool("empty", false, "start the environment, run nothing in it and stay up")
	nodes := flag.Int("nodes", 2, "number of nodes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *empty, *nodes)
	if ctx.Err() != nil { // Ctrl-C reaches the control plane too, so that how it ends says nothing
		fmt.Println("\nstopped")
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, empty bool, nodes int) (err error) {
	root, err := assets.ModuleRoot()
	if err != nil {
		return err
	}
	env, err := devenv.Start(ctx, devenv.Options{Nodes: nodes, Progress: os.Stdout})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := env.Stop(); err == nil {
			err = stopErr
		}
	}()
	if !empty {
		if err := newStory(env, root, os.Stdout).tell(ctx); err != nil {
			return err
		}
	}
	if !empty && !keep() {
		return nil
	}
	invite(env)
	<-ctx.Done()
	return nil
}

// keep says whether the environment stays up: as KEEP says, and else where a
// person is at the terminal.
func keep() bool {
	switch os.Getenv("KEEP") {
	case "0":
		return false
	case "":
		return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
	}
	return true
}

func invite(env *devenv.Env) {
	fmt.Printf(`
The environment stays up until you press Ctrl-C. In another terminal:

  export KUBECONFIG=%s
  export PATH=%s:$PATH
  export REGISTRY=%s

  rukpak get
  kubectl get rukpak -A
  rukpak push examples/notes/v1 --insecure $REGISTRY/try/notes:v1
  rukpak run $REGISTRY/try/notes:v1 --help

A provisioner of your own serves this cluster with the same KUBECONFIG: docs/provisioners/write-your-own.md, examples/jsonnet.

The manager's log is %s
`, env.Cluster.Kubeconfig(), env.Dir, env.Registry.Host(), env.ManagerLog())
}
