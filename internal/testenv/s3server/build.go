// SPDX-License-Identifier: Apache-2.0

package s3server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"rukpak.io/rukpak/internal/testenv/assets"
)

const (
	program = "versitygw"
	module  = "github.com/versity/versitygw/cmd/versitygw"
)

// Program gives the path of the server's binary. It is built once, which takes
// some minutes, and then kept in the user's cache; of several processes that want
// it one builds and the others wait.
func Program(ctx context.Context) (string, error) {
	root, err := assets.ModuleRoot()
	if err != nil {
		return "", err
	}
	source := filepath.Join(root, "hack", "s3server")
	dir, err := cacheDir(source)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, program)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	unlock, err := lock(dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil // another process has built it meanwhile
	}
	temp := path + ".new"
	command := exec.CommandContext(ctx, "go", "build", "-p", "2", "-trimpath", "-ldflags", "-s -w", "-o", temp, module)
	command.Dir, command.Env = source, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if said, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build of the S3 server (go build %s in %s): %w\n%s", module, source, err, said)
	}
	return path, os.Rename(temp, path)
}

// cacheDir is another one for each set of sources.
func cacheDir(source string) (string, error) {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s/%s\n", runtime.GOOS, runtime.GOARCH) // a hash takes all
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(sum, "%x\n", sha256.Sum256(content))
	}
	cache := os.Getenv("RUKPAK_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no place to cache the S3 server (set RUKPAK_CACHE): %w", err)
		}
		cache = filepath.Join(user, "rukpak")
	}
	dir := filepath.Join(cache, fmt.Sprintf("s3server-%x", sum.Sum(nil)[:6]))
	return dir, os.MkdirAll(dir, 0o755)
}

func lock(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		_ = file.Close() // the lock is what matters
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}
