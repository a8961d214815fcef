// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/internal/ownership"
)

func TestItTellsWhatHappensToMarkedObjectsAndToNoOthers(t *testing.T) {
	b := newBench(t, 0)
	ns := b.env.NewNamespace(t)
	early := b.create(t, object(configMaps, ns, "early", &red))
	b.create(t, object(configMaps, ns, "stranger", nil))
	b.use(t, red, configMaps)
	b.expect(t, "Added team/red ConfigMap "+ns+"/early")
	b.expect(t, "Synced team/red ConfigMap ")

	cm := b.create(t, object(configMaps, ns, "cm", &red))
	b.expect(t, "Added team/red ConfigMap "+ns+"/cm")
	kept, ok := b.Get(ownership.IDOf(cm))
	if !ok || kept.ResourceVersion != cm.GetResourceVersion() || kept.UID != cm.GetUID() || kept.Kind != "ConfigMap" || kept.APIVersion != "v1" {
		t.Errorf("known as %+v", kept)
	}
	if ownership.OwnFieldsHash(kept) != ownership.OwnFieldsHash(cm) || ownership.OwnFieldsHash(cm) == "" {
		t.Error("the hash of our fields is not that of the object")
	}

	b.patch(t, cm, `{"data":{"b":"somebody else's"}}`)
	b.expect(t, "Changed team/red ConfigMap "+ns+"/cm minor")
	b.patch(t, cm, `{"data":{"a":"2"}}`)
	b.expect(t, "Changed team/red ConfigMap "+ns+"/cm")
	b.patch(t, cm, `{"metadata":{"labels":{"rukpak.io/instance-name":"forged"}}}`)
	b.expect(t, "Changed team/red ConfigMap "+ns+"/cm")
	b.patch(t, cm, `{"metadata":{"labels":{"rukpak.io/instance-uid":"blue-uid","rukpak.io/instance-name":"blue"}}}`)
	b.expect(t, "Deleted team/red ConfigMap "+ns+"/cm")
	b.expect(t, "Added team/blue ConfigMap "+ns+"/cm")
	if got := b.List(blue.UID); !cmp.Equal(got, []ownership.ID{ownership.IDOf(cm)}) {
		t.Errorf("blue has %v", got)
	}
	b.patch(t, cm, `{"metadata":{"labels":{"rukpak.io/instance-uid":null}}}`)
	b.expect(t, "Deleted team/blue ConfigMap "+ns+"/cm")
	b.delete(t, early)
	b.expect(t, "Deleted team/red ConfigMap "+ns+"/early")
	if got := b.told(0, "stranger"); got != nil {
		t.Errorf("told of a stranger's object: %v", got)
	}
	if _, ok := b.Get(ownership.ID{Kind: "ConfigMap", Namespace: ns, Name: "stranger"}); ok {
		t.Error("a stranger's object is known")
	}
}

func TestAKindIsWatchedWhileItIsUsedAndALittleLonger(t *testing.T) {
	const linger = 300 * time.Millisecond
	b := newBench(t, linger)
	if b.Synced(red.UID) {
		t.Error("an owner that uses nothing is synced")
	}
	b.use(t, red, configMaps, secrets)
	b.use(t, blue, configMaps)
	expectKinds(t, b, "ConfigMap", "Secret")

	b.use(t, red, configMaps) // nobody uses Secrets any more, but soon again
	time.Sleep(linger / 3)
	b.use(t, red, configMaps, secrets)
	time.Sleep(2 * linger)
	expectKinds(t, b, "ConfigMap", "Secret")

	b.Release(red.UID)
	eventually(t, func() bool { return len(b.Kinds()) == 1 }, func() string { return fmt.Sprint(b.Kinds()) })
	expectKinds(t, b, "ConfigMap")
	b.Release(blue.UID)
	b.Release(blue.UID)
	eventually(t, func() bool { return len(b.Kinds()) == 0 && watching() == 0 }, func() string {
		return fmt.Sprintf("%v are watched, by %d goroutines", b.Kinds(), watching())
	})
}

