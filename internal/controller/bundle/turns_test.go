// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/controller/origin"
	"rukpak.io/rukpak/internal/source/oci"
)

// silent is a registry that takes requests and never answers.
func silent(t *testing.T) (host string, holds *atomic.Int32) {
	t.Helper()
	holds = &atomic.Int32{}
	closing := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		holds.Add(1)
		defer holds.Add(-1)
		select {
		case <-r.Context().Done():
		case <-closing:
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(closing) })
	return strings.TrimPrefix(server.URL, "http://"), holds
}

// run lets the controller act by itself.
func (s *stage) run(workers int) {
	s.Helper()
	store, err := content.OpenDisk(s.Context(), s.TempDir(), content.Options{})
	if err != nil {
		s.Fatal(err)
	}
	mgr, err := ctrl.NewManager(cluster.Env(s.T).Config(), ctrl.Options{
		Scheme: s.client.Scheme(), Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		s.Fatal(err)
	}
	s.control.Client, s.control.Workers, s.control.Lost = mgr.GetClient(), workers, make(chan event.GenericEvent)
	s.control.Contents = store
	s.control.Sources = &origin.Opener{Live: mgr.GetAPIReader(), Namespace: s.own, OCI: oci.New(store, oci.Options{StallTimeout: time.Hour})}
	if err := s.control.Register(mgr); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	s.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
		_ = store.Close() // the test is over
	})
}

func (s *stage) waitUntil(what string, met func() bool) {
	s.Helper()
	look := func(context.Context) (bool, error) { return met(), nil }
	if err := wait.PollUntilContextTimeout(s.Context(), 20*time.Millisecond, time.Minute, true, look); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

func (s *stage) ready(b *v1alpha1.Bundle) func() bool {
	return func() bool {
		err := s.client.Get(s.Context(), client.ObjectKeyFromObject(b), b)
		return err == nil && meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.ConditionReady)
	}
}

// TestServersThatNeverAnswerHoldUpTheirOwnNamespaceAlone has many bundles of one namespace that name a server which
// holds every request for ever.
func TestServersThatNeverAnswerHoldUpTheirOwnNamespaceAlone(t *testing.T) {
	s := newStage(t)
	host, holds := silent(t)
	for range 10 {
		s.of(v1alpha1.BundleSource{OCI: &v1alpha1.OCISource{Ref: host + "/app:1", Insecure: true}})
	}
	s.run(2)
	s.waitUntil("the silent server is asked", func() bool { return holds.Load() >= 2 })
	s.namespace = cluster.Env(t).NewNamespace(t)
	s.class(nil)
	other := s.of(v1alpha1.BundleSource{Inline: &v1alpha1.InlineSource{Files: map[string]string{"a": "b"}}})
	s.waitUntil("a bundle of another namespace is ready", s.ready(other))
	if n := holds.Load(); n != 2 {
		t.Errorf("%d requests are held, want 2", n)
	}
}

// TestEveryBundleThatWaitedHasItsTurn is about those of one namespace, more than its workers.
func TestEveryBundleThatWaitedHasItsTurn(t *testing.T) {
	s := newStage(t)
	var all []*v1alpha1.Bundle
	for range 12 {
		all = append(all, s.bundle(nil))
	}
	s.run(1)
	for _, b := range all {
		s.waitUntil("bundle "+b.Name+" is ready", s.ready(b))
	}
}
