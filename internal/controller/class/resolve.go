// SPDX-License-Identifier: Apache-2.0

package class

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

// UnusableError says why a class cannot be used. It goes away when the class,
// the namespace's labels or the spec that names it changes; all are watched.
type UnusableError struct {
	Reason  string // ClassNotFound or ClassNotAllowed
	Message string
}

// Error gives the message.
func (e *UnusableError) Error() string { return e.Message }

// Resolve gives the class of that name, or the default class for "", if
// namespace may use it. Else the error is an *UnusableError or one of the API.
func Resolve(ctx context.Context, r client.Reader, name, namespace string) (*v1alpha1.ProvisionerClass, error) {
	found, err := find(ctx, r, name)
	if err != nil {
		return nil, err
	}
	if err := allowed(ctx, r, found, namespace); err != nil {
		return nil, err
	}
	return found, nil
}

func find(ctx context.Context, r client.Reader, name string) (*v1alpha1.ProvisionerClass, error) {
	if name == "" {
		return findDefault(ctx, r)
	}
	found := &v1alpha1.ProvisionerClass{}
	err := r.Get(ctx, types.NamespacedName{Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, &UnusableError{
			Reason:  v1alpha1.ReasonClassNotFound,
			Message: fmt.Sprintf("ProvisionerClass %q does not exist; create it or name another class", name),
		}
	}
	return found, err
}

func findDefault(ctx context.Context, r client.Reader) (*v1alpha1.ProvisionerClass, error) {
	var list v1alpha1.ProvisionerClassList
	if err := r.List(ctx, &list); err != nil {
		return nil, err
	}
	var best *v1alpha1.ProvisionerClass
	for i := range list.Items {
		candidate := &list.Items[i]
		if candidate.Annotations[v1alpha1.AnnotationDefaultClass] == "true" && (best == nil || older(candidate, best)) {
			best = candidate
		}
	}
	if best == nil {
		return nil, &UnusableError{
			Reason: v1alpha1.ReasonClassNotFound,
			Message: "provisionerClassName is not set and no ProvisionerClass has the annotation " +
				v1alpha1.AnnotationDefaultClass + "=true; name a class or mark one as the default",
		}
	}
	return best, nil
}

func older(a, b *v1alpha1.ProvisionerClass) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

func allowed(ctx context.Context, r client.Reader, found *v1alpha1.ProvisionerClass, namespace string) error {
	if found.Spec.AllowedNamespaces == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(found.Spec.AllowedNamespaces)
	if err != nil {
		return &UnusableError{
			Reason:  v1alpha1.ReasonClassNotAllowed,
			Message: fmt.Sprintf("ProvisionerClass %q: spec.allowedNamespaces is not a valid selector: %v", found.Name, err),
		}
	}
	ns := &corev1.Namespace{}
	if err := r.Get(ctx, types.NamespacedName{Name: namespace}, ns); err != nil {
		return err
	}
	if !selector.Matches(labels.Set(ns.Labels)) {
		return &UnusableError{
			Reason: v1alpha1.ReasonClassNotAllowed,
			Message: fmt.Sprintf("ProvisionerClass %q may not be used in namespace %q: its labels do not match allowedNamespaces (%s)",
				found.Name, namespace, selector),
		}
	}
	return nil
}
