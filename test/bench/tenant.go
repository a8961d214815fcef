// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

const (
	managerNamespace = "rukpak-system"
	tenants          = "bench" // namespace of all instances
	account          = "installer"
)

// patience bounds the wait for something that is not what is measured.
const patience = 10 * time.Minute

// prepare makes the namespace, the account and the two classes, once.
func (s *stage) prepare(ctx context.Context) error {
	if s.prepared {
		return nil
	}
	s.prepared = true
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenants}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: account}},
		everything("bench-installer", "system:serviceaccounts:"+tenants),
		classOf(v1alpha1.ApprovalManual), classOf(v1alpha1.ApprovalAutomatic),
	}
	for _, object := range objects {
		if err := s.client.Create(ctx, object); err != nil {
			return fmt.Errorf("%T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

func classOf(mode v1alpha1.ApprovalMode) *v1alpha1.ProvisionerClass {
	return &v1alpha1.ProvisionerClass{
		ObjectMeta: metav1.ObjectMeta{Name: className(mode)},
		Spec:       v1alpha1.ProvisionerClassSpec{Provisioner: "plain.rukpak.io", Approval: v1alpha1.ApprovalPolicy{Mode: mode}},
	}
}

func className(mode v1alpha1.ApprovalMode) string {
	return "bench-" + strings.ToLower(string(mode))
}

// bundle pushes objects as an image and returns what names it.
func (s *stage) bundle(ctx context.Context, name string, mode v1alpha1.ApprovalMode, objects mix, edition, changed int) (*v1alpha1.BundleSpec, error) {
	text, err := file(objects.objects(name, edition, changed))
	if err != nil {
		return nil, err
	}
	layer, err := layerOf(archived{"manifests.yaml", text})
	if err != nil {
		return nil, err
	}
	ref := fmt.Sprintf("%s/bench/%s:v%d", s.env.Registry.Host(), name, edition)
	if err := push(ctx, ref, layer); err != nil {
		return nil, err
	}
	return &v1alpha1.BundleSpec{
		ProvisionerClassName: className(mode),
		Sources:              []v1alpha1.BundleSource{{OCI: &v1alpha1.OCISource{Ref: ref, Insecure: true}}},
	}, nil
}

// instance creates an instance of objects whose names begin with its own.
func (s *stage) instance(ctx context.Context, name string, mode v1alpha1.ApprovalMode, objects mix) error {
	bundle, err := s.bundle(ctx, name, mode, objects, 0, 0)
	if err != nil {
		return err
	}
	return s.client.Create(ctx, &v1alpha1.BundleInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name},
		Spec:       v1alpha1.BundleInstanceSpec{Bundle: bundle, ServiceAccountName: account},
	})
}

// upgrade gives an instance another bundle.
func (s *stage) upgrade(ctx context.Context, name string, bundle *v1alpha1.BundleSpec) error {
	instance := &v1alpha1.BundleInstance{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name}}
	return eventually(ctx, "update of "+name, func() error {
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(instance), instance); err != nil {
			return err
		}
		instance.Spec.Bundle = bundle
		return s.client.Update(ctx, instance)
	})
}

// ready waits until an instance is active and healthy, as it is specified now.
func (s *stage) ready(ctx context.Context, name string) (*v1alpha1.BundleInstance, error) {
	instance := &v1alpha1.BundleInstance{}
	err := eventually(ctx, "readiness of instance "+name, func() error {
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: tenants, Name: name}, instance); err != nil {
			return err
		}
		if !isReady(instance) {
			return fmt.Errorf("not ready: %s", reasons(instance.Status.Conditions))
		}
		return nil
	})
	return instance, s.explain(err)
}

func isReady(instance *v1alpha1.BundleInstance) bool {
	return instance.Status.ObservedGeneration == instance.Generation &&
		meta.IsStatusConditionTrue(instance.Status.Conditions, v1alpha1.ConditionReady)
}

func reasons(conditions []metav1.Condition) string {
	text := ""
	for _, c := range conditions {
		text += fmt.Sprintf("%s=%s (%s: %s) ", c.Type, c.Status, c.Reason, c.Message)
	}
	return text
}

// remove deletes an instance with its objects and returns how long that took.
func (s *stage) remove(ctx context.Context, name string) (time.Duration, error) {
	instance := &v1alpha1.BundleInstance{ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: name}}
	begun := time.Now()
	if err := s.client.Delete(ctx, instance); err != nil {
		return 0, err
	}
	err := eventually(ctx, "deletion of instance "+name, func() error {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(instance), instance)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there: %s (%w)", reasons(instance.Status.Conditions), err)
	})
	return time.Since(begun), s.explain(err)
}

// eventually repeats something until it gives no error.
func eventually(ctx context.Context, what string, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
