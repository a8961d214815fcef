// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

const defaultHistoryLimit = 10

// trimHistory deletes the oldest revisions that are no longer in use, and the
// bundles made by this instance that no kept revision names. A revision whose
// objects are not all pruned or taken over is always in use: without its
// manifests nobody would know what it left behind.
func (c *Controller) trimHistory(ctx context.Context, w *work) error {
	limit := defaultHistoryLimit
	if set := w.instance.Spec.RevisionHistoryLimit; set != nil {
		limit = int(*set)
	}
	kept := map[string]bool{}
	if w.bundle != nil {
		kept[w.bundle.Name] = true
	}
	old := 0
	for i := len(w.revisions) - 1; i >= 0; i-- {
		revision := &w.revisions[i]
		if revision == w.current || !finished(revision) || rollsBackTo(w.instance, revision) || mayLeadBack(w.current, revision) {
			kept[revision.Spec.BundleName] = true
			continue
		}
		if old++; old <= limit {
			kept[revision.Spec.BundleName] = true
			continue
		}
		if err := c.Client.Delete(ctx, revision, preconditions(revision)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete InstanceRevision %q: %w", revision.Name, err)
		}
	}
	return c.trimBundles(ctx, w, kept)
}

func (c *Controller) trimBundles(ctx context.Context, w *work, kept map[string]bool) error {
	var list v1alpha1.BundleList
	err := c.Client.List(ctx, &list, client.InNamespace(w.instance.Namespace),
		client.MatchingLabels{v1alpha1.LabelInstance: w.instance.Name})
	if err != nil {
		return fmt.Errorf("list bundles: %w", err)
	}
	for i := range list.Items {
		bundle := &list.Items[i]
		if kept[bundle.Name] || !metav1.IsControlledBy(bundle, w.instance) {
			continue
		}
		if err := c.Client.Delete(ctx, bundle, preconditions(bundle)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Bundle %q: %w", bundle.Name, err)
		}
	}
	return nil
}

// finished is true for a revision that wrote nothing and never will, and for
// one whose objects are pruned or taken over by a newer revision.
func finished(revision *v1alpha1.InstanceRevision) bool {
	if isTrue(revision, v1alpha1.ConditionSuperseded) {
		return true
	}
	return isTrue(revision, v1alpha1.ConditionDenied) && revision.Status.ActivatedAt == nil
}

func rollsBackTo(instance *v1alpha1.BundleInstance, revision *v1alpha1.InstanceRevision) bool {
	number := instance.Spec.RollbackTo
	return number != nil && *number == revision.Spec.Number
}

func preconditions(object client.Object) client.DeleteOption {
	uid := object.GetUID()
	return client.Preconditions{UID: &uid}
}
