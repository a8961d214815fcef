// SPDX-License-Identifier: Apache-2.0

package crdsafety_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/crdsafety"
)

// BenchmarkCheckLive validates custom resources on the real API server. The memory in use at its peak, beyond what was in
// use before, has to be the same for a thousand and for ten thousand.
func BenchmarkCheckLive(b *testing.B) {
	for _, count := range []int{1000, 10000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			s := newStage(b)
			before, after := widgets(b, oldWidget), widgets(b, newWidget)
			s.own(before, after)
			before = s.install(before)
			s.createMany(before, count)
			runtime.GC()
			watched := &watcher{Lister: s.admin, base: inUse()}
			for b.Loop() {
				found, err := crdsafety.CheckLive(b.Context(), watched, before, after, nil, crdsafety.Live{})
				if err != nil || len(found) == 0 {
					b.Fatalf("got %v, %v", found, err)
				}
			}
			b.ReportMetric(float64(watched.peak)/(1<<20), "peak-MiB")
			b.ReportMetric(float64(count*b.N)/b.Elapsed().Seconds(), "objects/s")
		})
	}
}

// watcher looks at the memory in use after each page.
type watcher struct {
	crdsafety.Lister
	base, peak uint64
}

func (w *watcher) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := w.Lister.List(ctx, list, options...)
	if used := inUse(); used > w.base {
		w.peak = max(w.peak, used-w.base)
	}
	return err
}

func inUse() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
