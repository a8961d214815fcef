// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestObjectsOfKindsThatTheManagerMayNotWatchAreLookedAtInPauses(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	group := a.namespace + ".example.com"
	definition := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.%[1]s}
spec:
  group: %[1]s
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, group)
	custom := fmt.Sprintf("apiVersion: %s/v1\nkind: Gadget\nmetadata: {name: one}\nspec: {size: 1}\n", group)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": definition, "b.yaml": custom}))
	a.ready("app")
	unwatched := func() *metav1.Condition {
		return meta.FindStatusCondition(a.revision("app-1").Status.Conditions, v1alpha1.ConditionUnwatched)
	}
	a.eventually("the revision says what is not watched", func(context.Context) error {
		if found := unwatched(); found == nil || !strings.Contains(found.Message, "Gadget."+group) {
			return fmt.Errorf("it says %+v", found)
		}
		return nil
	})
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Gadget", "metadata": map[string]any{"name": "one", "namespace": a.namespace}}}
	change := func() {
		t.Helper()
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":2}}`))
		if err := a.client.Patch(t.Context(), live.DeepCopy(), patch); err != nil {
			t.Fatal(err)
		}
		a.eventually("what was changed is put right", func(ctx context.Context) error {
			if err := a.client.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
				return err
			}
			if size, _, _ := unstructured.NestedInt64(live.Object, "spec", "size"); size != 1 {
				return fmt.Errorf("the size is %d", size)
			}
			return nil
		})
	}
	change()

	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "watch-" + group, Labels: map[string]string{"rbac.rukpak.io/aggregate-to-manager-watch": "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{"gadgets"}, Verbs: []string{"list", "watch"}}},
	}
	a.create(role)
	t.Cleanup(func() { _ = a.client.Delete(context.Background(), role) })
	a.eventually("nothing is unwatched any more", func(context.Context) error {
		if found := unwatched(); found != nil {
			return fmt.Errorf("it says %+v", found)
		}
		return nil
	})
	change()
}
