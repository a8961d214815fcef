// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/spf13/cobra"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
)

type uploadVerb struct {
	*session
	output output
}

func (s *session) uploadCommand() *cobra.Command {
	v := &uploadVerb{session: s}
	cmd := &cobra.Command{
		Use:   "upload DIR",
		Short: "Upload a folder to the cluster, for a bundle in the same namespace, without a registry",
		Long: `Uploads a folder through the content API and prints its digest, for the source of a bundle in the same namespace:
{upload: {digest: ...}}. A bundle has to name it within ten minutes, or it is removed. It takes the verb
"create" on uploads of the group content.rukpak.io.

Only the manager's content store has it then: what is to last belongs into a registry ("push").`,
		Example: `  rukpak upload ./manifests`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			if err := checkIsFolder(cmd, args[0]); err != nil {
				return err
			}
			return v.run(cmd.Context(), args[0])
		},
	}
	v.output.addTo(cmd)
	return cmd
}

func (v *uploadVerb) run(ctx context.Context, dir string) error {
	done, err := v.session.upload(ctx, dir)
	if err != nil {
		return err
	}
	if !v.output.forPeople() {
		return v.value(done, v.output.format)
	}
	v.print("%s", done.Digest)
	if isTerminal(v.ErrOut) {
		v.say("%d files, %s", done.Files, bytesText(done.Bytes))
	}
	return nil
}

func (s *session) upload(ctx context.Context, dir string) (*contentv1.Upload, error) {
	line := s.progress()
	defer line.Close()
	line.Show("uploading %s", dir)
	api, err := s.contentAPI()
	if err != nil {
		return nil, err
	}
	return api.upload(ctx, dir)
}
