// SPDX-License-Identifier: Apache-2.0

package activate_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
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

// thousand are 500 ConfigMaps, 200 Services, 200 Deployments and 100 Roles, in phases.
func thousand(t testing.TB, namespace string) []provisioner.Phase {
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
	add(500, configMap(t, "config", "{a: b, c: d}"))
	add(200, service(t, "service"))
	add(200, deployment(t, "deployment"))
	add(100, role)
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
// order. It is long, so it runs only where RUKPAK_BENCH is set.
func TestActivationOfAThousandObjectsAgainstBareCreates(t *testing.T) {
	if os.Getenv("RUKPAK_BENCH") == "" {
		t.Skip("RUKPAK_BENCH is not set")
	}
	env, err := testenv.Start(t.Context(), testenv.Options{NoBuild: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = env.Stop() }()
	const parallel, rounds = 16, 5
	config := env.Config()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	c := newClient(t, config)
	raw, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	resource := func(object *unstructured.Unstructured) dynamic.ResourceInterface {
		mapping, err := c.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil {
			t.Fatal(err)
		}
		return raw.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	var ratios []float64
	for round := range rounds + 1 {
		took := map[string]time.Duration{}
		order := []string{"bare", "engine"}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, which := range order {
			namespace := env.NewNamespace(t)
			phases := thousand(t, namespace)
			runtime.GC()
			begun := time.Now()
			if which == "bare" {
				bare(t.Context(), t, resource, phases, parallel)
				took[which] = time.Since(begun)
				continue
			}
			engine := activate.New(activate.Config{Observed: fresh{c}, Parallelism: parallel})
			owner := ownership.Owner{UID: "uid", Namespace: namespace, Name: "bench"}
			result := engine.Apply(t.Context(), c, owner, phases, activate.Options{DefaultNamespace: namespace})
			took[which] = time.Since(begun)
			if !result.Complete || result.Writes != 1000 {
				t.Fatalf("got %s with %d writes", result, result.Writes)
			}
			if round == 0 {
				t.Logf("engine: %d reads, %d writes", result.Reads, result.Writes)
			}
			pivot(t, engine, c, owner, phases, took["engine"])
		}
		ratio := float64(took["engine"]) / float64(took["bare"])
		t.Logf("round %d (%s first): bare %s, engine %s, ratio %.3f", round, order[0], took["bare"], took["engine"], ratio)
		if round > 0 { // the first warms both up
			ratios = append(ratios, ratio)
		}
	}
	slices.Sort(ratios)
	if median := ratios[len(ratios)/2]; median > 1.25 {
		t.Errorf("median ratio %.3f, want at most 1.25", median)
	} else {
		t.Logf("median ratio %.3f", median)
	}
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
