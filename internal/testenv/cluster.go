// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"rukpak.io/rukpak/internal/testenv/assets"
)

// CRDs returns the folder of RukPak's generated CustomResourceDefinitions.
func CRDs() (string, error) {
	root, err := assets.ModuleRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "config", "crd", "bases"), nil
}

// InstallCRDs installs RukPak's CustomResourceDefinitions, or those of the named folders and files, and returns when
// the API server serves them.
func (e *Env) InstallCRDs(_ context.Context, paths ...string) error {
	if len(paths) == 0 {
		bases, err := CRDs()
		if err != nil {
			return err
		}
		paths = []string{bases}
	}
	_, err := envtest.InstallCRDs(e.Config(), envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true})
	if err != nil {
		return fmt.Errorf("install CRDs of %s: %w", strings.Join(paths, ", "), err)
	}
	return nil
}

// NewClient returns an uncached client of the cluster administrator that knows the types of the scheme.
func (e *Env) NewClient(scheme *runtime.Scheme) (client.Client, error) {
	return client.New(e.Config(), client.Options{Scheme: scheme})
}

// Kubectl runs kubectl as cluster administrator and returns what it printed on standard output. Its error ends in
// what it printed on standard error.
func (e *Env) Kubectl(ctx context.Context, args ...string) (string, error) {
	return e.KubectlInput(ctx, "", args...)
}

// KubectlInput is Kubectl with something to read, as for `apply -f -`.
func (e *Env) KubectlInput(ctx context.Context, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, e.paths[assets.Kubectl], args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig(), "HOME="+e.dir.Path)
	command.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// KubectlPath returns the path of kubectl.
func (e *Env) KubectlPath() string { return e.paths[assets.Kubectl] }
