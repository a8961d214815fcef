// SPDX-License-Identifier: Apache-2.0

// Package origin turns a source as a Bundle spells it into one that can be
// fetched: it reads the Secrets, ConfigMaps and accounts that the source names,
// and hands what they hold to the package of its kind. It stands between the
// API and the first step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
package origin

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/bucket"
	"rukpak.io/rukpak/internal/source/git"
	"rukpak.io/rukpak/internal/source/helm"
	"rukpak.io/rukpak/internal/source/oci"
	"rukpak.io/rukpak/internal/source/web"
)

// Opener opens sources. Every kind has a file of its own here.
type Opener struct {
	Live client.Reader // uncached reads, as the manager
	// Namespace is the manager's own, in which the keys and roots of classes stand.
	Namespace string
	OCI       *oci.Fetcher
	Bucket    *bucket.Fetcher
	Helm      *helm.Fetcher
	HTTP      *web.Fetcher
	Git       *git.Fetcher
	// Lost is told of a Bundle whose content a source needs and the store lacks.
	Lost func(types.NamespacedName)
}

// Place is whose source it is: what it names stands in this namespace.
type Place struct {
	Namespace      string
	Bundle         string
	Field          string // path of the source in the spec, such as "spec.sources[0]"
	ServiceAccount string // whose imagePullSecrets are used too
}

// SecretError says which object a source names that is absent or cannot be
// used.
type SecretError struct{ Message string }

// Error gives the message.
func (e *SecretError) Error() string { return e.Message }

// Open makes a source ready to be resolved and fetched, and gives the name of
// its kind. Errors are *source.Error, *SecretError, or those of the API server.
func (o *Opener) Open(ctx context.Context, spec v1alpha1.BundleSource, at Place) (source.Source, string, error) {
	kinds := []struct {
		name string
		set  bool
		open func(context.Context, v1alpha1.BundleSource, Place) (source.Source, error)
	}{
		{"oci", spec.OCI != nil, o.oci},
		{"inline", spec.Inline != nil, o.inline},
		{"configMap", spec.ConfigMap != nil, o.configMap},
		{"secret", spec.Secret != nil, o.secret},
		{"bundle", spec.Bundle != nil, o.bundle},
		{"upload", spec.Upload != nil, o.upload},
		{"flux", spec.Flux != nil, o.flux},
		{"http", spec.HTTP != nil, o.http},
		{"git", spec.Git != nil, o.git},
		{"helm", spec.Helm != nil, o.helm},
		{"bucket", spec.Bucket != nil, o.bucket},
	}
	for _, kind := range kinds {
		if kind.set {
			opened, err := kind.open(ctx, spec, at)
			return opened, kind.name, err
		}
	}
	return nil, "", &source.Error{
		Reason: source.ReasonInvalidReference, Kind: source.Terminal,
		Err: fmt.Errorf("%s: %w", at.Field, errors.New("the source is of a kind that this manager does not know")),
	}
}

// Resolved is how the API spells what a source was pinned to.
func Resolved(pinned source.Pinned) v1alpha1.ResolvedSource {
	return v1alpha1.ResolvedSource{
		Ref: pinned.Ref, Digest: v1alpha1.PinnedDigest(pinned.Digest), Subject: v1alpha1.Digest(pinned.Subject), Version: pinned.Version,
	}
}

// Classify gives the reason of an error of Open or of a source, and whether to
// try again before anything is changed.
func Classify(err error) (reason string, retry bool) {
	if failed, ok := errors.AsType[*source.Error](err); ok {
		return failed.Reason, failed.Kind != source.Terminal
	}
	if _, ok := errors.AsType[*SecretError](err); ok {
		return v1alpha1.ReasonInvalidSecret, true
	}
	return v1alpha1.ReasonStoreFailed, true
}
