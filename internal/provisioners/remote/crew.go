// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// crew is all processes that serve one provisioner, and what is to be done by them.
type crew struct {
	id      string
	polls   int       // who wait for a job
	seen    time.Time // the last sign of life
	present bool      // as was told
	queue   []*errand
	taken   map[string]*errand // by the ID of the job
	queued  chan struct{}      // closed when there is something in the queue
	waiting map[types.NamespacedName]bool
	unsaid  bool // somebody was told to wait while it was not known yet who serves
}

func (b *Broker) crewOf(id string) *crew {
	found := b.crews[id]
	if found == nil {
		found = &crew{id: id, taken: map[string]*errand{}, queued: make(chan struct{}), waiting: map[types.NamespacedName]bool{}}
		b.crews[id] = found
	}
	return found
}

// served tells whether somebody is there: who waits for a job, is at one, or gave a sign of life a moment ago.
func (b *Broker) served(c *crew) bool {
	return c.polls > 0 || len(c.taken) > 0 || !c.seen.IsZero() && b.now().Sub(c.seen) < b.options.Grace
}

// alive notes a sign of life. Who waited for somebody to serve is told.
func (b *Broker) alive(c *crew) {
	c.seen = b.now()
	if c.present {
		return
	}
	c.present = true
	b.tellAll(c)
}

// gone has all told that nobody serves any more.
func (b *Broker) gone(c *crew) {
	c.present = false
	for _, e := range slices.Clone(c.queue) {
		if e.key.parameters == "" {
			c.waiting[e.key.instance] = true
		}
		b.drop(e)
	}
	for _, e := range b.errands {
		if e.key.id == c.id && e.key.parameters != "" {
			b.drop(e) // what serves later may judge otherwise
		}
	}
	b.tellAll(c)
}

func (b *Broker) tellAll(c *crew) {
	for name := range c.waiting {
		b.wakeInstance(name)
	}
	clear(c.waiting)
	c.unsaid = false
	b.change(c.id)
}

// put adds an errand to the end of the queue, and wakes who waits.
func (c *crew) put(e *errand) { c.insert(len(c.queue), e) }

// putFirst adds an errand that had its turn before.
func (c *crew) putFirst(e *errand) { c.insert(0, e) }

func (c *crew) insert(at int, e *errand) {
	c.queue = slices.Insert(c.queue, at, e)
	close(c.queued)
	c.queued = make(chan struct{})
}

// next takes the first errand of the namespace at whose errands the fewest are, so that one with very many leaves room
// for others.
func (c *crew) next() *errand {
	if len(c.queue) == 0 {
		return nil
	}
	busy := map[string]int{}
	for _, e := range c.taken {
		busy[e.key.instance.Namespace]++
	}
	best := 0
	for i, e := range c.queue {
		if busy[e.key.instance.Namespace] < busy[c.queue[best].key.instance.Namespace] {
			best = i
		}
		if busy[c.queue[best].key.instance.Namespace] == 0 {
			break
		}
	}
	found := c.queue[best]
	c.queue = slices.Delete(c.queue, best, best+1)
	return found
}

func (c *crew) remove(e *errand) {
	if at := slices.Index(c.queue, e); at >= 0 {
		c.queue = slices.Delete(c.queue, at, at+1)
	}
	if c.taken[e.id] == e {
		delete(c.taken, e.id)
	}
}
