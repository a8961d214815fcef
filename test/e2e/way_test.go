// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/instance"
)

func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  value: %q\n", name, value)
}

// value waits until a ConfigMap has a value.
func (a *tenant) value(name, want string) {
	a.t.Helper()
	a.eventually("ConfigMap "+name, func(ctx context.Context) error {
		found := &corev1.ConfigMap{}
		if err := a.client.Get(ctx, types.NamespacedName{Namespace: a.namespace, Name: name}, found); err != nil {
			return err
		}
		if got := found.Data["value"]; got != want {
			return fmt.Errorf("value is %q, want %q", got, want)
		}
		return nil
	})
}

func (a *tenant) gone(object client.Object) {
	a.t.Helper()
	a.eventually(fmt.Sprintf("%T %s is gone", object, object.GetName()), func(ctx context.Context) error {
		err := a.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is still there"))
	})
}

func (a *tenant) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name}}
}

func TestNothingIsActiveBeforeItsBytesAreApproved(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1"), "b.yaml": configMap("two", "1")}))
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	first := a.revision("app-1")
	if got := first.Status.Plan.Added; got != 2 {
		t.Errorf("the plan adds %d objects, want 2", got)
	}
	if err := a.client.Get(t.Context(), client.ObjectKeyFromObject(a.configMap("one")), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Fatalf("an object exists before approval: %v", err)
	}
	a.approve("app-1", v1alpha1.DecisionApprove)
	instance := a.ready("app")
	a.value("one", "1")
	if instance.Status.Active == nil || instance.Status.Active.Name != "app-1" || instance.Status.Pending != nil {
		t.Errorf("active %+v, pending %+v; want app-1 active alone", instance.Status.Active, instance.Status.Pending)
	}
}

func TestTheOldRevisionStaysActiveAndHealedWhileTheNewOneWaits(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1"), "b.yaml": configMap("two", "1")}))
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	a.approve("app-1", v1alpha1.DecisionApprove)
	a.ready("app")

	second := a.push("v2", map[string]string{"a.yaml": configMap("one", "2"), "c.yaml": configMap("three", "2")})
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(second) })
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	plan := a.revision("app-2").Status.Plan
	if plan.Added != 1 || plan.Changed != 1 || plan.Removed != 1 {
		t.Errorf("the plan is %+v, want one each added, changed and removed", plan)
	}
	if err := a.client.Delete(t.Context(), a.configMap("two")); err != nil {
		t.Fatal(err)
	}
	a.value("two", "1") // restored by the active revision
	a.value("one", "1")

	a.approve("app-2", v1alpha1.DecisionApprove)
	a.ready("app")
	a.value("one", "2")
	a.value("three", "2")
	a.gone(a.configMap("two"))

	one := int64(1)
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.RollbackTo = &one })
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	third := a.revision("app-3")
	if third.Spec.ManifestDigest != a.revision("app-1").Spec.ManifestDigest || third.Spec.RollbackOf == nil {
		t.Errorf("revision 3 is %+v, want the manifests of revision 1", third.Spec)
	}
	a.approve("app-3", v1alpha1.DecisionApprove)
	a.ready("app")
	a.value("one", "1")
	a.value("two", "1")
	a.gone(a.configMap("three"))
}

func TestADenialIsFinalAndTakesNothingDown(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}))
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	a.approve("app-1", v1alpha1.DecisionApprove)
	a.ready("app")
	second := a.push("v2", map[string]string{"a.yaml": configMap("one", "2")})
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(second) })
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	a.approve("app-2", v1alpha1.DecisionDeny)
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDenied)
	a.approve("app-2", v1alpha1.DecisionApprove)
	a.eventually("the late approval says that it does not count", func(ctx context.Context) error {
		var list v1alpha1.ApprovalList
		if err := a.client.List(ctx, &list, client.InNamespace(a.namespace)); err != nil {
			return err
		}
		for _, approval := range list.Items {
			counted := meta.FindStatusCondition(approval.Status.Conditions, v1alpha1.ConditionCounted)
			if counted == nil {
				return fmt.Errorf("Approval %s has no condition yet", approval.Name)
			}
			late := approval.Spec.Revision == "app-2" && approval.Spec.Decision == v1alpha1.DecisionApprove
			if late && counted.Reason != v1alpha1.ReasonRevisionDecided {
				return fmt.Errorf("the late approval has reason %s", counted.Reason)
			}
		}
		return nil
	})
	a.value("one", "1")
}

func TestAnApprovalOfOtherBytesCountsForNothing(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}))
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	wrong := &v1alpha1.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "wrong"},
		Spec: v1alpha1.ApprovalSpec{
			Revision: "app-1", ManifestDigest: "sha256:0000000000000000000000000000000000000000000000000000000000000000",
			ProvisionerClassName: a.class, Decision: v1alpha1.DecisionApprove, Approver: a.user(),
		},
	}
	a.create(wrong)
	a.eventually("it says so", func(ctx context.Context) error {
		if err := a.client.Get(ctx, client.ObjectKeyFromObject(wrong), wrong); err != nil {
			return err
		}
		counted := meta.FindStatusCondition(wrong.Status.Conditions, v1alpha1.ConditionCounted)
		if counted == nil || counted.Reason != v1alpha1.ReasonDigestMismatch {
			return fmt.Errorf("condition is %+v", counted)
		}
		return nil
	})
	a.condition("app", v1alpha1.ConditionApproved, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
}

func TestDeletionRemovesTheObjects(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}))
	instance := a.ready("app")
	if err := a.client.Delete(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	a.gone(instance)
	a.gone(a.configMap("one"))
}

func TestRetainLeavesTheObjects(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}), func(i *v1alpha1.BundleInstance) {
		i.Annotations = map[string]string{v1alpha1.AnnotationReclaimPolicy: string(v1alpha1.ReclaimRetain)}
	})
	instance := a.ready("app")
	if err := a.client.Delete(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	a.gone(instance)
	a.value("one", "1")
}

// TestABundleThatOnlyLooksLikeTheTemplatesIsNotUsed: not even an administrator, whom admission lets make such a
// Bundle, can put other content under the name that a template stands for.
func TestABundleThatOnlyLooksLikeTheTemplatesIsNotUsed(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	wanted := a.push("wanted", map[string]string{"a.yaml": configMap("one", "wanted")})
	other := a.push("other", map[string]string{"a.yaml": configMap("one", "other")})
	a.instance("app", wanted, func(i *v1alpha1.BundleInstance) { i.Spec.Suspend = true })
	owner := a.get("app")
	template := *owner.Spec.Bundle.DeepCopy()
	template.ServiceAccountName = account
	impostor := &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.namespace, Name: instance.BundleName("app", template), Labels: map[string]string{v1alpha1.LabelInstance: "app"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind("BundleInstance"))},
		},
		Spec: *a.bundle(other),
	}
	a.create(impostor)
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Suspend = false })
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonBundleConflict)
	if err := a.client.Delete(t.Context(), impostor); err != nil {
		t.Fatal(err)
	}
	a.ready("app")
	a.value("one", "wanted")
}
