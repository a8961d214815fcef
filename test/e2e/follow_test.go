// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
)

func TestATagThatMovesIsFollowedAndEachStepIsApproved(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalManual)
	ref := a.push("stable", map[string]string{"a.yaml": configMap("one", "1")})
	a.instance("app", ref, func(i *v1alpha1.BundleInstance) {
		i.Spec.Track = &v1alpha1.Track{Interval: metav1.Duration{Duration: 10 * time.Second}}
	})
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	a.approve("app-1", v1alpha1.DecisionApprove)
	a.ready("app")

	a.push("stable", map[string]string{"a.yaml": configMap("one", "2")})
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	a.condition("app", v1alpha1.ConditionTracking, metav1.ConditionTrue, v1alpha1.ReasonFollowing)
	a.value("one", "1")
	bundle := &v1alpha1.Bundle{}
	if err := a.client.Get(t.Context(), client.ObjectKey{Namespace: a.namespace, Name: a.get("app").Status.BundleName}, bundle); err != nil {
		t.Fatal(err)
	}
	if len(bundle.Spec.Pins) != 1 || bundle.Spec.Pins[0].Version != "stable" || bundle.Status.Sources[0].Digest != bundle.Spec.Pins[0].Digest {
		t.Errorf("pins %+v, resolved %+v", bundle.Spec.Pins, bundle.Status.Sources)
	}

	a.push("stable", map[string]string{"a.yaml": configMap("one", "3")})
	a.eventually("what waits for its approval is followed, too", func(context.Context) error {
		if got := a.get("app").Status.LastRevision; got != 3 {
			return fmt.Errorf("the last revision is %d", got)
		}
		return nil
	})
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	a.approve("app-3", v1alpha1.DecisionApprove)
	a.ready("app")
	a.value("one", "3")

	env.Registry.Faults.Add(fault.Rule{Path: regexp.MustCompile(a.namespace + "/.*/manifests/"), Action: fault.Status(http.StatusServiceUnavailable)})
	t.Cleanup(env.Registry.Faults.Clear)
	a.condition("app", v1alpha1.ConditionTracking, metav1.ConditionFalse, source.ReasonRegistryUnreachable)
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	if err := a.client.Delete(t.Context(), a.configMap("one")); err != nil {
		t.Fatal(err)
	}
	a.value("one", "3") // a source that is gone keeps nothing from being healed
	env.Registry.Faults.Clear()
	a.condition("app", v1alpha1.ConditionTracking, metav1.ConditionTrue, v1alpha1.ReasonFollowing)
	if got := a.get("app").Status.LastRevision; got != 3 {
		t.Errorf("%d revisions, want 3", got)
	}
}

func TestSourcesAreLaidOverOneAnotherAndConflictsAreTold(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "overlay"},
		Data:       map[string]string{"a": configMap("one", "overlay"), "unused": "not YAML: ["},
	})
	ref := a.push("base", map[string]string{"a.yaml": configMap("one", "base"), "b.yaml": configMap("two", "base")})
	a.instance("app", ref, func(i *v1alpha1.BundleInstance) {
		i.Spec.Bundle.Sources = append(i.Spec.Bundle.Sources,
			v1alpha1.BundleSource{ConfigMap: &v1alpha1.ObjectSource{Name: "overlay", Items: []v1alpha1.KeyToPath{{Key: "a", Path: "a.yaml"}}}},
			v1alpha1.BundleSource{Path: "more", Inline: &v1alpha1.InlineSource{Files: map[string]string{"c.yaml": configMap("three", "inline")}}})
	})
	a.ready("app")
	a.value("one", "overlay")
	a.value("two", "base")
	a.value("three", "inline")
	bundle := &v1alpha1.Bundle{}
	a.eventually("the conflict is told", func(ctx context.Context) error {
		if err := a.client.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: a.get("app").Status.BundleName}, bundle); err != nil {
			return err
		}
		if got := bundle.Status.Content.Conflicts; len(got) != 1 || got[0] != (v1alpha1.ContentConflict{Path: "a.yaml", Hidden: 0, Seen: 1}) {
			return fmt.Errorf("conflicts %+v", got)
		}
		return nil
	})
}
