// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
)

func (s *session) catCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cat BUNDLE PATH...",
		Short: "Print files of a bundle",
		Long:  `Prints files of a bundle, byte by byte as they are, read through the content API.`,
		Example: `  rukpak cat web-v1 deploy/app.yaml
  rukpak cat web-v1 LICENSE README.md`,
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: s.completeFiles(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.cat(cmd.Context(), args[0], args[1:])
		},
	}
}

func (s *session) cat(ctx context.Context, word string, names []string) error {
	bundle, err := bundleWord(word)
	if err != nil {
		return err
	}
	api, err := s.contentAPI()
	if err != nil {
		return err
	}
	for _, name := range names {
		name = cleanPath(name)
		if name == "" {
			return failf(ExitUsage, "a file is missing: / is a folder").hintf("%s lists it", s.command("ls %s", bundle))
		}
		if err := checkPath(name); err != nil {
			return err
		}
		if err := s.catOne(ctx, api, bundle, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) catOne(ctx context.Context, api *contentClient, bundle, name string) error {
	body, err := api.get(ctx, contentv1.ResourceBundles, bundle, "files/"+name, query{"only": "file"})
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was only read
	if _, err := io.Copy(s.Out, body); err != nil {
		return failf(ExitError, "%s of bundle %s broke off: %w", name, bundle, err)
	}
	return nil
}

// completeFiles proposes bundles, and then files in them.
func (s *session) completeFiles(one bool) completer {
	bundles := s.completeNames("bundle")
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return bundles(cmd, args, toComplete)
		}
		if one && len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.filesStartingWith(cmd.Context(), args[0], toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

func (s *session) filesStartingWith(ctx context.Context, word, start string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	bundle, err := bundleWord(word)
	if err != nil {
		return nil
	}
	api, err := s.contentAPI()
	if err != nil {
		return nil
	}
	dir := ""
	if slash := strings.LastIndex(start, "/"); slash >= 0 {
		dir = path.Clean(start[:slash])
	}
	list, err := api.files(ctx, bundle, dir, false)
	if err != nil {
		return nil
	}
	var names []string
	for _, file := range list.Items {
		name := file.Path
		if file.Type == contentv1.TypeFolder {
			name += "/"
		}
		names = append(names, name)
	}
	return startingWith(names, start)
}
