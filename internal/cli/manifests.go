// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/opencontainers/go-digest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/manifest"
)

// manifestsOf reads the manifests of a revision with the user's own rights: from the Secrets that hold them, or else by way
// of the content API, which takes no right on Secrets.
func (s *session) manifestsOf(ctx context.Context, revision *v1alpha1.InstanceRevision) (manifest.Set, error) {
	cluster, err := s.client()
	if err != nil {
		return manifest.Set{}, err
	}
	wanted := digest.Digest(revision.Spec.ManifestDigest)
	encoded, err := manifest.LoadVerified(ctx, cluster, revision.Namespace, revision.Name, wanted)
	if apierrors.IsForbidden(err) {
		encoded, err = s.served(ctx, revision, contentv1.SecretManifests, query{"format": formatStored})
		if err == nil && manifest.DigestOf(encoded) != wanted {
			err = failf(ExitError, "the content API gives other manifests of %s than those of its digest %s", revision.Name, wanted)
		}
	}
	if errors.Is(err, manifest.ErrIncomplete) {
		return manifest.Set{}, failf(ExitError, "the manifests of %s are not there: %w", revision.Name, err)
	}
	if err != nil {
		return manifest.Set{}, err
	}
	return manifest.Decode(encoded)
}

// objectsIn reads the objects of a revision. Who may not read Secrets gets them without their data, if the content API
// lets him.
func (s *session) objectsIn(ctx context.Context, revision *v1alpha1.InstanceRevision) ([]*unstructured.Unstructured, error) {
	set, err := s.manifestsOf(ctx, revision)
	if !apierrors.IsForbidden(err) {
		return set.Objects(), err
	}
	encoded, err := s.served(ctx, revision, contentv1.Manifests, nil)
	if err != nil {
		return nil, err
	}
	var list unstructured.UnstructuredList
	if err := json.Unmarshal(encoded, &list); err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	return objects, nil
}

// served reads something of a revision from the content API.
func (s *session) served(ctx context.Context, revision *v1alpha1.InstanceRevision, what string, parameters query) ([]byte, error) {
	api, err := s.contentAPI()
	if err != nil {
		return nil, err
	}
	api.namespace = revision.Namespace
	body, err := api.get(ctx, contentv1.ResourceRevisions, revision.Name, what, parameters)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.LimitReader(body, manifest.MaxBytes))
}
