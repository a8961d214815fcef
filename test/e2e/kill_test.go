// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

// many is a bundle of so many ConfigMaps, the first half of which every
// version has.
func many(version string, count int) map[string]string {
	var all strings.Builder
	for i := range count {
		name := fmt.Sprintf("kept-%02d", i)
		if i >= count/2 {
			name = fmt.Sprintf("%s-%02d", version, i)
		}
		fmt.Fprintf(&all, "---\n%s", configMap(name, version))
	}
	return map[string]string{"all.yaml": all.String()}
}

// owned gives the names and UIDs of the ConfigMaps of an instance.
func (a *tenant) owned() map[string]types.UID {
	a.t.Helper()
	var list corev1.ConfigMapList
	if err := a.client.List(a.t.Context(), &list, client.InNamespace(a.namespace), client.HasLabels{"rukpak.io/instance-uid"}); err != nil {
		a.t.Fatal(err)
	}
	found := map[string]types.UID{}
	for _, one := range list.Items {
		found[one.Name] = one.UID
	}
	return found
}

func (a *tenant) restartManagerAfter(delay time.Duration) {
	a.t.Helper()
	time.Sleep(delay)
	env.StopManager(0)
	if err := env.StartManager(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
}

// TestAManagerKilledAtAnyMomentConverges kills the manager after growing
// pauses: during fetch, unpack, render, plan, activation, pivot, prune and
// teardown, wherever the pause happens to end.
func TestAManagerKilledAtAnyMomentConverges(t *testing.T) {
	const objects = 40
	for _, delay := range []time.Duration{0, 30, 60, 100, 150, 220, 300, 400, 550, 800} {
		delay *= time.Millisecond
		t.Run(delay.String(), func(t *testing.T) {
			a := newTenant(t, v1alpha1.ApprovalAutomatic)
			first, second := a.push("v1", many("v1", objects)), a.push("v2", many("v2", objects))

			a.instance("app", first)
			a.restartManagerAfter(delay)
			a.ready("app")
			before := a.owned()
			if len(before) != objects {
				t.Fatalf("%d objects after the first activation, want %d", len(before), objects)
			}

			a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(second) })
			a.restartManagerAfter(delay)
			a.ready("app")
			a.eventually("the old objects are pruned", func(context.Context) error {
				if got := len(a.owned()); got != objects {
					return fmt.Errorf("%d objects, want %d", got, objects)
				}
				return nil
			})
			after := a.owned()
			for name, uid := range before {
				if strings.HasPrefix(name, "kept-") && after[name] != uid {
					t.Errorf("%s was deleted and made again, or is gone", name)
				}
			}
			if got := a.get("app").Status.LastRevision; got != 2 {
				t.Errorf("%d revisions, want 2: a restart must not make another", got)
			}

			instance := a.get("app")
			if err := a.client.Delete(t.Context(), instance); err != nil {
				t.Fatal(err)
			}
			a.restartManagerAfter(delay)
			a.gone(instance)
			if left := a.owned(); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestAManagerThatLostItsContentFetchesItAgain(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}))
	a.ready("app")
	env.StopManager(0)
	if err := env.LoseContent(); err != nil {
		t.Fatal(err)
	}
	if err := env.StartManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.client.Delete(t.Context(), a.configMap("one")); err != nil {
		t.Fatal(err)
	}
	a.value("one", "1")
	// Another configuration renders the same content again.
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Strategy.RecreateImmutable = true })
	a.ready("app")
	if got := a.get("app").Status.Active.Number; got != 2 {
		t.Errorf("revision %d is active, want 2", got)
	}
}
