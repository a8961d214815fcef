// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestGitSourcesAreNamedByWhatTheyMean(t *testing.T) {
	const url = "https://example.com/app"
	for _, tc := range []struct {
		source v1alpha1.GitSource
		want   string
	}{
		{v1alpha1.GitSource{URL: url}, url + ", default branch at overlays"},
		{v1alpha1.GitSource{URL: url, Branch: "main", SubPath: "deploy"}, url + ", branch main, folder deploy at overlays"},
		{v1alpha1.GitSource{URL: url, Semver: ">=1 <2", Submodules: true}, url + ", highest version in >=1 <2, with submodules at overlays"},
		{v1alpha1.GitSource{URL: url, Semver: "1.x", TagPrefix: "lib/"}, url + ", highest version in 1.x of tags lib/* at overlays"},
		{v1alpha1.GitSource{URL: url, Tag: "v1"}, url + ", tag v1 at overlays"},
	} {
		if got := sourcesText([]v1alpha1.BundleSource{{Path: "overlays", Git: &tc.source}}); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
