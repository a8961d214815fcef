// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/url"
	"strings"

	"rukpak.io/rukpak/api/v1alpha1"
)

// httpText leaves out the query, which may be signed.
func httpText(source *v1alpha1.HTTPSource) string {
	text := plainURL(source.URL)
	if source.SubPath != "" {
		text += ", folder " + source.SubPath
	}
	return text
}

func plainURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "a URL that does not parse"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

func helmText(source *v1alpha1.HelmSource) string {
	text := source.Chart
	if source.Version != "" {
		text += " " + source.Version
	}
	return text + " of " + plainURL(source.Repository)
}

// ociText names an artifact, or the range that one is chosen from.
func ociText(source *v1alpha1.OCISource) string {
	text := source.Ref
	if source.Semver != "" {
		text += " " + source.Semver
	}
	if source.Referrer != nil {
		text += ", its " + source.Referrer.ArtifactType
	}
	if source.Insecure {
		text += " (plain HTTP)"
	}
	return text
}

func bucketText(source *v1alpha1.BucketSource) string {
	text := plainURL(strings.TrimRight(source.Endpoint, "/")) + "/" + source.Bucket
	if below := source.Object + source.Prefix; below != "" { // at most one is set
		text += "/" + below
	}
	if source.VersionID != "" {
		text += ", version " + source.VersionID
	}
	return text
}
