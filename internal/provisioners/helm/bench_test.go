// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"rukpak.io/rukpak/provisioner"
)

// benchCharts are those of the figure in docs/benchmarks.md.
var benchCharts = []string{"podinfo/6.11.2", "ingress-nginx/4.15.1", "alertmanager/head"}

// BenchmarkRender renders real charts from their files to objects; beside it Helm's own library does the same, from files to
// the text of its objects. The sides take turns, and the median of the ratios counts, so that both see the same machine.
func BenchmarkRender(b *testing.B) {
	for _, name := range benchCharts {
		dir := sharedChart(b, name)
		b.Run(name, func(b *testing.B) {
			req := request(b, dir, nil)
			took := func(work func() error) float64 {
				started := time.Now()
				if err := work(); err != nil {
					b.Fatal(err)
				}
				return float64(time.Since(started))
			}
			rukpak := func() error { _, err := New().Render(b.Context(), req); return err }
			helm := func() error { _, err := templated(dir, map[string]any{}, false); return err }
			var ratios, ours, theirs []float64
			for b.Loop() {
				a, c := took(rukpak), took(helm)
				d, e := took(helm), took(rukpak)
				ratios, ours, theirs = append(ratios, (a+e)/(c+d)), append(ours, a, e), append(theirs, c, d)
			}
			b.ReportMetric(median(ratios), "ratio")
			b.ReportMetric(median(ours)/1e6, "rukpak-ms")
			b.ReportMetric(median(theirs)/1e6, "helm-ms")
		})
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// Benchmark500Instances renders one chart with the values of 500 instances, as many at once as there are cores.
func Benchmark500Instances(b *testing.B) {
	const instances = 500
	content := os.DirFS(sharedChart(b, "podinfo/6.11.2"))
	for b.Loop() {
		var group sync.WaitGroup
		next := make(chan int)
		for range runtime.GOMAXPROCS(0) {
			group.Go(func() {
				for number := range next {
					req := provisioner.Request{Content: content, Config: json.RawMessage(fmt.Sprintf(`{"replicaCount": %d}`, number)), Cluster: provisioner.Cluster{Version: kubeVersion}}
					req.Instance.Namespace, req.Instance.Name = namespace, fmt.Sprintf("web-%d", number)
					if _, err := New().Render(b.Context(), req); err != nil {
						b.Error(err)
					}
				}
			})
		}
		for number := range instances {
			next <- number
		}
		close(next)
		group.Wait()
	}
	b.ReportMetric(float64(instances*b.N)/b.Elapsed().Seconds(), "renders/s")
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(float64(memory.Sys)/(1<<20), "MiB")
}
