// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

// planned waits until a revision waits for its approval.
func (s *stage) planned(ctx context.Context, name string) error {
	revision := &v1alpha1.InstanceRevision{}
	err := eventually(ctx, "plan of revision "+name, func() error {
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: tenants, Name: name}, revision); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(revision.Status.Conditions, v1alpha1.ConditionPlanned) {
			return fmt.Errorf("not planned: %s", reasons(revision.Status.Conditions))
		}
		return nil
	})
	return s.explain(err)
}

// approve approves a revision and returns the time from the request to the news, by a watch, that it is Active.
func (s *stage) approve(ctx context.Context, name string) (time.Duration, error) {
	revision := &v1alpha1.InstanceRevision{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: tenants, Name: name}, revision); err != nil {
		return 0, err
	}
	return s.active(ctx, name, func() error { return s.client.Create(ctx, s.approval(revision)) })
}

// active does something and returns the time from then to the news, by a watch, that a revision is Active.
func (s *stage) active(ctx context.Context, name string, do func() error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	news, err := s.client.Watch(ctx, &v1alpha1.InstanceRevisionList{}, client.InNamespace(tenants),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)})
	if err != nil {
		return 0, err
	}
	defer news.Stop()
	begun := time.Now()
	if err := do(); err != nil {
		return 0, err
	}
	last := "nothing"
	for event := range news.ResultChan() {
		seen, ok := event.Object.(*v1alpha1.InstanceRevision)
		if !ok {
			return 0, fmt.Errorf("watch of revision %s: %v", name, event.Object)
		}
		if meta.IsStatusConditionTrue(seen.Status.Conditions, v1alpha1.ConditionActive) {
			return time.Since(begun), nil
		}
		last = reasons(seen.Status.Conditions)
	}
	return 0, s.explain(errors.Join(ctx.Err(), fmt.Errorf("revision %s did not become active: %s", name, last)))
}

func (s *stage) approval(revision *v1alpha1.InstanceRevision) *v1alpha1.Approval {
	return &v1alpha1.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: revision.Name},
		Spec: v1alpha1.ApprovalSpec{
			Revision: revision.Name, ManifestDigest: revision.Spec.ManifestDigest,
			ProvisionerClassName: revision.Spec.ProvisionerClassName, Decision: v1alpha1.DecisionApprove, Approver: s.user,
		},
	}
}
