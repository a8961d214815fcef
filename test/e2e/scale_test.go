// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

const (
	manyObjects = 10_000
	maxStatus   = 64 << 10        // bytes
	longTime    = 5 * time.Minute // for what takes a minute on two idle cores
)

// TestTenThousandObjectsHaveASmallStatus plans, activates, changes and removes as many objects as an instance is
// meant to have, and looks at what the kinds' objects weigh.
func TestTenThousandObjectsHaveASmallStatus(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: takes minutes")
	}
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.patience = longTime
	first, second := a.push("v1", many("v1", manyObjects)), a.push("v2", many("v2", manyObjects))
	a.instance("app", first)
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	if got := a.revision("app-1").Status.Plan.Added; got != manyObjects {
		t.Errorf("the plan adds %d objects, want %d", got, manyObjects)
	}
	a.approve("app-1", v1alpha1.DecisionApprove)
	if got := a.ready("app").Status.Objects.Total; got != manyObjects {
		t.Errorf("%d objects are active, want %d", got, manyObjects)
	}
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(second) })
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	plan := a.revision("app-2").Status.Plan
	if plan.Added != manyObjects/2 || plan.Changed != manyObjects/2 || plan.Removed != manyObjects/2 {
		t.Errorf("the plan adds %d, changes %d, removes %d; want %d each", plan.Added, plan.Changed, plan.Removed, manyObjects/2)
	}
	a.approve("app-2", v1alpha1.DecisionApprove)
	a.ready("app")
	a.eventually("the old objects are pruned", func(context.Context) error {
		if got := a.countAll(); got != manyObjects {
			return fmt.Errorf("%d objects, want %d", got, manyObjects)
		}
		return nil
	})
	for _, status := range []any{a.get("app").Status, a.revision("app-1").Status, a.revision("app-2").Status} {
		encoded, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		if len(encoded) > maxStatus {
			t.Errorf("%T has %d bytes, more than %d", status, len(encoded), maxStatus)
		}
	}
	instance := a.get("app")
	if err := a.client.Delete(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	a.gone(instance)
	if left := a.countAll(); left != 0 {
		t.Errorf("%d objects are left behind", left)
	}
}

// countAll counts the owned ConfigMaps without reading them.
func (a *tenant) countAll() int {
	a.t.Helper()
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
	if err := a.client.List(a.t.Context(), &list, client.InNamespace(a.namespace), client.HasLabels{"rukpak.io/instance-uid"}); err != nil {
		a.t.Fatal(err)
	}
	return len(list.Items)
}
