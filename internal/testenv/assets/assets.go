// SPDX-License-Identifier: Apache-2.0

// Package assets finds the programs of a Kubernetes control plane for tests, `make demo` and `make dev`. It
// stands beside RukPak's flow, not in it: what it finds plays the cluster that a bundle is activated on.
//
// Each program is taken from the first place that has it: the folder named by KUBEBUILDER_ASSETS, the cache of
// this machine, a download (where the internet is reached: by setup-envtest, and from the Kubernetes releases what
// that lacks), a build from the Go modules of hack/controlplane. The last takes some fifteen minutes once; afterwards
// the cache has it.
package assets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// The programs that can be asked for. Kwok plays nodes; the others are what their names say.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Kwok              = "kwok"
)

// All names every program, in the order in which they are started.
func All() []string {
	return []string{Etcd, APIServer, ControllerManager, Scheduler, Kwok, Kubectl}
}

// ErrNotBuilt is the error of a Finder that may not build when a program is nowhere to be found.
var ErrNotBuilt = errors.New("not found, and this process does not build: run `make controlplane` once (about 15 minutes)")

// Paths gives the absolute path of each program by its name.
type Paths map[string]string

// Finder looks for programs. The zero value looks nowhere; New gives the usual one.
type Finder struct {
	Assets   string    // folder that is looked into first; may be empty or lack some programs
	Cache    string    // folder that holds one folder a version; created when needed
	Source   string    // folder of the module hack/controlplane
	Internet string    // address that answers where downloads are possible; empty to download nothing
	Releases string    // URL of the Kubernetes releases, without a slash at its end
	Progress io.Writer // told what takes time, in lines; nil for nobody
	NoBuild  bool      // give ErrNotBuilt rather than download or build
}

// New returns a Finder set by the environment: KUBEBUILDER_ASSETS, RUKPAK_CACHE (default: rukpak/controlplane in
// the user's cache directory), and the module that the working directory lies in.
func New(progress io.Writer) (*Finder, error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, err
	}
	cache := os.Getenv("RUKPAK_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("no place to cache the control plane (set RUKPAK_CACHE): %w", err)
		}
		cache = filepath.Join(user, "rukpak", "controlplane")
	}
	return &Finder{
		Assets:   os.Getenv("KUBEBUILDER_ASSETS"),
		Cache:    cache,
		Source:   filepath.Join(root, "hack", "controlplane"),
		Internet: downloadHost,
		Releases: releases,
		Progress: progress,
	}, nil
}

// Find returns the paths of the named programs, downloading or building those that no place has. It can take a
// quarter of an hour; ctx stops it. Several processes may call it at once: one builds, the others wait for it.
func (f *Finder) Find(ctx context.Context, names ...string) (Paths, error) {
	dir, err := f.Dir()
	if err != nil {
		return nil, err
	}
	found, missing := f.look(dir, names)
	if len(missing) == 0 {
		return found, nil
	}
	if f.NoBuild {
		return nil, fmt.Errorf("%s: %w", strings.Join(missing, ", "), ErrNotBuilt)
	}
	unlock, err := f.lock(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if found, missing = f.look(dir, names); len(missing) == 0 { // another process has built them meanwhile
		return found, nil
	}
	f.download(ctx, dir, missing)
	if _, missing = f.look(dir, names); len(missing) > 0 {
		if err := f.build(ctx, dir, missing); err != nil {
			return nil, err
		}
	}
	if found, missing = f.look(dir, names); len(missing) > 0 {
		return nil, fmt.Errorf("%s: built, yet not in %s", strings.Join(missing, ", "), dir)
	}
	return found, nil
}

func (f *Finder) look(dir string, names []string) (found Paths, missing []string) {
	found = Paths{}
	for _, name := range names {
		switch {
		case f.Assets != "" && runnable(filepath.Join(f.Assets, name)):
			found[name] = filepath.Join(f.Assets, name)
		case runnable(filepath.Join(dir, name)):
			found[name] = filepath.Join(dir, name)
		default:
			missing = append(missing, name)
		}
	}
	return found, missing
}

// runnable follows links, so that a link whose binary was removed counts as absent.
func runnable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func (f *Finder) say(format string, args ...any) {
	if f.Progress != nil {
		_, _ = fmt.Fprintf(f.Progress, "control plane: "+format+"\n", args...)
	}
}
