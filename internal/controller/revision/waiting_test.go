// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"context"
	"strings"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestARevisionThatIsDeletedWithItsInstanceWaitsNoMore(t *testing.T) {
	s := newStage(t)
	class := &v1alpha1.ProvisionerClass{}
	s.must(s.client.Get(t.Context(), client.ObjectKey{Name: s.namespace}, class))
	class.Spec.Approval.Mode = v1alpha1.ApprovalManual
	s.must(s.client.Update(t.Context(), class))
	s.run()

	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"))
	eventually(t, "it waits", func() bool { return s.waiting() == 1 })
	s.must(s.client.Delete(t.Context(), instance))
	s.must(s.client.Delete(t.Context(), one))
	eventually(t, "nothing waits", func() bool { return s.waiting() == 0 })
}

// run lets the controller act by itself until the end of the test.
func (s *stage) run() {
	s.Helper()
	mgr, err := ctrl.NewManager(s.env.Config(), ctrl.Options{
		Scheme: scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: new(true)}, // each test has a manager of its own
	})
	s.must(err)
	s.control.Client = mgr.GetClient()
	s.must(s.control.Register(mgr, s.watcher))
	ctx, stop := context.WithCancel(s.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	s.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			s.Error(err)
		}
	})
}

// waiting is how many revisions wait, as the metrics say.
func (s *stage) waiting() float64 {
	s.Helper()
	families, err := s.counters.Gather()
	s.must(err)
	total := 0.0
	for _, family := range families {
		if strings.Contains(family.GetName(), "waiting") {
			for _, metric := range family.GetMetric() {
				total += metric.GetGauge().GetValue()
			}
		}
	}
	return total
}
