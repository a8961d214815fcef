// SPDX-License-Identifier: Apache-2.0

package git

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/gitserver"
	"rukpak.io/rukpak/internal/unpack"
)

// uploadPacks gives the command lines of git processes that serve a repository.
func uploadPacks(t testing.TB, repository string) (found []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		line, err := os.ReadFile(name)
		if text := strings.ReplaceAll(string(line), "\x00", " "); err == nil && strings.Contains(text, repository) && strings.Contains(text, "upload-pack") {
			found = append(found, text)
		}
	}
	return found
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// settled waits until a count is back at what it was, give or take idle connections.
func settled(t *testing.T, what string, before int, count func() int) {
	t.Helper()
	const idle = 12
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		now := count()
		if now <= before+idle {
			return
		}
		if time.Since(begun) > 10*time.Second {
			t.Errorf("%d %s before, %d after", before, what, now)
			return
		}
	}
}

func TestNothingLeaksWhateverGoesWrong(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	repo.Commit(t, "main", map[string]string{"a": noise(200_000), "d/b": "x"})
	repo.Commit(t, "bad", map[string]string{"a": noise(200_000), "up@": "../x"})
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	patient, impatient, hasty := New(Options{}), New(Options{StallTimeout: 50 * time.Millisecond}), New(Options{Timeout: 10 * time.Millisecond})
	for i := range 30 {
		store := newStore(t)
		fetcher := patient
		src := insecure(server, "app.git")
		switch i % 5 {
		case 0:
			src.Branch = "bad"
		case 1:
			server.Faults.Add(fault.Rule{Path: packs, Action: server.Faults.Stall(1000)})
			fetcher = impatient
		case 2:
			server.Faults.Add(fault.Rule{Path: packs, Action: fault.Truncate(100_000)})
		case 3:
			src.SubPath = "none"
		case 4:
			fetcher = hasty
		}
		_, _ = try(t, store, fetcher, src) // that it fails is the point
		server.Faults.Clear()
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	settled(t, "open files", files, func() int { return openFiles(t) })
	settled(t, "goroutines", goroutines, runtime.NumGoroutine)
}

func TestSSHLeavesNoProcessBehind(t *testing.T) {
	server := gitserver.NewSSH(t, gitserver.SSHOptions{})
	repo := gitserver.NewRepository(t, t.TempDir(), "app.git")
	repo.Commit(t, "main", map[string]string{"a": noise(5_000_000)})
	src := Source{URL: server.URL(repo), Credentials: Credentials{Identity: server.Identity, KnownHosts: server.KnownHosts}}
	store := newStore(t)
	pinned, err := New(Options{}).At(src).Resolve(t.Context(), destination(t, store, unpack.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = tryPinned(t, store, New(Options{}), src, pinned, unpack.Limits{CompressedBytes: 100_000})
	wantError(t, err, source.Terminal, source.ReasonLimitExceeded, "--limit-compressed-bytes")
	for begun := time.Now(); len(uploadPacks(t, repo.Dir)) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			t.Fatalf("still running: %v", uploadPacks(t, repo.Dir))
		}
	}
}
