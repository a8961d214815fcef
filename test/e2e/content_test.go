// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/api/v1alpha1"
)

// The content API is part of the manager: it comes back with it, under new keys,
// and what the store has lost meanwhile is fetched when it is asked for.
func TestContentCanBeReadAgainAfterTheManagerAndItsStoreWereLost(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalManual)
	ref := a.push("content", map[string]string{"app.yaml": configMap("app", "one")})
	a.create(&v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "web"}, Spec: *a.bundle(ref)})
	a.eventually("content of the bundle", func(ctx context.Context) error {
		bundle := &v1alpha1.Bundle{}
		if err := a.client.Get(ctx, types.NamespacedName{Namespace: a.namespace, Name: "web"}, bundle); err != nil {
			return err
		}
		if bundle.Status.Content == nil {
			return fmt.Errorf("none yet: %+v", bundle.Status.Conditions)
		}
		return nil
	})
	path := "/apis/content.rukpak.io/v1alpha1/namespaces/" + a.namespace + "/bundles/web/files/app.yaml"
	read := func() (string, error) { return env.Cluster.Kubectl(t.Context(), "get", "--raw", path) }
	if text, err := read(); err != nil || text != configMap("app", "one") {
		t.Fatalf("%v: %s", err, text)
	}

	env.StopManager(0)
	stopped := true
	t.Cleanup(func() {
		if stopped {
			_ = env.StartManager(context.WithoutCancel(t.Context()))
		}
	})
	if text, err := read(); err == nil || !strings.Contains(err.Error(), "unable to handle the request") {
		t.Errorf("without a manager: %v: %s", err, text)
	}
	if err := env.LoseContent(); err != nil {
		t.Fatal(err)
	}
	a.startManager()
	stopped = false
	if text, err := read(); err != nil || text != configMap("app", "one") {
		t.Errorf("after it was lost: %v: %s", err, text)
	}
}
