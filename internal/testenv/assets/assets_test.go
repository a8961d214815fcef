// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFirstPlaceThatHasAProgramWins(t *testing.T) {
	finder := newFinder(t)
	finder.NoBuild = true
	dir := cacheDir(t, finder)
	place(t, finder.Assets, Etcd, APIServer)
	place(t, dir, APIServer, Kwok)
	found, err := finder.Find(t.Context(), Etcd, APIServer, Kwok)
	if err != nil {
		t.Fatal(err)
	}
	want := Paths{
		Etcd:      filepath.Join(finder.Assets, Etcd),
		APIServer: filepath.Join(finder.Assets, APIServer),
		Kwok:      filepath.Join(dir, Kwok),
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
}

func TestWhatCannotRunCountsAsMissing(t *testing.T) {
	tests := map[string]func(path string) error{
		"absent":         func(string) error { return nil },
		"a folder":       func(path string) error { return os.Mkdir(path, 0o755) },
		"not executable": func(path string) error { return os.WriteFile(path, nil, 0o644) },
		"broken link":    func(path string) error { return os.Symlink("servers", path) },
	}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			finder := newFinder(t)
			finder.NoBuild = true
			if err := make(filepath.Join(finder.Assets, Etcd)); err != nil {
				t.Fatal(err)
			}
			_, err := finder.Find(t.Context(), Etcd)
			if !errors.Is(err, ErrNotBuilt) || !strings.HasPrefix(err.Error(), "etcd: ") {
				t.Errorf("got %v, want that etcd is not built", err)
			}
		})
	}
}

func TestCacheFolderFollowsTheSources(t *testing.T) {
	finder := newFinder(t)
	before := cacheDir(t, finder)
	if !strings.HasPrefix(filepath.Base(before), "v1.2.3-") {
		t.Errorf("got %s, want a name that begins with the Kubernetes version", before)
	}
	write(t, filepath.Join(finder.Source, "README.md"), "says nothing of what is built")
	if after := cacheDir(t, finder); after != before {
		t.Errorf("a file that is not built from changed %s to %s", before, after)
	}
	write(t, filepath.Join(finder.Source, "servers", "more.go"), "package main\n")
	if after := cacheDir(t, finder); after == before {
		t.Errorf("a changed source left %s", before)
	}
}

func TestMissingProgramsAreBuiltOnceByWhoeverComesFirst(t *testing.T) {
	finder, said := newFinder(t), &lines{}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			mine := *finder // as another process would have it
			mine.Progress = said
			found, err := mine.Find(t.Context(), All()...)
			if err != nil {
				t.Error(err)
				return
			}
			for _, name := range All() {
				if output, err := exec.Command(found[name]).Output(); err != nil || string(output) != name {
					t.Errorf("%s: got %q, %v", name, output, err)
				}
			}
		})
	}
	group.Wait()
	if got := strings.Count(said.String(), "servers is built"); got != 1 {
		t.Errorf("servers were built %d times, want once; said:\n%s", got, said)
	}
}

func TestFailedBuildLeavesNothingThatLooksBuilt(t *testing.T) {
	finder := newFinder(t)
	write(t, filepath.Join(finder.Source, "servers", "broken.go"), "package main\n\nvar _ = nonsense\n")
	_, err := finder.Find(t.Context(), Etcd)
	if err == nil || !strings.Contains(err.Error(), "undefined: nonsense") {
		t.Errorf("got %v, want what the compiler said", err)
	}
	left, err := os.ReadDir(cacheDir(t, finder))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		if entry.Name() != "lock" {
			t.Errorf("left behind: %s", entry.Name())
		}
	}
}

func TestWaitForAnotherBuildEndsWithTheContext(t *testing.T) {
	finder := newFinder(t)
	unlock, err := finder.lock(t.Context(), cacheDir(t, finder))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := finder.Find(ctx, Etcd); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// newFinder returns a finder over small modules that are laid out as hack/controlplane is, and build in a second.
func newFinder(t *testing.T) *Finder {
	t.Helper()
	const prints = "package main\n\nimport (\n\t\"os\"\n\t\"path/filepath\"\n)\n\nfunc main() { os.Stdout.WriteString(filepath.Base(os.Args[0])) }\n"
	source := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":                     "module example.com/servers\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubernetes v1.2.3\n)\n\nreplace k8s.io/kubernetes => ./kubernetes\n",
		"kubernetes/go.mod":          "module k8s.io/kubernetes\n",
		"servers/main.go":            prints,
		"kwok/go.mod":                "module example.com/kwok\n\ngo 1.26.0\n\nrequire sigs.k8s.io/kwok v0.0.0\n\nreplace sigs.k8s.io/kwok => ./real\n",
		"kwok/real/go.mod":           "module sigs.k8s.io/kwok\n\ngo 1.26.0\n",
		"kwok/real/cmd/kwok/main.go": prints,
	} {
		write(t, filepath.Join(source, name), content)
	}
	return &Finder{Assets: t.TempDir(), Cache: t.TempDir(), Source: source}
}

func cacheDir(t *testing.T, finder *Finder) string {
	t.Helper()
	dir, err := finder.Dir()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func place(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		write(t, filepath.Join(dir, name), "#!/bin/sh\n")
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// lines is a buffer for several writers.
type lines struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.String()
}
