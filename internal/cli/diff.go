// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/internal/cli/paint"
)

// maxText is the size up to which texts are compared line by line.
const maxText = 256 << 10

// fileChange is one difference of two bundles; either side may be absent.
type fileChange struct {
	Path string          `json:"path"`
	Old  *contentv1.File `json:"old,omitempty"`
	New  *contentv1.File `json:"new,omitempty"`
}

// bundleDiff is `diff -o json`.
type bundleDiff struct {
	Old     string       `json:"old"`
	New     string       `json:"new"`
	Same    bool         `json:"same"`
	Changes []fileChange `json:"changes"`
}

type diffVerb struct {
	*session
	output output
	code   bool
	names  bool
}

func (s *session) diffCommand() *cobra.Command {
	v := &diffVerb{session: s}
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show how the files of two bundles differ",
		Long: `Shows which files of one bundle another one adds, changes and lacks, and of texts up to 256 KiB the lines. What
differs between what is live and what a bundle would make of it is another question: see "plan".`,
		Example: `  rukpak diff web-v1 web-v2
  rukpak diff web-v1 web-v2 --name-only --exit-code`,
		Args: cobra.ExactArgs(2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return s.completeNames("bundle")(cmd, nil, toComplete)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			return v.run(cmd.Context(), args[0], args[1])
		},
	}
	v.output.addTo(cmd)
	cmd.Flags().BoolVar(&v.code, "exit-code", false, "Exit with 2 if they differ")
	cmd.Flags().BoolVar(&v.names, "name-only", false, "Only which files, without lines")
	return cmd
}

func (v *diffVerb) run(ctx context.Context, oldWord, newWord string) error {
	before, err := bundleWord(oldWord)
	if err != nil {
		return err
	}
	after, err := bundleWord(newWord)
	if err != nil {
		return err
	}
	api, err := v.contentAPI()
	if err != nil {
		return err
	}
	found, err := compareBundles(ctx, api, before, after)
	if err != nil {
		return err
	}
	if v.output.forPeople() {
		err = v.show(ctx, api, found)
	} else {
		err = v.value(found, v.output.format)
	}
	if err == nil && v.code && !found.Same {
		return exitWith(ExitChanges)
	}
	return err
}

func compareBundles(ctx context.Context, api *contentClient, before, after string) (*bundleDiff, error) {
	old, err := api.files(ctx, before, "", true)
	if err != nil {
		return nil, err
	}
	now, err := api.files(ctx, after, "", true)
	if err != nil {
		return nil, err
	}
	found := &bundleDiff{Old: before, New: after, Same: old.Content == now.Content, Changes: []fileChange{}}
	left, right := old.Items, now.Items
	for len(left) > 0 || len(right) > 0 {
		var change fileChange
		switch {
		case len(right) == 0 || len(left) > 0 && walkOrder(left[0].Path) < walkOrder(right[0].Path):
			change, left = fileChange{Path: left[0].Path, Old: &left[0]}, left[1:]
		case len(left) == 0 || walkOrder(left[0].Path) > walkOrder(right[0].Path):
			change, right = fileChange{Path: right[0].Path, New: &right[0]}, right[1:]
		default:
			same := left[0] == right[0]
			change = fileChange{Path: left[0].Path, Old: &left[0], New: &right[0]}
			left, right = left[1:], right[1:]
			if same {
				continue
			}
		}
		found.Changes = append(found.Changes, change)
	}
	return found, nil
}

// walkOrder makes paths compare as lists have them: what is in a folder comes
// right behind it.
func walkOrder(path string) string { return strings.ReplaceAll(path, "/", "\x00") }

func (v *diffVerb) show(ctx context.Context, api *contentClient, found *bundleDiff) error {
	painter := v.painter()
	for _, change := range found.Changes {
		v.print("%s", changeTitle(painter, change))
		if v.names {
			continue
		}
		if err := v.lines(ctx, api, found, change, painter); err != nil {
			return err
		}
	}
	if found.Same {
		v.say("%s and %s have the same content", found.Old, found.New)
	}
	return nil
}

func changeTitle(painter paint.Painter, change fileChange) string {
	switch {
	case change.Old == nil:
		return painter.Good("+ " + change.Path + described(change.New))
	case change.New == nil:
		return painter.Bad("- " + change.Path + described(change.Old))
	}
	text := "~ " + change.Path
	if was, is := described(change.Old), described(change.New); was != is {
		text += was + " ->" + is
	}
	return text
}

func described(file *contentv1.File) string {
	switch file.Type {
	case contentv1.TypeFolder:
		return "/"
	case contentv1.TypeLink:
		return " -> " + file.Target
	}
	return fmt.Sprintf(" (%s, %s)", file.Mode, bytesText(file.Size))
}

// lines shows what differs in a text that both have.
func (v *diffVerb) lines(ctx context.Context, api *contentClient, found *bundleDiff, change fileChange, painter paint.Painter) error {
	if change.Old == nil || change.New == nil || change.Old.Type != contentv1.TypeFile || change.New.Type != contentv1.TypeFile ||
		change.Old.Digest == change.New.Digest || max(change.Old.Size, change.New.Size) > maxText {
		return nil
	}
	old, err := v.text(ctx, api, found.Old, change.Path)
	if err != nil {
		return err
	}
	now, err := v.text(ctx, api, found.New, change.Path)
	if err != nil {
		return err
	}
	if !isText(old) || !isText(now) {
		return nil
	}
	differences, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: linesIn(old), B: linesIn(now), Context: 3,
		FromFile: found.Old + "/" + change.Path, ToFile: found.New + "/" + change.Path,
	})
	if err != nil {
		return err
	}
	for line := range strings.Lines(differences) {
		line = visible(strings.TrimSuffix(line, "\n"))
		switch {
		case strings.HasPrefix(line, "+"):
			line = painter.Good(line)
		case strings.HasPrefix(line, "-"):
			line = painter.Bad(line)
		}
		v.print("%s", line)
	}
	return nil
}

func (v *diffVerb) text(ctx context.Context, api *contentClient, bundle, path string) ([]byte, error) {
	body, err := api.get(ctx, contentv1.ResourceBundles, bundle, "files/"+path, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.LimitReader(body, maxText+1))
}

// linesIn are the lines of a text, each with its end.
func linesIn(text []byte) []string {
	lines := slices.Collect(strings.Lines(string(text)))
	if last := len(lines) - 1; last >= 0 && !strings.HasSuffix(lines[last], "\n") {
		lines[last] += "\n\\ No newline at end of file\n"
	}
	return lines
}

func isText(data []byte) bool { return utf8.Valid(data) && !bytes.ContainsRune(data, 0) }

// visible keeps content from playing tricks on the terminal.
func visible(line string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\t' || c >= 0x7f && c < 0xa0 {
			return '\ufffd'
		}
		return c
	}, line)
}
