// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"rukpak.io/rukpak/internal/devenv"
)

// story runs the real command line step by step and shows each command with
// what it prints.
type story struct {
	env  *devenv.Env
	root string
	out  io.Writer
}

func newStory(env *devenv.Env, root string, out io.Writer) *story {
	return &story{env: env, root: root, out: out}
}

// step is one command with the sentence that leads to it.
type step struct {
	why     string
	command string
}

func (s *story) tell(ctx context.Context) error {
	ref := s.env.Registry.Host() + "/demo/notes"
	steps := []step{
		{why: "Somebody publishes version 1 of an application: a folder of manifests becomes an OCI artifact.",
			command: "rukpak push examples/notes/v1 " + ref + ":v1 --insecure"},
		{why: "The platform team offers a class: which provisioner, and that a person has to approve.",
			command: "rukpak create class demo --provisioner plain.rukpak.io --approval Manual"},
		{why: "A team gets a namespace and a service account; the application will act as that account and as nobody else.",
			command: "kubectl create namespace team-a"},
		{command: "rukpak create account notes-installer -n team-a --cluster-role cluster-admin"},
		{why: "The team asks for the application.",
			command: "rukpak create instance notes -n team-a --image " + ref + ":v1 --insecure --class demo --service-account notes-installer"},
		{why: "Nothing is active: the first revision is planned and waits.",
			command: "rukpak wait notes -n team-a --for planned --timeout 2m"},
		{command: "rukpak plan notes -n team-a"},
		{command: "rukpak get -n team-a"},
		{why: "An approver has read the plan and approves exactly these bytes.",
			command: "rukpak approve notes -n team-a --yes --message first-install"},
		{command: "rukpak wait notes -n team-a --for ready --timeout 3m"},
		{command: "rukpak tree notes -n team-a"},
		{why: "Version 2 changes, adds and removes things.",
			command: "rukpak push examples/notes/v2 " + ref + ":v2 --insecure"},
		{command: "rukpak update notes -n team-a --image " + ref + ":v2 --insecure"},
		{why: "Version 1 stays active and healed while version 2 waits.",
			command: "rukpak wait notes -n team-a --for planned --timeout 2m"},
		{command: "rukpak plan notes -n team-a"},
		{command: "rukpak approve notes -n team-a --yes --message upgrade-to-2"},
		{command: "rukpak wait notes -n team-a --for ready --timeout 3m"},
		{command: "rukpak tree notes -n team-a"},
		{why: "Back to version 1: from what the cluster keeps, without the registry.",
			command: "rukpak rollback notes -n team-a --to 1 --approve --message back-to-1"},
		{why: "Who allowed this, and what happened?",
			command: "rukpak history notes -n team-a"},
		{command: "rukpak describe notes -n team-a"},
	}
	for _, next := range steps {
		if err := s.run(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) run(ctx context.Context, next step) error {
	if next.why != "" {
		_, _ = fmt.Fprintf(s.out, "\n# %s\n", next.why)
	}
	_, _ = fmt.Fprintf(s.out, "$ %s\n", next.command)
	words := strings.Fields(next.command)
	program := s.env.CLI()
	if words[0] == "kubectl" {
		program = s.env.Cluster.KubectlPath()
	}
	command := exec.CommandContext(ctx, program, words[1:]...)
	command.Dir = s.root
	command.Env = append(os.Environ(), "KUBECONFIG="+s.env.Cluster.Kubeconfig(), "PATH="+s.env.Dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	command.Stdout, command.Stderr = s.out, s.out
	err := command.Run()
	if err == nil {
		return nil
	}
	return fmt.Errorf("%q ended with %w; the manager said last:\n%s", next.command, err, tail(s.env.ManagerLog(), 20))
}

func tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
