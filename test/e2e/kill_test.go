// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/testenv/fault"
)

// many is a bundle of so many ConfigMaps, the first half of which every
// version has.
func many(version string, count int) map[string]string {
	var all strings.Builder
	for i := range count {
		name := fmt.Sprintf("kept-%03d", i)
		if i >= count/2 {
			name = fmt.Sprintf("%s-%03d", version, i)
		}
		fmt.Fprintf(&all, "---\n%s", configMap(name, version))
	}
	return map[string]string{"all.yaml": all.String()}
}

// configMaps are those that carry the mark of an instance.
func (a *tenant) configMaps() []corev1.ConfigMap {
	a.t.Helper()
	var list corev1.ConfigMapList
	if err := a.client.List(a.t.Context(), &list, client.InNamespace(a.namespace), client.HasLabels{"rukpak.io/instance-uid"}); err != nil {
		a.t.Fatal(err)
	}
	return list.Items
}

// owned gives the names and UIDs of the ConfigMaps of an instance.
func (a *tenant) owned() map[string]types.UID {
	a.t.Helper()
	found := map[string]types.UID{}
	for _, one := range a.configMaps() {
		found[one.Name] = one.UID
	}
	return found
}

// count is the number of owned ConfigMaps that have a prefix and a value ("" for any).
func (a *tenant) count(prefix, value string) (count int) {
	a.t.Helper()
	for _, one := range a.configMaps() {
		if strings.HasPrefix(one.Name, prefix) && (value == "" || one.Data["value"] == value) {
			count++
		}
	}
	return count
}

func (a *tenant) startManager() {
	a.t.Helper()
	if err := env.StartManager(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
}

// The acts of an instance's life during which something may be killed.
const (
	activating = "activation"
	pivoting   = "pivot"
	removing   = "teardown"
)

// lifeObjects is how many objects an instance has whose life is disturbed: so many that half of them are seen.
const lifeObjects = 160

// moment is a step of an act, known by what can be seen from outside.
type moment struct {
	act, step string
	reached   func(a *tenant) bool
}

var moments = []moment{
	{activating, "the reference is resolved", func(a *tenant) bool { return a.bundleIs(v1alpha1.ConditionResolved) }},
	{activating, "a layer is being unpacked", func(*tenant) bool {
		left, err := filepath.Glob(filepath.Join(env.ContentDir(), "work", "*"))
		return err == nil && len(left) > 0
	}},
	{activating, "the content is stored", func(a *tenant) bool { return a.bundleIs(v1alpha1.ConditionUnpacked) }},
	{activating, "the revision is made", func(a *tenant) bool { return a.peek("app-1") != nil }},
	{activating, "the manifests are stored", func(a *tenant) bool { return a.manifestSecrets("app-1") > 0 }},
	{activating, "the plan is made", func(a *tenant) bool { return a.revisionIs("app-1", v1alpha1.ConditionPlanned) }},
	{activating, "the first write is announced", func(a *tenant) bool {
		revision := a.peek("app-1")
		return revision != nil && revision.Status.ActivatedAt != nil
	}},
	{activating, "some objects are created", func(a *tenant) bool { return a.count("", "") > lifeObjects/4 }},
	{activating, "all objects are created", func(a *tenant) bool { return a.count("", "") == lifeObjects }},
	{activating, "the revision is active", func(a *tenant) bool { return a.revisionIs("app-1", v1alpha1.ConditionActive) }},
	{pivoting, "the next revision is made", func(a *tenant) bool { return a.peek("app-2") != nil }},
	{pivoting, "the next plan is made", func(a *tenant) bool { return a.revisionIs("app-2", v1alpha1.ConditionPlanned) }},
	{pivoting, "some objects are changed", func(a *tenant) bool { return a.count("kept-", "v2") > 0 }},
	{pivoting, "some objects are pruned", func(a *tenant) bool { return a.count("v1-", "") < lifeObjects/2 }},
	{removing, "the deletion is asked for", func(*tenant) bool { return true }},
	{removing, "some objects are removed", func(a *tenant) bool { return a.count("", "") < lifeObjects }},
}

func (a *tenant) bundleIs(conditionType string) bool {
	var list v1alpha1.BundleList
	if err := a.client.List(a.t.Context(), &list, client.InNamespace(a.namespace)); err != nil || len(list.Items) == 0 {
		return false
	}
	return meta.IsStatusConditionTrue(list.Items[0].Status.Conditions, conditionType)
}

func (a *tenant) peek(name string) *v1alpha1.InstanceRevision {
	revision := &v1alpha1.InstanceRevision{}
	if err := a.client.Get(a.t.Context(), types.NamespacedName{Namespace: a.namespace, Name: name}, revision); err != nil {
		return nil
	}
	return revision
}

func (a *tenant) revisionIs(name, conditionType string) bool {
	revision := a.peek(name)
	return revision != nil && meta.IsStatusConditionTrue(revision.Status.Conditions, conditionType)
}

func (a *tenant) manifestSecrets(revision string) (count int) {
	var list corev1.SecretList
	if err := a.client.List(a.t.Context(), &list, client.InNamespace(a.namespace)); err != nil {
		return 0
	}
	for _, secret := range list.Items {
		for _, owner := range secret.OwnerReferences {
			if owner.Kind == "InstanceRevision" && owner.Name == revision {
				count++
			}
		}
	}
	return count
}

// waitFor looks without a pause until a moment is reached.
func (a *tenant) waitFor(m moment) {
	a.t.Helper()
	for deadline := time.Now().Add(patience); !m.reached(a); {
		if time.Now().After(deadline) {
			a.t.Fatalf("%s: never came", m.step)
		}
	}
}

// live leads an instance through activation, pivot and deletion, and disturbs it in one moment. Whatever the
// disturbance is, it has to end where it would have ended without.
func (a *tenant) live(at moment, disturb func()) {
	a.t.Helper()
	reach := func(act string) {
		if at.act == act {
			a.waitFor(at)
			disturb()
		}
	}
	first, second := a.push("v1", many("v1", lifeObjects)), a.push("v2", many("v2", lifeObjects))

	a.instance("app", first)
	reach(activating)
	a.ready("app")
	before := a.owned()
	if len(before) != lifeObjects {
		a.t.Fatalf("%d objects after the first activation, want %d", len(before), lifeObjects)
	}

	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(second) })
	reach(pivoting)
	a.ready("app")
	a.eventually("the old objects are pruned", func(context.Context) error {
		if got := len(a.owned()); got != lifeObjects {
			return fmt.Errorf("%d objects, want %d", got, lifeObjects)
		}
		return nil
	})
	after := a.owned()
	for name, uid := range before {
		if strings.HasPrefix(name, "kept-") && after[name] != uid {
			a.t.Errorf("%s was deleted and made again, or is gone", name)
		}
	}
	if got := a.get("app").Status.LastRevision; got != 2 {
		a.t.Errorf("%d revisions, want 2: a restart must not make another", got)
	}

	instance := a.get("app")
	if err := a.client.Delete(a.t.Context(), instance); err != nil {
		a.t.Fatal(err)
	}
	reach(removing)
	a.gone(instance)
	if left := a.owned(); len(left) != 0 {
		a.t.Errorf("left behind: %v", left)
	}
}

