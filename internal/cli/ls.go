// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/internal/cli/table"
)

type lsVerb struct {
	*session
	output    output
	recursive bool
}

func (s *session) lsCommand() *cobra.Command {
	v := &lsVerb{session: s}
	cmd := &cobra.Command{
		Use:   "ls BUNDLE [PATH]",
		Short: "List the files of a bundle",
		Long: `Lists what a bundle holds, or a folder of it: mode, size and path; -o wide adds digests. The files are read
through the content API: it takes the verb "get" on bundles/files of the group content.rukpak.io.`,
		Example: `  rukpak ls web-v1
  rukpak ls web-v1 deploy --recursive -o wide`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: s.completeFiles(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			return v.run(cmd.Context(), args[0], argument(args, 1))
		},
	}
	v.output.addTo(cmd, formatWide)
	cmd.Flags().BoolVarP(&v.recursive, "recursive", "R", false, "Also what is in folders")
	return cmd
}

func argument(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

func (v *lsVerb) run(ctx context.Context, word, dir string) error {
	name, err := bundleWord(word)
	if err != nil {
		return err
	}
	if err := checkPath(cleanPath(dir)); err != nil {
		return err
	}
	api, err := v.contentAPI()
	if err != nil {
		return err
	}
	list, err := v.list(ctx, api, name, cleanPath(dir))
	if err != nil {
		return err
	}
	if !v.output.forPeople() {
		return v.value(list, v.output.format)
	}
	rows := table.Table{}
	for _, file := range list.Items {
		rows.Add(v.row(file)...)
	}
	return rows.Write(v.Out)
}

// list gives what is in a folder, or the one file that is named.
func (v *lsVerb) list(ctx context.Context, api *contentClient, bundle, name string) (*contentv1.FileList, error) {
	if name != "" {
		found, err := v.one(ctx, api, bundle, name)
		if err != nil || found != nil {
			return found, err
		}
	}
	return api.files(ctx, bundle, name, v.recursive)
}

// one gives a list of the one file of that name, or nil if it is none.
func (v *lsVerb) one(ctx context.Context, api *contentClient, bundle, name string) (*contentv1.FileList, error) {
	dir := path.Dir(name)
	if dir == "." {
		dir = ""
	}
	list, err := api.files(ctx, bundle, dir, false)
	if err != nil {
		return nil, err
	}
	for _, file := range list.Items {
		if file.Path == name && file.Type == contentv1.TypeFile {
			list.Items = []contentv1.File{file}
			return list, nil
		}
	}
	return nil, nil //nolint:nilnil // it is a folder, or the next request says that it is nothing
}

func (v *lsVerb) row(file contentv1.File) []string {
	mode, size, name := file.Mode, strconv.FormatInt(file.Size, 10), file.Path
	switch file.Type {
	case contentv1.TypeFolder:
		mode, size, name = "folder", "", name+"/"
	case contentv1.TypeLink:
		mode, size, name = "link", "", name+" -> "+file.Target
	}
	if v.output.format == formatWide {
		return []string{mode, size, file.MediaType, file.Digest, name}
	}
	return []string{mode, size, name}
}

// cleanPath is a path of content as a person may type it.
func cleanPath(name string) string {
	return strings.Trim(strings.TrimPrefix(name, "./"), "/")
}

// checkPath refuses what a URL would take for another place than in the bundle.
func checkPath(name string) error {
	if name == "" || fs.ValidPath(name) {
		return nil
	}
	return failf(ExitUsage, "%q is not a path in a bundle: it begins at the root of the bundle, without . and ..", name)
}
