// SPDX-License-Identifier: Apache-2.0

package tutorial

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"rukpak.io/rukpak/internal/devenv"
	"rukpak.io/rukpak/internal/testenv/assets"
)

// stepTime bounds a block of commands; the longest waits of the page are shorter.
const stepTime = 5 * time.Minute

func TestEveryCommandOfTheTutorialWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which -short does without")
	}
	root, err := assets.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := steps(string(page))
	if err != nil {
		t.Fatal(err)
	}
	env, err := devenv.Start(t.Context(), devenv.Options{Nodes: 1, NoBuild: true, Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() })
	variables := append(os.Environ(),
		"KUBECONFIG="+env.Cluster.Kubeconfig(),
		"REGISTRY="+env.Registry.Host(),
		"HOME="+t.TempDir(), // neither the caches nor the settings of whoever runs the test
		"PATH="+programs(t, env)+string(filepath.ListSeparator)+os.Getenv("PATH"),
	)
	for _, step := range all {
		if !run(t, root, variables, step) {
			t.Fatal("the rest of the page rests on this; the manager said last:\n" + lastWords(env.ManagerLog()))
		}
	}
}

// run runs one block as a shell does that ends at the first error.
func run(t *testing.T, root string, variables []string, step step) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepTime)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-euc", step.sh) //nolint:gosec // a page of this repository
	command.Dir, command.Env = root, variables
	begun := time.Now()
	output, err := command.CombinedOutput()
	t.Logf("docs/tutorial.md:%d (%s)\n%s\n%s", step.line, time.Since(begun).Round(100*time.Millisecond), step.sh, output)
	switch {
	case step.fails && err == nil:
		t.Errorf("docs/tutorial.md:%d: it succeeds, but the page says that it does not", step.line)
	case !step.fails && err != nil:
		t.Errorf("docs/tutorial.md:%d: %v", step.line, err)
	}
	for _, line := range step.missing(string(output)) {
		t.Errorf("docs/tutorial.md:%d: the page shows %q, which is not in the output", step.line, line)
	}
	return !t.Failed()
}

// programs is a folder with the programs that the page calls.
func programs(t *testing.T, env *devenv.Env) string {
	t.Helper()
	dir := t.TempDir()
	for name, path := range map[string]string{"rukpak": env.CLI(), "kubectl": env.Cluster.KubectlPath()} {
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func lastWords(log string) string {
	text, err := os.ReadFile(log) //nolint:gosec // the environment's own log
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}
