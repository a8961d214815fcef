// SPDX-License-Identifier: Apache-2.0

// Package remote lets provisioners run outside of the manager, written and deployed by anybody. It keeps the jobs: the
// controllers ask for a rendering as of any other provisioner, and the processes that serve its ID come for work, by way of
// the content API.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it is one
// of those that implement provisioner.Render, for every ID that the manager does not serve itself.
//
// Nobody waits for a stranger: Render and Validate give a *PendingError at once, and whoever asked is told when there is
// an answer, which then they give. A slow provisioner so holds no worker of a controller, and all of its jobs are of one
// bounded size.
package remote

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/provisioner"
)

// Times and limits. The times are defaults of Options.
const (
	lease    = 30 * time.Second // that a job is somebody's without a sign of life
	grace    = 20 * time.Second // from the last sign of life of anybody until nobody serves a provisioner
	longest  = 5 * time.Minute  // that one rendering may take
	tickTime = time.Second

	maxJobs    = 10_000           // that wait, of one provisioner
	maxLost    = 3                // processes that die with one job
	maxHeld    = 256 << 20        // bytes of all results that nobody has come for
	keepSmall  = 1 << 20          // bytes of a result that is kept for a moment after it was taken
	keepTaken  = 10 * time.Second //
	keepResult = 2 * time.Minute  // of a result that nobody comes for
	keepFault  = 10 * time.Minute // of bad input, and of parameters that are good
	firstPause = 5 * time.Second  // before what failed is tried again, doubled each time
	maxPause   = 2 * time.Minute  //
	MaxResult  = 32 << 20         // MaxResult is the largest result, in bytes of JSON.
	maxValues  = 3 << 20          // in it, about
	maxObjects = 50_000           //
	maxFaults  = 100              //
	maxText    = 64 << 10         // bytes of notes, and of an error
	maxSchema  = 1 << 20          // bytes
	maxVaries  = 1_000            // lines
)

// Options of a Broker. Only Own has no default.
type Options struct {
	Own                   []string // IDs that the manager serves itself, which nobody else may
	Lease, Grace, Longest time.Duration
	Log                   logr.Logger
}

// Broker keeps the jobs of all provisioners that run elsewhere. Its methods may be called by several goroutines.
type Broker struct {
	options Options
	now     func() time.Time

	mu       sync.Mutex
	started  time.Time // zero before Start
	stopped  bool
	stopping chan struct{}
	crews    map[string]*crew
	errands  map[key]*errand
	held     int64
	wakes    []func() // to be called once mu is free

	onInstance func(types.NamespacedName)
	onChange   func(id string)
}

// New makes a broker. It says of nobody that he does not serve before Start has run for a while.
func New(options Options) *Broker {
	defaulted := func(given *time.Duration, value time.Duration) {
		if *given == 0 {
			*given = value
		}
	}
	defaulted(&options.Lease, lease)
	defaulted(&options.Grace, grace)
	defaulted(&options.Longest, longest)
	slices.Sort(options.Own)
	return &Broker{
		options: options, now: time.Now, stopping: make(chan struct{}),
		crews: map[string]*crew{}, errands: map[key]*errand{},
		onInstance: func(types.NamespacedName) {}, onChange: func(string) {},
	}
}

// OnInstance has wake called for instances that got a *PendingError or a *NobodyError and may go on now. wake does not block.
func (b *Broker) OnInstance(wake func(types.NamespacedName)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.onInstance = wake
}

// OnChange has wake called for provisioners that are served now, or no longer, or have judged parameters. wake does not block.
func (b *Broker) OnChange(wake func(id string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.onChange = wake
}

// Provisioner gives the provisioner of an ID, whether or not somebody serves it.
func (b *Broker) Provisioner(id string) provisioner.Provisioner { return remote{b, id} }

// Start looks after the jobs until ctx ends, and then sends away who waits for one.
func (b *Broker) Start(ctx context.Context) error {
	b.mu.Lock()
	b.started = b.now()
	b.mu.Unlock()
	ticker := time.NewTicker(min(tickTime, b.options.Grace/4))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			b.mu.Lock()
			b.stopped = true
			close(b.stopping)
			b.mu.Unlock()
			return nil
		case <-ticker.C:
			b.tick()
		}
	}
}

// unlock frees mu and tells what is to be told.
func (b *Broker) unlock() {
	wakes := b.wakes
	b.wakes = nil
	b.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

func (b *Broker) wakeInstance(name types.NamespacedName) {
	b.wakes = append(b.wakes, func() { b.onInstance(name) })
}

func (b *Broker) change(id string) { b.wakes = append(b.wakes, func() { b.onChange(id) }) }

// starting is true while who serves what may not be known yet.
func (b *Broker) starting() bool {
	return b.started.IsZero() || b.now().Sub(b.started) < b.options.Grace
}

// NobodyError says that no process serves a provisioner at present.
type NobodyError struct {
	ID  string
	Own []string // what the manager serves itself, sorted
}

// Error says it, and what is served.
func (e *NobodyError) Error() string {
	return fmt.Sprintf("nobody serves the provisioner %q: it is deployed nowhere, or cannot reach the content API; the manager itself serves %s", e.ID, strings.Join(e.Own, ", "))
}

// PendingError says that there is no answer yet. Who asked is told when there is.
type PendingError struct{ ID string }

// Error names the provisioner.
func (e *PendingError) Error() string {
	return fmt.Sprintf("the provisioner %q has not answered yet", e.ID)
}

// GoneError says that a job is not, or no longer, that of who names it.
type GoneError struct{ Job string }

// Error says what to do.
func (e *GoneError) Error() string {
	return "the job is not yours, or not any more: it was finished, withdrawn, or given to another since you gave no sign of life; take another"
}

// OwnError says that a provisioner is the manager's own.
type OwnError struct{ ID string }

// Error says what to do.
func (e *OwnError) Error() string {
	return fmt.Sprintf("the manager serves the provisioner %q itself: give yours an ID under a domain of your own", e.ID)
}

// BusyError says that a result cannot be taken now.
type BusyError struct{}

// Error says why.
func (e *BusyError) Error() string {
	return "too many results wait to be used; send this one again in some seconds"
}

// StoppingError says that the manager ends.
type StoppingError struct{}

// Error says so.
func (e *StoppingError) Error() string { return "this manager ends; ask again, and another answers" }

// ContractError says that what a provisioner answered cannot be used.
type ContractError struct {
	ID  string
	Err error
}

// Error tells whose fault it is.
func (e *ContractError) Error() string {
	return fmt.Sprintf("the result of the provisioner %q is refused, which whoever wrote it has to mend: %v", e.ID, e.Err)
}

// Unwrap gives what is wrong. It is none of the content, so that it is no *provisioner.InputError.
func (e *ContractError) Unwrap() error { return e.Err }
