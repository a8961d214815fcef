// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// serversBinary is the multi-call binary that the links of all programs but kwok lead to.
const serversBinary = "servers"

// progressEvery is the pause between two lines about a build that goes on.
const progressEvery = 15 * time.Second

// build compiles what is missing into dir. A binary appears under its name only when it is complete.
func (f *Finder) build(ctx context.Context, dir string, missing []string) error {
	version, err := f.Version()
	if err != nil {
		return err
	}
	servers := slices.DeleteFunc(All(), func(name string) bool { return name == Kwok })
	if slices.ContainsFunc(missing, func(name string) bool { return name != Kwok }) {
		f.say("building Kubernetes %s and etcd from Go modules into %s (once; about 15 minutes on 2 cores)", version, dir)
		if err := f.compile(ctx, f.Source, "./servers", versionFlags(version), filepath.Join(dir, serversBinary)); err != nil {
			return err
		}
		for _, name := range servers {
			if err := link(serversBinary, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	if slices.Contains(missing, Kwok) {
		f.say("building kwok from Go modules (once; about 2 minutes on 2 cores)")
		return f.compile(ctx, filepath.Join(f.Source, "kwok"), "sigs.k8s.io/kwok/cmd/kwok", nil, filepath.Join(dir, Kwok))
	}
	return nil
}

// versionFlags make /version and feature gates tell the truth: without them a server says v0.0.0-master.
func versionFlags(version string) []string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	const at = "-X k8s.io/component-base/version."
	return []string{at + "gitVersion=" + version, at + "gitMajor=" + major, at + "gitMinor=" + minor}
}

// compile builds one main package of the module in folder module into the file target.
func (f *Finder) compile(ctx context.Context, module, pkg string, ldflags []string, target string) error {
	temp, err := os.MkdirTemp(filepath.Dir(target), "build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	output := filepath.Join(temp, filepath.Base(target))

	command := exec.CommandContext(ctx, "go", "build", "-v", "-p", "2", "-trimpath",
		"-ldflags", strings.Join(append([]string{"-s", "-w"}, ldflags...), " "), "-o", output, pkg)
	command.Dir = module
	command.Env = append(os.Environ(), "GOWORK=off")
	started := time.Now()
	if err := f.watch(command, filepath.Base(target)); err != nil {
		return err
	}
	if err := complete(output, target); err != nil {
		return err
	}
	f.say("%s is built (%s)", filepath.Base(target), time.Since(started).Round(time.Second))
	return nil
}

// watch runs a verbose go command and says now and then how far it is. Its error ends in what the command said.
func (f *Finder) watch(command *exec.Cmd, what string) error {
	stderr, err := command.StderrPipe()
	if err != nil {
		return err
	}
	started := time.Now()
	if err := command.Start(); err != nil {
		return fmt.Errorf("build of %s: %w", what, err)
	}
	var compiled atomic.Int64
	stop := f.tick(func() {
		f.say("%s: %d packages compiled after %s", what, compiled.Load(), time.Since(started).Round(time.Second))
	})
	complaints := readVerbose(stderr, &compiled)
	err = command.Wait()
	stop()
	if err != nil {
		return fmt.Errorf("build of %s (go build in %s): %w\n%s", what, command.Dir, err, complaints)
	}
	return nil
}

// tick calls report again and again until the returned function is called.
func (f *Finder) tick(report func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				report()
			}
		}
	}()
	return func() { close(done) }
}

// readVerbose counts the lines that are package paths and keeps the last of the others.
func readVerbose(from io.Reader, compiled *atomic.Int64) string {
	var complaints bytes.Buffer
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.ContainsAny(line, " #") {
			if !strings.HasPrefix(line, "go: downloading") && complaints.Len() < 16<<10 {
				complaints.WriteString(line + "\n")
			}
			continue
		}
		compiled.Add(1)
	}
	_, _ = io.Copy(io.Discard, from) // a line beyond the buffer must not block the command
	return complaints.String()
}

// complete moves a finished file to its name: whoever sees the name sees the whole file, also after a crash.
func complete(output, target string) error {
	file, err := os.Open(output)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := file.Sync(); err != nil {
		return err
	}
	return os.Rename(output, target)
}

// link makes path a link to target, replacing what is there.
func link(target, path string) error {
	temp := path + ".new"
	if err := os.Remove(temp); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Symlink(target, temp); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
