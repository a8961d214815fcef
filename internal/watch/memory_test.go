// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/ownership"
)

// perObject bounds what an object may take in memory, its place in all maps included.
const perObject = 1500 // bytes

func TestTenThousandObjectsAreSmall(t *testing.T) {
	const owners, each = 1000, 10
	before := heap()
	s := newStore(schema.GroupKind{Group: "apps", Kind: "Deployment"}, func([]Event, bool) {})
	objects := make([]any, 0, owners*each)
	strip := s.Transformer()
	for i := range owners {
		owner := ownership.Owner{UID: types.UID(fmt.Sprintf("%08d-0000-0000-0000-000000000000", i)), Namespace: fmt.Sprintf("team-%d", i), Name: "application"}
		for j := range each {
			object, err := strip(realistic(owner, fmt.Sprintf("object-%d-%d", i, j)))
			if err != nil {
				t.Fatal(err)
			}
			objects = append(objects, object)
		}
	}
	if err := s.Replace(objects, "1"); err != nil {
		t.Fatal(err)
	}
	objects = nil //nolint:ineffassign // lets the collector have them, so that only the store is measured
	used := heap() - before
	t.Logf("%d objects take %.1f MiB, %d bytes each", owners*each, float64(used)/(1<<20), used/(owners*each))
	if used > perObject*owners*each {
		t.Errorf("more than %d bytes each", perObject)
	}
	runtime.KeepAlive(s)
}

// realistic makes metadata as a Deployment has it: some labels, a long annotation, some managers.
func realistic(owner ownership.Owner, name string) *metav1.PartialObjectMetadata {
	now := metav1.Now()
	managed := `{"f:spec":{` + strings.Repeat(`"f:some-field-name":{"f:other":{}},`, 60) + `"f:z":{}}}`
	full := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: strings.Clone(owner.Namespace), UID: types.UID(name + "-uid-0000-0000-000000000000"), ResourceVersion: "123456789",
		CreationTimestamp: now, Labels: owner.Labels(), ManagedFields: fields(managed),
		Annotations: map[string]string{"deployment.kubernetes.io/revision": "1", "example.com/description": strings.Repeat("x", 500)},
	}}
	for key, value := range map[string]string{"app.kubernetes.io/name": "a", "app.kubernetes.io/part-of": "b", "app.kubernetes.io/managed-by": "c"} {
		full.Labels[key] = value
	}
	return full
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// BenchmarkTenThousandObjects measures the first read of 10,000 marked ConfigMaps from a real API server, and the
// memory that it leaves in use. Run it with -benchtime=1x.
func BenchmarkTenThousandObjects(b *testing.B) {
	const owners, each = 1000, 10
	w := newBench(b, 0)
	ns := w.env.NewNamespace(b)
	var group errgroup.Group
	group.SetLimit(32)
	for i := range owners {
		owner := ownership.Owner{UID: types.UID(fmt.Sprintf("bench-%d", i)), Namespace: ns, Name: fmt.Sprint("i", i)}
		for j := range each {
			group.Go(func() error {
				obj := object(configMaps, ns, fmt.Sprintf("o-%d-%d", i, j), &owner)
				return w.client.Create(b.Context(), obj, client.FieldOwner(ownership.FieldManager))
			})
		}
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		before, begun := heap(), time.Now()
		w.use(b, red, configMaps)
		b.ReportMetric(float64(time.Since(begun).Milliseconds()), "ms-to-sync")
		w.mu.Lock()
		w.events, w.next = nil, 0
		w.mu.Unlock()
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
		w.Release(red.UID)
	}
}
