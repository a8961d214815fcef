// SPDX-License-Identifier: Apache-2.0

// Command image builds the manager's container image and pushes it to a registry, without Docker:
//
//	go run ./hack/image registry.example.com/rukpak/manager:v0.1.0
//
// The image holds the program, the certificates of public authorities and nothing else. Credentials are those that
// `docker login` would have left, if any.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

type options struct {
	ref          string
	platforms    []string
	certificates string
	insecure     bool
}

func main() {
	var o options
	platforms := flag.String("platforms", "linux/"+runtime.GOARCH, "platforms to build for, such as linux/amd64,linux/arm64")
	flag.StringVar(&o.certificates, "certificates", "/etc/ssl/certs/ca-certificates.crt", "PEM file of the authorities that the manager trusts when it fetches content")
	flag.BoolVar(&o.insecure, "insecure", false, "speak plain HTTP to the registry")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: go run ./hack/image [flags] REGISTRY/REPOSITORY:TAG")
		os.Exit(2)
	}
	o.ref, o.platforms = flag.Arg(0), strings.Split(*platforms, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, build); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to undo: stop only restores signals
	}
}

// builder builds the manager for a platform and returns the program's bytes.
type builder func(ctx context.Context, platform v1.Platform) ([]byte, error)

func run(ctx context.Context, o options, build builder) error {
	var options []name.Option
	if o.insecure {
		options = append(options, name.Insecure)
	}
	ref, err := name.NewTag(o.ref, options...)
	if err != nil {
		return err
	}
	certificates, err := os.ReadFile(o.certificates)
	if err != nil {
		return fmt.Errorf("certificates of public authorities: %w; name a file with -certificates", err)
	}
	var images []v1.Image
	for _, text := range o.platforms {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return err
		}
		fmt.Printf("building the manager for %s; the first time this compiles everything, which takes minutes\n", platform)
		stop := reassure(every)
		program, err := build(ctx, *platform)
		stop()
		if err != nil {
			return err
		}
		image, err := pack(program, certificates, *platform)
		if err != nil {
			return err
		}
		images = append(images, image)
	}
	return push(ctx, ref, images)
}

// every is how often it is said that something goes on.
const every = 15 * time.Second

// reassure says from time to time that it goes on, until it is stopped.
func reassure(pause time.Duration) (stop func()) {
	ended, began := make(chan struct{}), time.Now()
	go func() {
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				fmt.Printf("still building (%s)\n", time.Since(began).Round(time.Second))
			}
		}
	}()
	return func() { close(ended) }
}

// push pushes one image as it is, and several as an index.
func push(ctx context.Context, ref name.Tag, images []v1.Image) error {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if len(images) == 1 {
		if err := remote.Write(ref, images[0], options...); err != nil {
			return err
		}
		return report(ref, images[0])
	}
	index, err := gather(images)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(ref, index, options...); err != nil {
		return err
	}
	return report(ref, index)
}

func report(ref name.Tag, pushed interface{ Digest() (v1.Hash, error) }) error {
	digest, err := pushed.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("pushed %s@%s\n", ref, digest)
	return nil
}

func build(ctx context.Context, platform v1.Platform) ([]byte, error) {
	dir, err := os.MkdirTemp("", "rukpak-image-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "manager")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./cmd/manager")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("build the manager for %s: %w", platform, err)
	}
	return os.ReadFile(path) //nolint:gosec // what was just built
}
