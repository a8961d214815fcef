// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/devenv"
	"rukpak.io/rukpak/internal/wire"
)

// A manager with a shared store puts content there, under the name of its cluster, and takes it from there when its
// disk is empty: without a layer, which only fetching makes.
func TestSharedStoreFillsAnEmptyDisk(t *testing.T) {
	shared := t.TempDir()
	own, err := devenv.Start(t.Context(), devenv.Options{NoBuild: true, ManagerArgs: []string{"--shared-store=file://" + shared}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Stop() })
	c, err := client.New(own.Cluster.Config(), client.Options{Scheme: wire.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	namespace := own.Cluster.NewNamespace(t)
	bundle := &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"},
		Spec: v1alpha1.BundleSpec{ProvisionerClassName: namespace, Sources: []v1alpha1.BundleSource{
			{Inline: &v1alpha1.InlineSource{Files: map[string]string{"a.yaml": "kind: A"}}},
		}},
	}
	for _, object := range []client.Object{
		&v1alpha1.ProvisionerClass{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: v1alpha1.ProvisionerClassSpec{Provisioner: "plain.rukpak.io"}},
		bundle,
	} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, own, func() bool {
		return c.Get(t.Context(), client.ObjectKeyFromObject(bundle), bundle) == nil && meta.IsStatusConditionTrue(bundle.Status.Conditions, v1alpha1.ConditionShared)
	})
	system := &corev1.Namespace{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, system); err != nil {
		t.Fatal(err)
	}
	if owner, err := os.ReadFile(filepath.Join(shared, "owner", "cluster")); err != nil || !strings.Contains(string(owner), string(system.UID)) {
		t.Errorf("the store belongs to %q, %v", owner, err)
	}
	own.StopManager(10 * time.Second)
	if err := os.RemoveAll(own.ContentDir()); err != nil {
		t.Fatal(err)
	}
	if err := own.StartManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	tree := strings.TrimPrefix(string(bundle.Status.Content.Digest), "sha256:")
	eventually(t, own, func() bool {
		_, err := os.Stat(filepath.Join(own.ContentDir(), "trees", tree))
		return err == nil
	})
	if layers, err := os.ReadDir(filepath.Join(own.ContentDir(), "layers")); err != nil || len(layers) > 0 {
		t.Errorf("the source was asked: %d layers, %v", len(layers), err)
	}
	version := bundle.ResourceVersion
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(bundle), bundle); err != nil || bundle.ResourceVersion != version {
		t.Errorf("the restart wrote to the bundle: %v", err)
	}
}

// eventually waits for something to be so.
func eventually(t *testing.T, own *devenv.Env, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			log, _ := os.ReadFile(own.ManagerLog())
			t.Fatalf("it does not come to pass; the manager says:\n%s", log[max(0, len(log)-4000):])
		}
	}
}
