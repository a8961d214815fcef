// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/provisioners/plain"
)

// plainClass is the class that run makes where there is none.
const plainClass = "plain"

// ensureClass finds the class; where the cluster has no default class it makes
// one for plain manifests, with manual approval, and says so.
func (v *runVerb) ensureClass(ctx context.Context) error {
	if v.class != "" {
		_, err := v.classNamed(ctx, v.class)
		return err
	}
	found, err := v.defaultClass(ctx)
	if err != nil || found != nil || v.keepsClass(ctx) {
		return err
	}
	cluster, err := v.client()
	if err != nil {
		return err
	}
	class := &v1alpha1.ProvisionerClass{
		ObjectMeta: metav1.ObjectMeta{Name: plainClass},
		Spec:       v1alpha1.ProvisionerClassSpec{Provisioner: plain.ID, Approval: v1alpha1.ApprovalPolicy{Mode: v1alpha1.ApprovalManual}},
	}
	err = cluster.Create(ctx, class)
	if apierrors.IsForbidden(err) {
		return failf(ExitError, "there is no default class, and you may not create one: %w", err).
			hintf("ask who administers the cluster for a class, and name it with --class")
	}
	if client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if err == nil {
		v.say("created class %s: plain manifests, somebody must approve", plainClass)
	}
	v.class = plainClass
	return nil
}

func (s *session) classNamed(ctx context.Context, name string) (*v1alpha1.ProvisionerClass, error) {
	cluster, err := s.client()
	if err != nil {
		return nil, err
	}
	class := &v1alpha1.ProvisionerClass{}
	if err := cluster.Get(ctx, client.ObjectKey{Name: name}, class); err != nil {
		return nil, s.missing(err, "class", name, "")
	}
	return class, nil
}

// defaultClass is one that is marked as such, or nil. Which of several is used
// is decided by the manager.
func (v *runVerb) defaultClass(ctx context.Context) (*v1alpha1.ProvisionerClass, error) {
	cluster, err := v.client()
	if err != nil {
		return nil, err
	}
	var list v1alpha1.ProvisionerClassList
	if err := cluster.List(ctx, &list); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].Annotations[v1alpha1.AnnotationDefaultClass] == "true" {
			return &list.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // a cluster without a default class is no error
}

// keepsClass says of an instance that exists that it names a class, which run leaves as it is.
func (v *runVerb) keepsClass(ctx context.Context) bool {
	instance, err := v.instanceNamed(ctx, v.name)
	return err == nil && instance.Spec.Bundle != nil && instance.Spec.Bundle.ProvisionerClassName != ""
}

// needAccount fails early where no service account would be used: the instance
// would wait for one.
func (v *runVerb) needAccount(ctx context.Context, cluster client.Client, namespace string) error {
	if v.account != "" || v.keepsAccount(ctx) || v.classHasAccount(ctx, cluster) {
		return nil
	}
	return failf(ExitUsage, "no service account is named, and the class has no default one: as whom should it be done?").
		hintf("--service-account names one in namespace %q; --create-account=cluster-admin or =namespace-admin makes one", namespace)
}

func (v *runVerb) keepsAccount(ctx context.Context) bool {
	instance, err := v.instanceNamed(ctx, v.name)
	return err == nil && instance.Spec.ServiceAccountName != ""
}

func (v *runVerb) classHasAccount(ctx context.Context, cluster client.Client) bool {
	class, err := v.defaultClass(ctx)
	if v.class != "" {
		class = &v1alpha1.ProvisionerClass{}
		err = cluster.Get(ctx, client.ObjectKey{Name: v.class}, class)
	}
	return err == nil && class != nil && class.Spec.Identity != nil && class.Spec.Identity.DefaultServiceAccount != ""
}
