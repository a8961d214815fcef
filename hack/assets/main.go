// SPDX-License-Identifier: Apache-2.0

// Command assets makes sure that the programs of the test control plane are there, and prints the folder that the
// cache keeps them in. What takes time (a download, a build of some fifteen minutes) is told on standard error.
//
//	go run ./hack/assets             all programs
//	go run ./hack/assets kubectl     only these
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"rukpak.io/rukpak/internal/testenv/assets"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "assets:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) error {
	if len(names) == 0 {
		names = assets.All()
	}
	finder, err := assets.New(os.Stderr)
	if err != nil {
		return err
	}
	if _, err := finder.Find(ctx, names...); err != nil {
		return err
	}
	dir, err := finder.Dir()
	if err != nil {
		return err
	}
	fmt.Println(dir)
	return nil
}
