// SPDX-License-Identifier: Apache-2.0

package instance_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/provisioners/plain"
	"rukpak.io/rukpak/provisioner"
)

// slow renders nothing of one namespace before the test ends, and counts what is under way.
type slow struct {
	provisioner.Provisioner
	namespace string
	holds     atomic.Int32
	closing   chan struct{}
}

func (s *slow) Render(ctx context.Context, req provisioner.Request) (provisioner.Result, error) {
	if req.Instance.Namespace == s.namespace {
		s.holds.Add(1)
		defer s.holds.Add(-1)
		<-s.closing
	}
	return s.Provisioner.Render(ctx, req)
}

func (s *stage) run(workers int) {
	s.Helper()
	mgr, err := ctrl.NewManager(cluster.Env(s.T).Config(), ctrl.Options{
		Scheme: s.client.Scheme(), Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	s.must(err)
	s.control.Workers = workers
	s.must(s.control.Register(mgr))
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	s.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
}

func (s *stage) waitUntil(what string, met func() bool) {
	s.Helper()
	look := func(context.Context) (bool, error) { return met(), nil }
	if err := wait.PollUntilContextTimeout(s.Context(), 20*time.Millisecond, time.Minute, true, look); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// TestContentThatTakesLongHoldsUpItsOwnNamespaceAlone has more instances of one namespace than there are workers, and in the
// end each of them has its turn.
func TestContentThatTakesLongHoldsUpItsOwnNamespaceAlone(t *testing.T) {
	s := newStage(t)
	first := s.namespace
	for i := range 4 {
		s.must(s.client.Create(s.Context(), &v1alpha1.BundleInstance{
			ObjectMeta: metav1.ObjectMeta{Namespace: first, Name: fmt.Sprintf("more-%d", i)},
			Spec:       v1alpha1.BundleInstanceSpec{BundleRef: &v1alpha1.LocalReference{Name: "content"}, ServiceAccountName: "installer"},
		}))
	}
	only := &slow{Provisioner: plain.New(), namespace: first, closing: make(chan struct{})}
	s.serve(only)
	s.run(2)
	s.waitUntil("the namespace has its share", func() bool { return only.holds.Load() == 2 })
	s.namespace = cluster.Env(t).NewNamespace(t)
	s.prepare()
	s.waitUntil("an instance of another namespace has a revision", func() bool { return len(s.revisions()) == 1 })
	if n := only.holds.Load(); n != 2 {
		t.Errorf("%d are rendered at once, want 2", n)
	}
	close(only.closing)
	s.namespace = first
	s.waitUntil("all others have revisions", func() bool { return len(s.revisions()) == 5 })
}
