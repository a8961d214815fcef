// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"
	"fmt"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/git"
)

func (o *Opener) git(ctx context.Context, spec v1alpha1.BundleSource, at Place) (source.Source, error) {
	from := spec.Git
	src := git.Source{
		URL: from.URL, Branch: from.Branch, Tag: from.Tag, Semver: from.Semver, TagPrefix: from.TagPrefix, Commit: from.Commit,
		SubPath: from.SubPath, Submodules: from.Submodules, LFSPointers: from.LFSPointers == v1alpha1.LFSPointersKeep, Insecure: from.Insecure,
	}
	if from.SecretRef != nil {
		secret, err := o.namedSecret(ctx, from.SecretRef.Name, at)
		if err != nil {
			return nil, err
		}
		if src.Credentials, err = git.CredentialsFrom(secret.Data); err != nil {
			return nil, &SecretError{fmt.Sprintf("%s: Secret %q in namespace %q: %v", at.Field, from.SecretRef.Name, at.Namespace, err)}
		}
	}
	return confine(o.Git.At(src), at, "git", from.URL, from.Insecure, from.SecretRef), nil
}
