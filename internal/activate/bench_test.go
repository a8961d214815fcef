// SPDX-License-Identifier: Apache-2.0

package activate_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/provisioner"
)

// mix is n objects in phases: half ConfigMaps, a fifth Services, a fifth Deployments and a tenth Roles.
func mix(t testing.TB, namespace string, n int) []provisioner.Phase {
	role := parse(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: role},
 rules: [{apiGroups: [""], resources: [configmaps, secrets], verbs: [get, list, watch]}, {apiGroups: [apps], resources: [deployments], verbs: ["*"]}]}`)
	var all []*unstructured.Unstructured
	add := func(n int, like *unstructured.Unstructured) {
		for i := range n {
			object := like.DeepCopy()
			object.SetName(fmt.Sprintf("%s-%d", like.GetName(), i))
			object.SetNamespace(namespace)
			all = append(all, object)
		}
	}
	add(n/2, configMap(t, "config", "{a: b, c: d}"))
	add(n/5, service(t, "service"))
	add(n/5, deployment(t, "deployment"))
	add(n/10, role)
	return provisioner.ByKind(all)
}

// bare sends the same creates by client-go, phase by phase, with so many at a time, and nothing else.
func bare(ctx context.Context, t testing.TB, mapper func(*unstructured.Unstructured) dynamic.ResourceInterface, phases []provisioner.Phase, parallel int) {
	for _, phase := range phases {
		work := make(chan *unstructured.Unstructured)
		var workers sync.WaitGroup
		for range parallel {
			workers.Go(func() {
				for object := range work {
					if _, err := mapper(object).Create(ctx, object, metav1.CreateOptions{FieldManager: "bare"}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for _, object := range phase.Objects {
			work <- object
		}
		close(work)
		workers.Wait()
	}
}

// TestActivationOfAThousandObjectsAgainstBareCreates compares the engine with a bare loop in one run, in alternating
// order, each time with a thousand objects in four parts, so that what else the machine does hits both alike. It is long,
// so it runs only where RUKPAK_BENCH is set.
func TestActivationOfAThousandObjectsAgainstBareCreates(t *testing.T) {
	if os.Getenv("RUKPAK_BENCH") == "" {
		t.Skip("RUKPAK_BENCH is not set")
	}
	env, err := testenv.Start(t.Context(), testenv.Options{NoBuild: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = env.Stop() }()
	b := newBench(t, env)
	b.part(0, 100) // warms both up
	var wall, cpu []float64
	for round := range 5 {
		b.reset()
		for i := range 4 {
			b.part(i, 250)
		}
		t.Logf("round %d: bare %s (client CPU %s), engine %s (client CPU %s), ratio %.3f", round,
			b.wall["bare"], b.cpu["bare"], b.wall["engine"], b.cpu["engine"], b.ratio())
		wall = append(wall, b.ratio())
		cpu = append(cpu, float64(b.cpu["engine"])/float64(b.cpu["bare"]))
	}
	slices.Sort(wall)
	slices.Sort(cpu)
	t.Logf("median ratio %.3f of wall time, %.3f of client CPU", wall[len(wall)/2], cpu[len(cpu)/2])
	if wall[len(wall)/2] > 1.25 {
		t.Error("want at most 1.25 of wall time")
	}
	namespace := env.NewNamespace(t)
	phases := mix(t, namespace, 1000)
	engine := activate.New(activate.Config{Observed: known{}})
	owner := ownership.Owner{UID: "uid", Namespace: namespace, Name: "bench"}
	begun := time.Now()
	if result := engine.Apply(t.Context(), b.client, owner, phases, activate.Options{}); !result.Complete || result.Writes != 1000 {
		t.Fatalf("got %s with %d writes", result, result.Writes)
	}
	pivot(t, engine, b.client, owner, phases, time.Since(begun))
}

// bench measures both ways to create objects.
type bench struct {
	testing.TB
	env    *testenv.Env
	client client.Client
	raw    dynamic.Interface
	wall   map[string]time.Duration
	cpu    map[string]time.Duration
}

const parallel = 16

func newBench(t testing.TB, env *testenv.Env) *bench {
	config := env.Config()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	raw, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{TB: t, env: env, client: newClient(t, config), raw: raw}
	b.reset()
	return b
}

func (b *bench) reset() { b.wall, b.cpu = map[string]time.Duration{}, map[string]time.Duration{} }

func (b *bench) ratio() float64 { return float64(b.wall["engine"]) / float64(b.wall["bare"]) }

// part creates n objects in both ways, of which the one that goes first alternates.
func (b *bench) part(i, n int) {
	ways := []string{"bare", "engine"}
	if i%2 == 1 {
		slices.Reverse(ways)
	}
	for _, way := range ways {
		namespace := b.env.NewNamespace(b)
		phases := mix(b, namespace, n)
		runtime.GC()
		begun, spent := time.Now(), cpuTime()
		if way == "bare" {
			bare(b.Context(), b, b.resource, phases, parallel)
		} else {
			engine := activate.New(activate.Config{Observed: known{}, Parallelism: parallel})
			owner := ownership.Owner{UID: "uid", Namespace: namespace, Name: "bench"}
			result := engine.Apply(b.Context(), b.client, owner, phases, activate.Options{})
			if !result.Complete || result.Writes != n {
				b.Fatalf("got %s with %d writes", result, result.Writes)
			}
		}
		b.wall[way] += time.Since(begun)
		b.cpu[way] += cpuTime() - spent
	}
}

func (b *bench) resource(object *unstructured.Unstructured) dynamic.ResourceInterface {
	kind := object.GroupVersionKind()
	mapping, err := b.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		b.Fatal(err)
	}
	return b.raw.Resource(mapping.Resource).Namespace(object.GetNamespace())
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// pivot changes 10 of the objects.
func pivot(t *testing.T, engine *activate.Engine, c client.Client, owner ownership.Owner, phases []provisioner.Phase, first time.Duration) {
	t.Helper()
	olds := map[ownership.ID][]*unstructured.Unstructured{}
	var next []provisioner.Phase
	for _, phase := range phases {
		changed := provisioner.Phase{Name: phase.Name}
		for i, object := range phase.Objects {
			olds[ownership.IDOf(object)] = []*unstructured.Unstructured{object}
			kind := object.GetKind()
			switch {
			case i < 5 && kind == "ConfigMap":
				object = set(object, "z", "data", "a")
			case i < 5 && kind == "Deployment":
				object = set(object, int64(3), "spec", "replicas")
			default:
				object = object.DeepCopy()
			}
			changed.Objects = append(changed.Objects, object)
		}
		next = append(next, changed)
	}
	cached := known{}
	for id := range olds {
		cached[id], _ = fresh{c}.Get(id)
	}
	begun := time.Now()
	options := activate.Options{DefaultNamespace: owner.Namespace, Earlier: func(id ownership.ID) []*unstructured.Unstructured { return olds[id] }}
	result := activate.WithObserved(engine, cached).Apply(t.Context(), c, owner, next, options)
	took := time.Since(begun)
	if !result.Complete || result.Count(activate.Applied) != 10 || result.Writes != 10 {
		t.Fatalf("pivot: got %s with %d writes", result, result.Writes)
	}
	t.Logf("pivot with 10 changed: %d reads, %d writes, %s (%.3f of the first activation)", result.Reads, result.Writes, took, float64(took)/float64(first))
}

// known is a cache of the watch that is full.
type known map[ownership.ID]*metav1.PartialObjectMetadata

func (k known) Get(id ownership.ID) (*metav1.PartialObjectMetadata, bool) {
	found, ok := k[id]
	return found, ok
}

// TestMemoryOfTheLedger keeps the promise of Ledger.
func TestMemoryOfTheLedger(t *testing.T) {
	ledger := activate.NewLedger()
	const n = 20_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	activate.Fill(ledger, n)
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := int64(after.HeapAlloc-before.HeapAlloc) / n
	t.Logf("%d bytes an object", each)
	if each > 500 {
		t.Errorf("%d bytes an object, want at most 500", each)
	}
	if ledger.Len() != n {
		t.Errorf("%d objects", ledger.Len())
	}
}
