// SPDX-License-Identifier: Apache-2.0

// Command rukpak is RukPak's command line. Installed under the name
// kubectl-rukpak it is a plugin: `kubectl rukpak`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"rukpak.io/rukpak/internal/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	return cli.Run(ctx, streams, os.Args, os.Getenv)
}
