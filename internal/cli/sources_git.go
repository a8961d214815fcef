// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"

	"rukpak.io/rukpak/api/v1alpha1"
)

// gitText says which commit of which repository is meant.
func gitText(source *v1alpha1.GitSource) string {
	text := source.URL
	for _, choice := range []struct{ what, value string }{
		{"branch", source.Branch}, {"tag", source.Tag}, {"highest version in", source.Semver}, {"commit", source.Commit},
	} {
		if choice.value != "" {
			text += ", " + choice.what + " " + choice.value
		}
	}
	if cmp.Or(source.Branch, source.Tag, source.Semver, source.Commit) == "" {
		text += ", default branch"
	}
	if source.TagPrefix != "" {
		text += " of tags " + source.TagPrefix + "*"
	}
	if source.SubPath != "" {
		text += ", folder " + source.SubPath
	}
	if source.Submodules {
		text += ", with submodules"
	}
	return text
}
