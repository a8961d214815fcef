// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/flux"
)

func (o *Opener) flux(ctx context.Context, spec v1alpha1.BundleSource, at Place) (source.Source, error) {
	from := spec.Flux
	kind := string(from.Kind)
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: flux.Group, Version: flux.Version, Kind: kind})
	err := o.object(ctx, object, kind, from.Name, at)
	if meta.IsNoMatchError(err) {
		return nil, &source.Error{
			Reason: source.ReasonNotFound, Kind: source.Waiting,
			Err: fmt.Errorf("%s: the cluster has no kind %s of %s/%s; install Flux", at.Field, kind, flux.Group, flux.Version),
		}
	}
	if err != nil {
		return nil, err
	}
	artifact, err := flux.ArtifactOf(object, at.Field)
	if err != nil {
		return nil, err
	}
	found := flux.Source{Kind: kind, Name: at.Namespace + "/" + from.Name, SubPath: from.SubPath, Artifact: artifact, Fetcher: o.HTTP}
	return confine(found, at, "flux", kind, from.Name), nil
}
