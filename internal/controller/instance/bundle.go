// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/api/v1alpha1"
)

// ensureBundle finds the bundle that the spec names, or makes it from the
// template. A rollback needs none.
func (c *Controller) ensureBundle(ctx context.Context, w *work) error {
	if w.instance.Spec.RollbackTo != nil {
		return nil
	}
	if ref := w.instance.Spec.BundleRef; ref != nil {
		return c.findBundle(ctx, w, ref.Name)
	}
	spec := template(w.instance)
	if len(w.pins) > 0 {
		spec.Pins = w.pins
	}
	name := BundleName(w.instance.Name, spec)
	bundle := &v1alpha1.Bundle{}
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: w.instance.Namespace, Name: name}, bundle)
	if apierrors.IsNotFound(err) {
		return c.createBundle(ctx, w, name, spec)
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(bundle, w.instance) {
		return &Hold{
			Reason:  v1alpha1.ReasonBundleConflict,
			Message: fmt.Sprintf("Bundle %q exists but was not made by this instance; delete or rename it", name),
		}
	}
	// An owner reference can be written by whoever may create a Bundle, so it
	// does not show that the content is what the template asks for.
	if !equality.Semantic.DeepEqual(bundle.Spec, spec) {
		return &Hold{
			Reason:  v1alpha1.ReasonBundleConflict,
			Message: fmt.Sprintf("Bundle %q has other sources than spec.bundle asks for: somebody else made it; delete it", name),
		}
	}
	w.bundle = bundle
	return nil
}

func (c *Controller) findBundle(ctx context.Context, w *work, name string) error {
	bundle := &v1alpha1.Bundle{}
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: w.instance.Namespace, Name: name}, bundle)
	if apierrors.IsNotFound(err) {
		return &Hold{
			Reason:  v1alpha1.ReasonBundleNotFound,
			Message: fmt.Sprintf("spec.bundleRef: Bundle %q does not exist in namespace %q", name, w.instance.Namespace),
		}
	}
	w.bundle = bundle
	return err
}

func (c *Controller) createBundle(ctx context.Context, w *work, name string, spec v1alpha1.BundleSpec) error {
	bundle := &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       w.instance.Namespace,
			Name:            name,
			Labels:          map[string]string{v1alpha1.LabelInstance: w.instance.Name},
			OwnerReferences: []metav1.OwnerReference{ownerReference(w.instance)},
		},
		Spec: spec,
	}
	if err := c.Client.Create(ctx, bundle); err != nil {
		return fmt.Errorf("create Bundle %q: %w", name, err)
	}
	c.event(w.instance, bundle, "BundleCreated", "Create", "made Bundle "+name)
	w.bundle = bundle
	return nil
}

// template is the bundle that an instance embeds, with the instance's service
// account for pulling where it names no other.
func template(instance *v1alpha1.BundleInstance) v1alpha1.BundleSpec {
	spec := *instance.Spec.Bundle.DeepCopy()
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = instance.Spec.ServiceAccountName
	}
	return spec
}

// BundleName is the name of the bundle that an instance makes from a template:
// the same template gives the same name.
func BundleName(instance string, spec v1alpha1.BundleSpec) string {
	encoded, err := json.Marshal(spec)
	if err != nil {
		// The type has no field that could fail to marshal.
		encoded = fmt.Append(nil, spec)
	}
	sum := sha256.Sum256(encoded)
	return instance + "-" + hex.EncodeToString(sum[:5])
}

func ownerReference(instance *v1alpha1.BundleInstance) metav1.OwnerReference {
	return *metav1.NewControllerRef(instance, v1alpha1.GroupVersion.WithKind("BundleInstance"))
}

// awaitContent holds until the bundle's content can be read.
func awaitContent(bundle *v1alpha1.Bundle) error {
	ready := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return &Hold{
			Reason: v1alpha1.ReasonBundleNotReady, Busy: true,
			Message: fmt.Sprintf("Bundle %q is being fetched", bundle.Name),
		}
	case ready.Status != metav1.ConditionTrue:
		return &Hold{
			Reason: v1alpha1.ReasonBundleNotReady, Busy: true,
			Message: fmt.Sprintf("Bundle %q: %s: %s", bundle.Name, ready.Reason, ready.Message),
		}
	}
	return nil
}