func TestAManagerKilledAtAnyStepConverges(t *testing.T) {
	for _, at := range moments {
		t.Run(at.act+"/"+at.step, func(t *testing.T) {
			a := newTenant(t, v1alpha1.ApprovalAutomatic)
			a.live(at, func() {
				env.StopManager(0)
				a.startManager()
			})
		})
	}
}

// TestAnAPIServerThatIsRestartedOnTheWayCostsNothing kills the API server, which takes some seconds to come back, while
// the manager goes on.
func TestAnAPIServerThatIsRestartedOnTheWayCostsNothing(t *testing.T) {
	for _, step := range []string{"some objects are created", "some objects are changed", "some objects are removed"} {
		t.Run(step, func(t *testing.T) {
			a := newTenant(t, v1alpha1.ApprovalAutomatic)
			a.live(momentOf(t, step), func() {
				env.Cluster.KillAPIServer()
				if err := env.Cluster.StartAPIServer(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func momentOf(t *testing.T, step string) moment {
	t.Helper()
	for _, m := range moments {
		if m.step == step {
			return m
		}
	}
	t.Fatalf("no step %q", step)
	return moment{}
}

// TestAManagerKilledWhileALayerIsFetchedConverges holds the registry's answer back, so that the kill falls into it.
func TestAManagerKilledWhileALayerIsFetchedConverges(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	ref := a.push("v1", many("fetched", lifeObjects)) // no other test has stored these bytes
	env.Registry.Faults.Add(fault.Rule{Method: http.MethodGet, Path: regexp.MustCompile(a.namespace + "/.*/blobs/"), Action: env.Registry.Faults.Stall(1)})
	t.Cleanup(env.Registry.Faults.Clear)
	a.instance("app", ref)
	a.waitFor(moment{step: "a blob is asked for", reached: func(*tenant) bool {
		for _, request := range env.Registry.Requests() {
			if strings.Contains(request.Path, a.namespace) && strings.Contains(request.Path, "/blobs/") && request.Method == http.MethodGet {
				return true
			}
		}
		return false
	}})
	env.StopManager(0)
	env.Registry.Faults.Clear()
	a.startManager()
	a.ready("app")
	if got := len(a.owned()); got != lifeObjects {
		t.Errorf("%d objects, want %d", got, lifeObjects)
	}
}

// TestAManagerKilledBeforeApprovalAppliesNothing: what was planned before the kill still waits after it.
func TestAManagerKilledBeforeApprovalAppliesNothing(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}))
	a.waitFor(moment{step: "the revision is made", reached: func(a *tenant) bool { return a.peek("app-1") != nil }})
	env.StopManager(0)
	a.startManager()
	a.eventually("the revision waits", func(context.Context) error {
		if a.get("app").Status.Pending == nil || !a.revisionIs("app-1", v1alpha1.ConditionPlanned) {
			return fmt.Errorf("status %+v", a.get("app").Status)
		}
		return nil
	})
	if err := a.client.Get(t.Context(), client.ObjectKeyFromObject(a.configMap("one")), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("it was applied without an approval: %v", err)
	}
	a.approve("app-1", v1alpha1.DecisionApprove)
	a.ready("app")
}

func TestAManagerThatLostItsContentFetchesItAgain(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}))
	a.ready("app")
	env.StopManager(0)
	if err := env.LoseContent(); err != nil {
		t.Fatal(err)
	}
	a.startManager()
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
