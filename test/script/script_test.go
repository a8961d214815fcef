// SPDX-License-Identifier: Apache-2.0

// Package script tests the command line as a user runs it: each .txtar file here
// is a script of commands and what they must print, run against a real API server
// and a real registry. No manager runs in these: a script sets the statuses that
// it needs, so that every state a user can meet is met. Scripts with a manager are
// in the folder whole.
package script

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"

	"rukpak.io/rukpak/internal/cli"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/internal/testenv/assets"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

var cluster = testenv.Shared{Setup: install}

type runner struct{ m *testing.M }

func (r runner) Run() int { return cluster.Main(r.m) }

func TestMain(m *testing.M) {
	command := func(name string) func() {
		return func() {
			streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
			os.Exit(cli.Run(context.Background(), streams, append([]string{name}, os.Args[1:]...), os.Getenv))
		}
	}
	testscript.Main(runner{m}, map[string]func(){
		"rukpak":         command("rukpak"),
		"kubectl-rukpak": command("kubectl-rukpak"),
	})
}

// install brings RukPak without its manager, as the tests play that.
func install(ctx context.Context, env *testenv.Env) error {
	root, err := assets.ModuleRoot()
	if err != nil {
		return err
	}
	if _, err := env.Kubectl(ctx, "apply", "-k", filepath.Join(root, "config", "local")); err != nil {
		return err
	}
	_, err = env.Kubectl(ctx, "wait", "--for=condition=Established", "crd", "-l", "app.kubernetes.io/part-of=rukpak", "--timeout=60s")
	return err
}

func TestScripts(t *testing.T) {
	env := cluster.Env(t)
	registry := ociregistry.New(t, ociregistry.Options{})
	guarded := ociregistry.New(t, ociregistry.Options{User: "user", Password: "secret"})
	testscript.Run(t, testscript.Params{
		Dir:                ".",
		UpdateScripts:      os.Getenv("UPDATE_SCRIPTS") != "",
		RequireUniqueNames: true,
		Setup:              func(script *testscript.Env) error { return prepare(script, env, registry.Host(), guarded.Host()) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"apply":  apply,
			"expand": expand,
			"keep":   keep,
			"exits":  exits,
		},
	})
}

// prepare gives a script a namespace of its own, which its kubeconfig has as the
// default, and in the environment: NS, REGISTRY, GUARDED (a registry that asks for
// user and secret), and kubectl in the PATH.
func prepare(script *testscript.Env, env *testenv.Env, registry, guarded string) error {
	t := script.T().(testing.TB)
	namespace := env.NewNamespace(t)
	config, err := clientcmd.LoadFromFile(env.Kubeconfig())
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	kubeconfig := filepath.Join(script.WorkDir, ".kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return err
	}
	script.Setenv("KUBECONFIG", kubeconfig)
	script.Setenv("NS", namespace)
	script.Setenv("REGISTRY", registry)
	script.Setenv("GUARDED", guarded)
	script.Setenv("PATH", filepath.Dir(env.KubectlPath())+string(os.PathListSeparator)+script.Getenv("PATH"))
	return nil
}

// apply is "apply [--status] FILE": it applies manifests in which $VARIABLES
// stand for those of the script.
func apply(ts *testscript.TestScript, neg bool, args []string) {
	flags := []string{"apply", "--server-side", "--force-conflicts"}
	if len(args) == 2 && args[0] == "--status" {
		flags, args = append(flags, "--subresource=status"), args[1:]
	}
	if neg || len(args) != 1 {
		ts.Fatalf("usage: apply [--status] FILE")
	}
	expand(ts, false, args)
	ts.Check(ts.Exec("kubectl", append(flags, "-f", args[0])...))
}

// expand is "expand FILE": $VARIABLES in it become those of the script.
func expand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: expand FILE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(os.Expand(ts.ReadFile(args[0]), ts.Getenv)), 0o600))
}

// keep is "keep NAME": what was printed last becomes a variable.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: keep NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// exits is "exits CODE COMMAND...": the command must end with that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	code := 0
	var exited *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exited) {
		code = exited.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s ended with exit code %d, not %s", args[1], code, args[0])
	}
}
