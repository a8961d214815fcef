// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"rukpak.io/rukpak/internal/plural"
	"rukpak.io/rukpak/internal/registry/rules"
)

// pushed is `push -o json`: what was pushed and how to name it.
type pushed struct {
	Ref    string `json:"ref"` // by digest
	Digest string `json:"digest"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

type pushVerb struct {
	*session
	output   output
	insecure bool
}

func (s *session) pushCommand() *cobra.Command {
	v := &pushVerb{session: s}
	cmd := &cobra.Command{
		Use:   "push DIR REF",
		Short: "Push a folder to an OCI registry",
		Long: `Pushes a folder to an OCI registry as an artifact that a bundle can name, and prints the reference by digest.
The same files give the same digest, whoever owns them and whenever they were written. All files of the folder
are pushed; links may not lead out of it.

Credentials are those of docker and podman (docker login, or DOCKER_CONFIG).`,
		Example: `  rukpak push ./manifests registry.example.com/team/app:v1

  # To a registry on this machine that speaks plain HTTP
  ref=$(rukpak push ./manifests localhost:5000/app:v1 --insecure)`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			if !isFolder(args[0]) {
				return usagef(cmd, "there is no folder %s", args[0])
			}
			return v.run(cmd.Context(), args[0], args[1])
		},
	}
	v.output.addTo(cmd)
	cmd.Flags().BoolVar(&v.insecure, "insecure", false, "Speak plain HTTP to the registry")
	return cmd
}

func (v *pushVerb) run(ctx context.Context, dir, ref string) error {
	if known, err := name.NewTag(ref); err == nil && !strings.HasSuffix(ref, ":"+known.TagStr()) {
		v.say("note: no tag is named, so it is %s", rules.Text(known))
	}
	done, err := v.push(ctx, dir, ref, v.insecure)
	if err != nil {
		return err
	}
	if !v.output.forPeople() {
		return v.value(done, v.output.format)
	}
	v.print("%s", done.Ref)
	if isTerminal(v.ErrOut) {
		v.say("%s, %s", plural.Of(done.Files, "file"), bytesText(done.Bytes))
	}
	return nil
}
