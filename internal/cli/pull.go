// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// pulled is `pull -o json`.
type pulled struct {
	Ref     string `json:"ref"`     // by digest
	Content string `json:"content"` // digest of the files, as status.content.digest of a Bundle
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
}

type pullVerb struct {
	*session
	output   output
	insecure bool
	force    bool
}

func (s *session) pullCommand() *cobra.Command {
	v := &pullVerb{session: s}
	cmd := &cobra.Command{
		Use:   "pull REF DIR",
		Short: "Fetch what a reference names into a folder, unpacked as the cluster would",
		Long: `Fetches an artifact or image from an OCI registry and unpacks it into a folder, exactly as RukPak's manager
does: with the same limits, and refusing what would leave the folder.

The folder is replaced as a whole if it is empty or as an earlier pull left it; --force replaces any.`,
		Example: `  rukpak pull registry.example.com/team/app:v1 ./app`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			return v.run(cmd.Context(), args[0], args[1])
		},
	}
	v.output.addTo(cmd)
	cmd.Flags().BoolVar(&v.force, "force", false, "Replace the folder whatever is in it")
	cmd.Flags().BoolVar(&v.insecure, "insecure", false, "Speak plain HTTP to the registry")
	return cmd
}

func (v *pullVerb) run(ctx context.Context, ref, dir string) error {
	done, err := v.pull(ctx, ref, dir)
	if err != nil {
		return err
	}
	if !v.output.forPeople() {
		return v.value(done, v.output.format)
	}
	v.print("%s", done.Ref)
	v.say("%d files, %s, in %s", done.Files, bytesText(done.Bytes), dir)
	return nil
}
