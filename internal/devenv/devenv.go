// SPDX-License-Identifier: Apache-2.0

// Package devenv is a whole RukPak on one machine: a real control plane with
// nodes, an OCI registry, and the manager as a process of its own that has no
// other rights than config/ grants it. The demo, the tutorial's test, the
// fault tests and the benchmarks run on it. It stands beside the way that
// content takes, and nothing on that way knows of it.
package devenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/internal/testenv/assets"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
	"rukpak.io/rukpak/internal/testenv/process"
)

// Options say what the environment has.
type Options struct {
	// Nodes is the number of nodes on which Pods become ready.
	Nodes int
	// Progress is told what takes time, in lines. Nil for nobody.
	Progress io.Writer
	// ManagerArgs are further flags of the manager.
	ManagerArgs []string
	// NoManager leaves the manager to a later StartManager.
	NoManager bool
	// NoBuild fails rather than build the control plane for a quarter of an hour.
	NoBuild bool
}

// Env is a running environment. Stop ends all of it.
type Env struct {
	Cluster  *testenv.Env
	Registry *ociregistry.Registry
	Dir      string // of programs, logs and the manager's content store

	options     Options
	manager     *process.Process
	contentPort *process.Port // of the content API
}

// Start builds the programs, starts everything and installs config/.
func Start(ctx context.Context, options Options) (env *Env, err error) {
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	dir, err := os.MkdirTemp("", "rukpak-")
	if err != nil {
		return nil, err
	}
	env = &Env{Dir: dir, options: options}
	defer func() {
		if err != nil {
			err = errors.Join(err, env.Stop())
			env = nil
		}
	}()
	steps := []struct {
		what string
		run  func(context.Context) error
	}{
		{"build rukpak and the manager", env.build},
		{"start the control plane", env.startCluster},
		{"start an OCI registry", env.startRegistry},
		{"install RukPak (kubectl apply -k config/local)", env.install},
		{"install the content API (config/contentapi)", env.installContentAPI},
		{"start the manager", env.startManagerUnless},
	}
	for _, step := range steps {
		start := time.Now()
		_, _ = fmt.Fprintf(options.Progress, "==> %s\n", step.what)
		if err := step.run(ctx); err != nil {
			return env, fmt.Errorf("%s: %w", step.what, err) // stopped and taken back by what is deferred
		}
		_, _ = fmt.Fprintf(options.Progress, "    done in %.1f s\n", time.Since(start).Seconds())
	}
	return env, nil
}

func (e *Env) build(ctx context.Context) error {
	root, err := assets.ModuleRoot()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "build", "-o", e.Dir+string(filepath.Separator), "./cmd/rukpak", "./cmd/manager")
	command.Dir = root
	command.Stdout, command.Stderr = e.options.Progress, e.options.Progress
	return command.Run()
}

func (e *Env) startCluster(ctx context.Context) (err error) {
	e.Cluster, err = testenv.Start(ctx, testenv.Options{
		Nodes: e.options.Nodes, Controllers: true, Progress: e.options.Progress, NoBuild: e.options.NoBuild,
	})
	return err
}

func (e *Env) startRegistry(context.Context) (err error) {
	e.Registry, err = ociregistry.Start(ociregistry.Options{})
	return err
}

func (e *Env) install(ctx context.Context) error {
	root, err := assets.ModuleRoot()
	if err != nil {
		return err
	}
	if out, err := e.Cluster.Kubectl(ctx, "apply", "-k", filepath.Join(root, "config", "local")); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	_, err = e.Cluster.Kubectl(ctx, "wait", "--for=condition=Established", "crd", "-l", "app.kubernetes.io/part-of=rukpak", "--timeout=60s")
	if err != nil {
		return err
	}
	if err := e.installStamp(ctx, root); err != nil {
		return err
	}
	return e.awaitPolicies(ctx)
}

// installStamp is config/stamp, where the API server knows what it is.
func (e *Env) installStamp(ctx context.Context, root string) error {
	served, err := e.Cluster.Kubectl(ctx, "get", "--raw", "/apis/admissionregistration.k8s.io/v1")
	if err != nil || !strings.Contains(served, "mutatingadmissionpolicies") {
		return err
	}
	_, err = e.Cluster.Kubectl(ctx, "apply", "-k", filepath.Join(root, "config", "stamp"))
	return err
}

func (e *Env) startManagerUnless(ctx context.Context) error {
	if e.options.NoManager {
		return nil
	}
	return e.StartManager(ctx)
}

// CLI is the path of the rukpak program.
func (e *Env) CLI() string { return filepath.Join(e.Dir, "rukpak") }

// Stop ends everything and removes the files.
func (e *Env) Stop() error {
	var errs []error
	if e.manager != nil {
		e.manager.Stop(5 * time.Second)
	}
	if e.contentPort != nil {
		e.contentPort.Release()
	}
	if e.Registry != nil {
		e.Registry.Close()
	}
	if e.Cluster != nil {
		errs = append(errs, e.Cluster.Stop())
	}
	errs = append(errs, os.RemoveAll(e.Dir))
	return errors.Join(errs...)
}
