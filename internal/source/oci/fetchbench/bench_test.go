// SPDX-License-Identifier: Apache-2.0

package fetchbench

import (
	"testing"

	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

var shapes = map[string]Shape{
	"layers5": {Layers: 5, Bytes: 300 << 20, SmallFiles: 20},
	"layers1": {Layers: 1, Bytes: 300 << 20, SmallFiles: 20},
	"small1":  {Layers: 1, Bytes: 100 << 20, SmallFiles: 100},
}

// BenchmarkFetch reports our throughput as MB/s and its ratio to that of
// go-containerregistry. Run it with -benchtime 5x: an iteration is one fetch each way.
func BenchmarkFetch(b *testing.B) {
	registry := ociregistry.New(b, ociregistry.Options{Dir: b.TempDir()})
	for name, shape := range shapes {
		b.Run(name, func(b *testing.B) {
			ref, err := Push(b.Context(), registry.Host(), "bench/"+name+":1", b.TempDir(), shape)
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			report, err := Compare(b.Context(), ref, b.TempDir(), b.N)
			if err != nil {
				b.Fatal(err)
			}
			b.Log(report)
			b.SetBytes(report.Bytes)
			b.ReportMetric(report.Ratio, "ratio")
			b.ReportMetric(float64(report.Bytes)/(1<<20)/report.Ours.Seconds(), "MiB/s")
		})
	}
}

func TestBothWaysOfAComparisonRun(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	ref, err := Push(t.Context(), registry.Host(), "bench:1", t.TempDir(), Shape{Layers: 2, Bytes: 4 << 20, SmallFiles: 50})
	if err != nil {
		t.Fatal(err)
	}
	report, err := Compare(t.Context(), ref, t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if report.Bytes != 4<<20 || report.Ratio <= 0 {
		t.Errorf("got %+v", report)
	}
	t.Log(report)
}
