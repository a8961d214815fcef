// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/plural"
)

// sourcesText names the sources of a bundle as a person would: the kind and what it points at.
func sourcesText(sources []v1alpha1.BundleSource) string {
	all := make([]string, len(sources))
	for i, source := range sources {
		all[i] = sourceText(source)
		if source.Path != "" {
			all[i] += " at " + source.Path
		}
	}
	return strings.Join(all, ", ")
}

func sourceText(source v1alpha1.BundleSource) string {
	switch {
	case source.OCI != nil:
		return ociText(source.OCI)
	case source.Inline != nil:
		return plural.Of(len(source.Inline.Files), "inline file")
	case source.ConfigMap != nil:
		return "ConfigMap " + source.ConfigMap.Name
	case source.Secret != nil:
		return "Secret " + source.Secret.Name
	case source.Bundle != nil && source.Bundle.SubPath != "":
		return "Bundle " + source.Bundle.Name + ", folder " + source.Bundle.SubPath
	case source.Bundle != nil:
		return "Bundle " + source.Bundle.Name
	case source.Upload != nil:
		return "upload " + string(source.Upload.Digest)
	case source.Flux != nil:
		return "Flux " + string(source.Flux.Kind) + " " + source.Flux.Name
	case source.HTTP != nil:
		return httpText(source.HTTP)
	case source.Git != nil:
		return gitText(source.Git)
	case source.Helm != nil:
		return helmText(source.Helm)
	case source.Bucket != nil:
		return bucketText(source.Bucket)
	}
	return "a kind of source that this program does not know"
}
