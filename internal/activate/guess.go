// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// guesses says of each kind whether its objects turned out to be absent so far: then it is best to create the next
// without looking. A create of what exists would be harmless but not free: admission sees it, and quotas count it.
type guesses struct {
	mu    sync.Mutex
	kinds map[schema.GroupKind]*guess
}

type guess struct {
	known  chan struct{} // closed once there is something to go by
	absent bool
}

// absent reports whether an object of a kind is best taken for absent. The first who asks is to look and to tell what
// it saw, see learn; the others wait for that, since they would all have to look otherwise.
func (g *guesses) absent(kind schema.GroupKind) bool {
	g.mu.Lock()
	if g.kinds == nil {
		g.kinds = map[schema.GroupKind]*guess{}
	}
	asked := g.kinds[kind]
	if asked == nil {
		g.kinds[kind] = &guess{known: make(chan struct{})}
		g.mu.Unlock()
		return false
	}
	g.mu.Unlock()
	<-asked.known
	g.mu.Lock()
	defer g.mu.Unlock()
	return asked.absent
}

// learn tells whether the last object that was looked at was absent. Whoever asked must call it, whatever came of it.
func (g *guesses) learn(kind schema.GroupKind, absent bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked := g.kinds[kind]
	if asked == nil {
		return
	}
	asked.absent = absent
	select {
	case <-asked.known:
	default:
		close(asked.known)
	}
}