func expectKinds(t *testing.T, b *bench, want ...string) {
	t.Helper()
	var got []string
	for _, gk := range b.Kinds() {
		got = append(got, gk.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds that are watched (-want +got):\n%s", diff)
	}
}

func TestStopLeavesNothingBehind(t *testing.T) {
	b := newBench(t, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.Start(ctx) }()
	nowhere := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Nowhere"}
	if err := b.Use(blue, []schema.GroupVersionKind{nowhere}); err != nil {
		t.Fatal(err)
	}
	b.use(t, red, configMaps, secrets)
	if watching() == 0 {
		t.Error("the count of goroutines sees nothing")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	b.Stop() // once more
	eventually(t, func() bool { return watching() == 0 }, func() string { return fmt.Sprintf("%d goroutines are left", watching()) })
	if err := b.Use(red, nil); !errors.Is(err, ErrStopped) {
		t.Errorf("use after the end: %v", err)
	}
}

func TestAKindThatIsNotServedIsPendingUntilItIs(t *testing.T) {
	b := newBench(t, 0)
	ns := b.env.NewNamespace(t)
	widgets := schema.GroupVersionKind{Group: "watch.example.com", Version: "v1", Kind: "Widget"}
	if err := b.Use(red, []schema.GroupVersionKind{widgets, configMaps}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		pending := b.Pending(red.UID)
		return len(pending) == 1 && pending[0].Err != nil
	}, func() string { return fmt.Sprint(b.Pending(red.UID)) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.Wait(ctx, red.UID); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Widget.watch.example.com (") {
		t.Errorf("waiting: %v", err)
	}

	installWidgets(t, b, "v1")
	if err := b.Use(red, []schema.GroupVersionKind{widgets, configMaps}); err != nil { // as the next reconcile does
		t.Fatal(err)
	}
	b.expect(t, "Synced team/red Widget.watch.example.com ")
	widget := object(widgets, ns, "w", &red)
	b.create(t, widget)
	b.expect(t, "Added team/red Widget.watch.example.com "+ns+"/w")

	removeWidgets(t, b)
	b.expect(t, "Deleted team/red Widget.watch.example.com "+ns+"/w")
	eventually(t, func() bool { return !b.Synced(red.UID) }, func() string { return "still synced without the kind" })
	if _, ok := b.Get(ownership.IDOf(widget)); ok {
		t.Error("an object of a kind that is gone is known")
	}

	installWidgets(t, b, "v2") // served in another version now
	b.create(t, object(widgets.GroupKind().WithVersion("v2"), ns, "w", &red))
	if err := b.Use(red, []schema.GroupVersionKind{widgets.GroupKind().WithVersion("v2"), configMaps}); err != nil {
		t.Fatal(err)
	}
	b.expect(t, "Synced team/red Widget.watch.example.com ")
	if _, ok := b.Get(ownership.IDOf(widget)); !ok {
		t.Error("an object of a kind that came back is not known")
	}
	removeWidgets(t, b)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.logs) > 10 {
		t.Errorf("%d lines of log:\n%s", len(b.logs), strings.Join(b.logs, "\n"))
	}
}

const widgetsName = "widgets.watch.example.com"

func installWidgets(t *testing.T, b *bench, version string) {
	t.Helper()
	definition := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"` + widgetsName + `"},
		"spec":{"group":"watch.example.com","scope":"Namespaced","names":{"kind":"Widget","plural":"widgets"},
		"versions":[{"name":"` + version + `","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
	if _, err := b.env.KubectlInput(t.Context(), definition, "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.env.Kubectl(t.Context(), "wait", "--for=condition=Established", "crd/"+widgetsName, "--timeout=30s"); err != nil {
		t.Fatal(err)
	}
	// Established is said some moments before all is served.
	eventually(t, func() bool {
		_, err := b.env.Kubectl(t.Context(), "get", "widgets."+version+".watch.example.com", "-A")
		return err == nil
	}, func() string { return "widgets are not served" })
}

func removeWidgets(t *testing.T, b *bench) {
	t.Helper()
	if _, err := b.env.Kubectl(t.Context(), "delete", "crd", widgetsName, "--timeout=30s"); err != nil {
		t.Fatal(err)
	}
}

func TestItGoesOnAfterARestartOfTheAPIServer(t *testing.T) {
	b := newBench(t, 0)
	ns := b.env.NewNamespace(t)
	cm := b.create(t, object(configMaps, ns, "cm", &red))
	widgets := schema.GroupVersionKind{Group: "watch.example.com", Version: "v1", Kind: "Widget"}
	installWidgets(t, b, "v1")
	b.create(t, object(widgets, ns, "w", &red))
	b.use(t, red, configMaps, namespaces, widgets)
	b.expect(t, "Added team/red ConfigMap "+ns+"/cm")

	before := b.count()
	b.env.KillAPIServer()
	time.Sleep(500 * time.Millisecond)
	if _, ok := b.Get(ownership.IDOf(cm)); !ok {
		t.Error("what was known is forgotten when the API server goes")
	}
	if err := b.env.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	b.delete(t, cm)
	b.expect(t, "Deleted team/red ConfigMap "+ns+"/cm")
	t.Logf("news %s after the API server was ready", time.Since(begun).Round(time.Millisecond))
	b.create(t, object(configMaps, ns, "new", &blue))
	b.expect(t, "Added team/blue ConfigMap "+ns+"/new")
	if got := b.told(before, "Added team/red ConfigMap "+ns+"/cm"); got != nil {
		t.Errorf("told again of what was known: %v", got)
	}
	widget := object(widgets, ns, "later", &red)
	b.create(t, widget)
	b.expect(t, "Added team/red Widget.watch.example.com "+ns+"/later")
	if got := b.told(before, "Deleted team/red Widget"); got != nil {
		t.Errorf("an API server that only begins to serve a kind made us forget it: %v", got)
	}
	removeWidgets(t, b)
}
