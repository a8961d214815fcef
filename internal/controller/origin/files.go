// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/files"
)

func (o *Opener) inline(_ context.Context, spec v1alpha1.BundleSource, at Place) (source.Source, error) {
	found := map[string][]byte{}
	for name, text := range spec.Inline.Files {
		found[name] = []byte(text)
	}
	return confine(files.Source{Name: at.Field + ".inline", Ref: "inline", Files: found}, at, "inline", spec.Inline.Files), nil
}

func (o *Opener) configMap(ctx context.Context, spec v1alpha1.BundleSource, at Place) (source.Source, error) {
	object := &corev1.ConfigMap{}
	if err := o.object(ctx, object, "ConfigMap", spec.ConfigMap.Name, at); err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	for key, text := range object.Data {
		data[key] = []byte(text)
	}
	for key, bytes := range object.BinaryData {
		data[key] = bytes
	}
	return fromKeys("ConfigMap", "configmap", data, spec.ConfigMap, at)
}

func (o *Opener) secret(ctx context.Context, spec v1alpha1.BundleSource, at Place) (source.Source, error) {
	object := &corev1.Secret{}
	if err := o.object(ctx, object, "Secret", spec.Secret.Name, at); err != nil {
		return nil, err
	}
	return fromKeys("Secret", "secret", object.Data, spec.Secret, at)
}

// object reads an object that a source names.
func (o *Opener) object(ctx context.Context, into client.Object, kind, name string, at Place) error {
	err := o.Live.Get(ctx, types.NamespacedName{Namespace: at.Namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return &source.Error{
			Reason: source.ReasonNotFound, Kind: source.Waiting,
			Err: fmt.Errorf("%s: %s %q does not exist in namespace %q", at.Field, kind, name, at.Namespace),
		}
	}
	return err
}

func fromKeys(kind, ref string, data map[string][]byte, spec *v1alpha1.ObjectSource, at Place) (source.Source, error) {
	name := at.Namespace + "/" + spec.Name
	found := files.Source{Name: kind + " " + name, Ref: ref + "/" + name, Files: data}
	if len(spec.Items) == 0 {
		return confine(found, at, kind, spec.Name, spec.Items), nil
	}
	found.Files = map[string][]byte{}
	for _, item := range spec.Items {
		value, ok := data[item.Key]
		if !ok {
			return nil, &source.Error{
				Reason: source.ReasonNotFound, Kind: source.Waiting,
				Err: fmt.Errorf("%s: %s %q in namespace %q has no key %q", at.Field, kind, spec.Name, at.Namespace, item.Key),
			}
		}
		if _, twice := found.Files[item.Path]; twice {
			return nil, &source.Error{
				Reason: source.ReasonInvalidReference, Kind: source.Terminal,
				Err: fmt.Errorf("%s: two keys become the file %q", at.Field, item.Path),
			}
		}
		found.Files[item.Path] = value
	}
	return confine(found, at, kind, spec.Name, spec.Items), nil
}
