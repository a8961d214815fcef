// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/provisioner"
)

// lookup reads the cluster as the instance's service account may. Without a cluster, and for what is not there, it gives
// nothing, as `helm template` does. That it was asked at all is reported: the next answer may be another one.
func (w *watch) lookup(reader provisioner.Reader) func(version, kind, namespace, name string) (map[string]any, error) {
	return func(version, kind, namespace, name string) (map[string]any, error) {
		if reader == nil {
			return map[string]any{}, nil
		}
		w.differs("lookup")
		if err := w.step(maxSteps / 10_000); err != nil {
			return nil, err
		}
		group, err := schema.ParseGroupVersion(version)
		if err != nil {
			return nil, err
		}
		found, err := w.ask(reader, group.WithKind(kind), types.NamespacedName{Namespace: namespace, Name: name})
		if err != nil && !apierrors.IsNotFound(err) {
			asked := strings.TrimSpace(kind + " " + strings.Trim(namespace+"/"+name, "/"))
			return nil, w.stop(fmt.Errorf("%s looks up %s: %w", w.file(), asked, err))
		}
		if err != nil {
			return map[string]any{}, nil
		}
		return found, nil
	}
}

func (w *watch) ask(reader provisioner.Reader, kind schema.GroupVersionKind, name types.NamespacedName) (map[string]any, error) {
	if name.Name != "" {
		object, err := reader.Get(w.ctx, kind, name)
		if err != nil {
			return nil, err
		}
		return object.DeepCopy().Object, nil
	}
	objects, err := reader.List(w.ctx, kind, name.Namespace)
	if err != nil {
		return nil, err
	}
	items := make([]any, 0, len(objects))
	for _, object := range objects {
		items = append(items, object.DeepCopy().Object)
	}
	list := kind.GroupVersion().WithKind(kind.Kind + "List")
	version, listKind := list.ToAPIVersionAndKind()
	return map[string]any{"apiVersion": version, "kind": listKind, "metadata": map[string]any{}, "items": items}, nil
}
