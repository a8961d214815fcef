// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Turns shares the workers of a controller among namespaces, so that one whose
// servers never finish an answer does not keep all of them: a namespace that has
// some gets no more than it leaves to others. The zero value has no workers, and
// gives each namespace one turn at a time. Its methods may be called from several
// goroutines.
type Turns struct {
	Workers int
	// Wake is told of an object that waited and may try again. It must not block.
	Wake func(types.NamespacedName)

	mu      sync.Mutex
	total   int
	busy    map[string]int
	waiting map[string][]types.NamespacedName
}

// Take gives an object its turn, which ends with done. ok is false if its
// namespace has enough already: the object is woken when that changes.
func (t *Turns) Take(object types.NamespacedName) (done func(), ok bool) {
	if t == nil { // nobody shares
		return func() {}, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if has := t.busy[object.Namespace]; has > 0 && has >= t.Workers-t.total {
		t.wait(object)
		return nil, false
	}
	if t.busy == nil {
		t.busy = map[string]int{}
	}
	t.busy[object.Namespace]++
	t.total++
	return sync.OnceFunc(func() { t.end(object.Namespace) }), true
}

// wait remembers an object; twice does no harm, as one that has nothing to do
// ends at once.
func (t *Turns) wait(object types.NamespacedName) {
	if t.waiting == nil {
		t.waiting = map[string][]types.NamespacedName{}
	}
	t.waiting[object.Namespace] = append(t.waiting[object.Namespace], object)
}

// end wakes one object of each namespace that waits: there are no more of them
// than workers, as only one that has a turn waits for another.
func (t *Turns) end(namespace string) {
	t.mu.Lock()
	var woken []types.NamespacedName
	t.total--
	if t.busy[namespace]--; t.busy[namespace] == 0 {
		delete(t.busy, namespace)
	}
	for name, all := range t.waiting {
		woken = append(woken, all[0])
		if t.waiting[name] = all[1:]; len(all) == 1 {
			delete(t.waiting, name)
		}
	}
	t.mu.Unlock()
	for _, object := range woken {
		t.Wake(object)
	}
}
