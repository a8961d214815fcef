// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func object(namespace string, n int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(n)}
}

func TestANamespaceLeavesWorkersToOthers(t *testing.T) {
	turns := &Turns{Workers: 8, Wake: func(types.NamespacedName) {}}
	taken := map[string]int{}
	for _, namespace := range []string{"greedy", "second", "third", "fourth"} {
		for n := range 100 {
			if _, ok := turns.Take(object(namespace, n)); ok {
				taken[namespace]++
			}
		}
	}
	if taken["greedy"] != 4 || taken["second"] != 2 || taken["third"] != 1 || taken["fourth"] != 1 {
		t.Errorf("got %v", taken)
	}
}

func TestAlmostNoWorkersStillWork(t *testing.T) {
	for _, workers := range []int{0, 1, 2} {
		turns := &Turns{Workers: workers, Wake: func(types.NamespacedName) {}}
		if _, ok := turns.Take(object("a", 1)); !ok {
			t.Errorf("%d workers: the first object waits", workers)
		}
	}
}

// TestWhoWaitsIsWoken has every object that waited take its turn in the end.
func TestWhoWaitsIsWoken(t *testing.T) {
	const objects = 50
	var queue []types.NamespacedName
	turns := &Turns{Workers: 4}
	turns.Wake = func(name types.NamespacedName) { queue = append(queue, name) }
	for n := range objects {
		queue = append(queue, object("a", n), object("b", n))
	}
	done := map[types.NamespacedName]bool{}
	var running []func()
	for tries := 0; len(queue) > 0 || len(running) > 0; tries++ {
		if tries > 100*objects {
			t.Fatalf("%d of %d had their turn", len(done), 2*objects)
		}
		if len(queue) > 0 {
			next := queue[0]
			queue = queue[1:]
			if end, ok := turns.Take(next); ok {
				done[next] = true
				running = append(running, end)
			}
			continue
		}
		running[0]()
		running = slices.Delete(running, 0, 1)
	}
	if len(done) != 2*objects {
		t.Errorf("%d of %d had their turn", len(done), 2*objects)
	}
}
