// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/dependency"
)

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func (c *Controller) ofRevision(_ context.Context, object client.Object) []reconcile.Request {
	revision, ok := object.(*v1alpha1.InstanceRevision)
	if !ok {
		return nil
	}
	return []reconcile.Request{request(revision.Namespace, revision.Spec.Instance.Name)}
}

// ofDependency finds the instances that wait for one.
func (c *Controller) ofDependency(ctx context.Context, object client.Object) []reconcile.Request {
	return dependency.Dependents(ctx, c.Client, object)
}

// ofBundle finds the instances that use a bundle, by template or by reference.
func (c *Controller) ofBundle(ctx context.Context, bundle client.Object) []reconcile.Request {
	var list v1alpha1.BundleInstanceList
	if err := c.Client.List(ctx, &list, client.InNamespace(bundle.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		instance := &list.Items[i]
		ref := instance.Spec.BundleRef
		if ref != nil && ref.Name == bundle.GetName() || bundle.GetLabels()[v1alpha1.LabelInstance] == instance.Name {
			requests = append(requests, request(instance.Namespace, instance.Name))
		}
	}
	return requests
}

// ofClass finds the instances that use a class or wait for one. Only a new
// generation or readiness matters, and classes change rarely.
func (c *Controller) ofClass(ctx context.Context, class client.Object) []reconcile.Request {
	var list v1alpha1.BundleInstanceList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		instance := &list.Items[i]
		template := instance.Spec.Bundle
		if template == nil || template.ProvisionerClassName == "" || template.ProvisionerClassName == class.GetName() {
			requests = append(requests, request(instance.Namespace, instance.Name))
		}
	}
	return requests
}

// ofProvisioner has instances looked at that waited for a provisioner outside of the manager, or for their turn.
func (c *Controller) ofProvisioner(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	wake := func(name types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: name}) }
	c.turns.Wake = wake
	c.Provisioners.OnInstance(wake)
	return nil
}
