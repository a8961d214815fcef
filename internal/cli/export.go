// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/content/folder"
	"rukpak.io/rukpak/internal/unpack"
)

// exported is `export -o json`.
type exported struct {
	Bundle string `json:"bundle"`
	Folder string `json:"folder"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

type exportVerb struct {
	*session
	output output
	force  bool
}

func (s *session) exportCommand() *cobra.Command {
	v := &exportVerb{session: s}
	cmd := &cobra.Command{
		Use:   "export BUNDLE (DIR|-)",
		Short: "Write the files of a bundle to a folder, or to standard output as a tar archive",
		Long: `Writes all files of a bundle to a folder, or as a tar archive to standard output. The same content gives the
same archive. The folder is replaced as a whole if it is empty or as an earlier export left it; --force replaces any.`,
		Example: `  rukpak export web-v1 ./web
  rukpak export web-v1 - | tar t`,
		Args: cobra.ExactArgs(2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return s.completeNames("bundle")(cmd, args, toComplete)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			return v.run(cmd.Context(), args[0], args[1])
		},
	}
	v.output.addTo(cmd)
	cmd.Flags().BoolVar(&v.force, "force", false, "Replace the folder whatever is in it")
	return cmd
}

func (v *exportVerb) run(ctx context.Context, word, dir string) error {
	bundle, err := bundleWord(word)
	if err != nil {
		return err
	}
	api, err := v.contentAPI()
	if err != nil {
		return err
	}
	format := "tar.gz"
	if dir == "-" {
		format = "tar"
	}
	body, err := api.get(ctx, contentv1.ResourceBundles, bundle, contentv1.Archive, query{"format": format})
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was only read
	if dir == "-" {
		if _, err := io.Copy(v.Out, body); err != nil {
			return failf(ExitError, "the archive of bundle %s broke off: %w", bundle, err)
		}
		return nil
	}
	tree, err := v.write(ctx, body, dir)
	if err != nil {
		return err
	}
	if !v.output.forPeople() {
		return v.value(exported{Bundle: bundle, Folder: dir, Files: tree.Files, Bytes: tree.Bytes}, v.output.format)
	}
	v.say("%d files, %s, in %s", tree.Files, bytesText(tree.Bytes), dir)
	return nil
}

// write unpacks the archive as the manager would, by way of a store that is
// thrown away, so that nothing is ever written outside of the folder.
func (v *exportVerb) write(ctx context.Context, archive io.Reader, dir string) (tree content.Tree, err error) {
	store, err := newScratch(ctx)
	if err != nil {
		return tree, err
	}
	defer func() { err = errors.Join(err, store.close()) }()
	unlimited := unpack.Limits{CompressedBytes: -1, UnpackedBytes: -1, FileBytes: -1, Files: -1, Ratio: -1}
	if tree, err = store.archive(ctx, archive, unpack.Format{Compression: unpack.Gzip}, unlimited); err != nil {
		return tree, err
	}
	files, err := store.Open(ctx, tree.Digest)
	if err != nil {
		return tree, err
	}
	return tree, folder.Write(ctx, files, dir, v.force)
}
