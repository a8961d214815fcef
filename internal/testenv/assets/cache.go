// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"time"
)

// modulePath is the line that tells RukPak's own go.mod from that of a module nested in it.
var modulePath = regexp.MustCompile(`(?m)^module rukpak\.io/rukpak$`)

// ModuleRoot returns the folder of RukPak's go.mod, looking upwards from the working directory, which for a test
// is the folder of its package.
func ModuleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && modulePath.Match(content) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a checkout of rukpak.io/rukpak", start)
		}
	}
}

// kubernetesVersion finds in hack/controlplane/go.mod which Kubernetes is built.
var kubernetesVersion = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\d+\.\d+\.\d+)`)

// Version returns the Kubernetes version that a build gives, such as "v1.37.2".
func (f *Finder) Version() (string, error) {
	content, err := os.ReadFile(filepath.Join(f.Source, "go.mod"))
	if err != nil {
		return "", err
	}
	match := kubernetesVersion.FindSubmatch(content)
	if match == nil {
		return "", fmt.Errorf("%s/go.mod requires no k8s.io/kubernetes", f.Source)
	}
	return string(match[1]), nil
}

// Dir returns the cache folder of the programs that the present sources give: a changed version, source or
// platform has a folder of its own, so nothing stale is ever used. The folder need not exist.
func (f *Finder) Dir() (string, error) {
	version, err := f.Version()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s/%s\n", runtime.GOOS, runtime.GOARCH)
	if err := hashTree(sum, f.Source); err != nil {
		return "", fmt.Errorf("sources of the control plane: %w", err)
	}
	return filepath.Join(f.Cache, fmt.Sprintf("%s-%x", version, sum.Sum(nil)[:6])), nil
}

// hashTree writes names and contents of what the binaries are built from, in the order of their names.
func hashTree(to io.Writer, root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch ext := filepath.Ext(path); ext {
		case ".go", ".mod", ".sum":
		default:
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(to, "%s %x\n", filepath.ToSlash(name), sha256.Sum256(content))
		return err
	})
}

// lock makes dir and waits until no other process builds into it. The lock goes with the process that holds it,
// so a killed build leaves nothing behind that has to be removed by hand.
func (f *Finder) lock(ctx context.Context, dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for said := false; ; {
		err := tryLock(file)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, errLocked) {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
		}
		if !said {
			f.say("another process builds it, waiting")
			said = true
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, fmt.Errorf("waiting for the build of another process: %w", ctx.Err())
		case <-time.After(500 * time.Millisecond):
		}
	}
}
