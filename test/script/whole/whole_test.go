// SPDX-License-Identifier: Apache-2.0

// Package whole tests the command line together with everything that it is for:
// each .txtar file is a script of commands against a real API server with nodes,
// a real registry and the real manager.
package whole

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"

	"rukpak.io/rukpak/internal/cli"
	"rukpak.io/rukpak/internal/devenv"
	"rukpak.io/rukpak/internal/testenv/assets"
)

// shared is the environment of all scripts, started by the first.
type shared struct {
	once sync.Once
	env  *devenv.Env
	err  error
}

var environment shared

func (s *shared) get(t *testing.T) *devenv.Env {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which -short does without")
	}
	s.once.Do(func() { s.env, s.err = devenv.Start(context.Background(), devenv.Options{Nodes: 1, NoBuild: true}) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.env
}

type runner struct{ m *testing.M }

func (r runner) Run() int {
	code := r.m.Run()
	if environment.env != nil {
		_ = environment.env.Stop()
	}
	return code
}

func TestMain(m *testing.M) {
	testscript.Main(runner{m}, map[string]func(){"rukpak": func() {
		streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
		os.Exit(cli.Run(context.Background(), streams, append([]string{"rukpak"}, os.Args[1:]...), os.Getenv))
	}})
}

func TestScripts(t *testing.T) {
	env := environment.get(t)
	testscript.Run(t, testscript.Params{
		Dir:                ".",
		UpdateScripts:      os.Getenv("UPDATE_SCRIPTS") != "",
		RequireUniqueNames: true,
		Setup:              func(script *testscript.Env) error { return prepare(script, env) },
		Cmds:               map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "keep": keep, "expand": expand, "helminstall": helmInstall},
	})
}

// prepare gives a script a namespace of its own and in the environment: NS,
// REGISTRY, EXAMPLES, and kubectl in the PATH.
func prepare(script *testscript.Env, env *devenv.Env) error {
	namespace := env.Cluster.NewNamespace(script.T().(testing.TB))
	config, err := clientcmd.LoadFromFile(env.Cluster.Kubeconfig())
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	kubeconfig := filepath.Join(script.WorkDir, ".kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return err
	}
	root, err := assets.ModuleRoot()
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"KUBECONFIG": kubeconfig, "NS": namespace, "REGISTRY": env.Registry.Host(), "EXAMPLES": filepath.Join(root, "examples"),
		"PATH": filepath.Dir(env.Cluster.KubectlPath()) + string(os.PathListSeparator) + script.Getenv("PATH"),
	} {
		script.Setenv(name, value)
	}
	return nil
}

// exits is "exits CODE COMMAND...": the command must end with that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exited, ok := err.(*exec.ExitError) //nolint:errorlint // that is what Exec gives
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = exited.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s ended with exit code %d, not %s", args[1], code, args[0])
	}
}

// keep is "keep NAME": what was printed last becomes a variable.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: keep NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// expand is "expand FILE": $VARIABLES in it become those of the script.
func expand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: expand FILE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(os.Expand(ts.ReadFile(args[0]), ts.Getenv)), 0o600))
}
