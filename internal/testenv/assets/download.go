// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// setupEnvtest is the downloader of the controller-runtime project; one on the PATH is preferred.
	setupEnvtest = "sigs.k8s.io/controller-runtime/tools/setup-envtest@v0.25.1"
	// downloadHost is what setup-envtest asks first. Where it does not answer, there is no use in trying.
	downloadHost = "raw.githubusercontent.com:443"
	// reachTime keeps a machine without internet from waiting for it.
	reachTime = 3 * time.Second
	// downloadTime bounds the download as a whole; after that, building is the better bet.
	downloadTime = 5 * time.Minute
)

// Which programs come from where. Kwok is in neither place, and is quick to build.
var (
	inEnvtest  = []string{Etcd, APIServer, Kubectl}
	inReleases = []string{ControllerManager, Scheduler}
)

// download puts into dir those of the missing programs that the internet has. What it cannot get is left to the
// build, so a failure is only said.
func (f *Finder) download(ctx context.Context, dir string, missing []string) {
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	defer cancel()
	fromReleases, fromEnvtest := both(missing, inReleases), both(missing, inEnvtest)
	if len(fromReleases)+len(fromEnvtest) == 0 || f.Internet == "" || !reached(ctx, f.Internet) {
		return
	}
	err := f.downloadReleases(ctx, dir, fromReleases)
	if err == nil && len(fromEnvtest) > 0 {
		err = f.downloadEnvtest(ctx, dir, fromEnvtest)
	}
	if err != nil {
		f.say("download failed, building instead: %v", err)
	}
}

func both(some, others []string) []string {
	return slices.DeleteFunc(slices.Clone(some), func(name string) bool { return !slices.Contains(others, name) })
}

// downloadEnvtest links to what setup-envtest keeps below dir.
func (f *Finder) downloadEnvtest(ctx context.Context, dir string, wanted []string) error {
	version, err := f.Version()
	if err != nil {
		return err
	}
	f.say("downloading %s by setup-envtest", strings.Join(wanted, ", "))
	command := envtestCommand(ctx, "use", strings.TrimPrefix(version, "v"), "--print", "path", "--bin-dir", filepath.Join(dir, "envtest"))
	command.Dir = os.TempDir() // `go run module@version` wants no module around it
	output, err := command.Output()
	if err != nil {
		return fmt.Errorf("setup-envtest: %w", err)
	}
	for _, name := range wanted {
		path := filepath.Join(strings.TrimSpace(string(output)), name)
		if !runnable(path) {
			return fmt.Errorf("setup-envtest brought no %s", path)
		}
		if err := link(path, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func envtestCommand(ctx context.Context, args ...string) *exec.Cmd {
	if path, err := exec.LookPath("setup-envtest"); err == nil {
		return exec.CommandContext(ctx, path, args...)
	}
	return exec.CommandContext(ctx, "go", append([]string{"run", setupEnvtest}, args...)...)
}

func reached(ctx context.Context, address string) bool {
	dialer := net.Dialer{Timeout: reachTime}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}
