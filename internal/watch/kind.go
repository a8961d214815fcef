// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"rukpak.io/rukpak/internal/ownership"
)

// Pauses between attempts: short enough that drift is seen soon after an API server is back, and long enough that a
// kind which nobody serves costs next to nothing.
const (
	firstPause = 200 * time.Millisecond
	longPause  = 15 * time.Second
	// servedPause is the longest pause for a kind that is known to be served.
	servedPause = 5 * time.Second
	// calm is how long a watch has to run for its next end not to count as a repeated failure.
	calm = time.Minute
)

// errGone is the end of a watch whose kind is no longer served.
var errGone = errors.New("the API server does not serve this kind")

// kind is the watch of one kind.
type kind struct {
	watcher *Watcher
	gk      schema.GroupKind
	ctx     context.Context
	stop    context.CancelFunc
	store   *store
	wake    chan struct{} // makes the search for a kind that is not served go on

	// Guarded by the watcher's lock.
	users map[types.UID]bool
	idle  *time.Timer

	mu       sync.Mutex
	versions map[string]bool // that users named
	err      error
}

func newKind(w *Watcher, gk schema.GroupKind) *kind {
	ctx, stop := context.WithCancel(w.ctx)
	k := &kind{
		watcher: w, gk: gk, ctx: ctx, stop: stop, wake: make(chan struct{}, 1),
		users: map[types.UID]bool{}, versions: map[string]bool{},
	}
	k.store = newStore(gk, k.publish)
	return k
}

// join adds a user. The watcher's lock is held.
func (k *kind) join(owner types.UID, version string) {
	k.users[owner] = true
	if k.idle != nil {
		k.idle.Stop()
		k.idle = nil
	}
	if version != "" {
		k.mu.Lock()
		k.versions[version] = true
		k.mu.Unlock()
	}
	if !k.store.synced() {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

// leave takes a user away and tells whether it was the last one. The watcher's lock is held.
func (k *kind) leave(owner types.UID) bool {
	delete(k.users, owner)
	return len(k.users) == 0
}

// publish passes the store's events on, unless the watch has been ended: then somebody else may watch the same kind.
func (k *kind) publish(events []Event, synced bool) {
	if k.ctx.Err() != nil {
		return
	}
	if synced {
		k.report(nil)
		events = append(events, k.watcher.syncedEvents(k)...)
	}
	k.watcher.emit(events)
}

// run finds the resource of the kind and follows it, for as long as there are users.
func (k *kind) run() {
	defer k.stop()
	pause := pauses(longPause)
	for attempt := 0; k.ctx.Err() == nil; attempt++ {
		mapping, err := k.mapping(attempt)
		if err == nil {
			if err = k.follow(mapping); errors.Is(err, errGone) {
				// Whatever we knew of went with the kind; the mapper may know another resource of it, or no longer any.
				k.publish(k.store.forget(), false)
				meta.MaybeResetRESTMapper(k.watcher.config.Mapper)
			}
		}
		k.report(err)
		k.rest(pause(), true)
	}
}

// mapping returns the resource of the kind: that of one of the versions that users named, or any that the mapper
// knows. A mapper that caches may name some that are no longer served, so each attempt takes the next one.
func (k *kind) mapping(attempt int) (*meta.RESTMapping, error) {
	k.mu.Lock()
	versions := make([]string, 0, len(k.versions))
	for version := range k.versions {
		versions = append(versions, version)
	}
	k.mu.Unlock()
	sort.Strings(versions)
	var found []*meta.RESTMapping
	var failed error
	for _, version := range versions {
		mapping, err := k.watcher.config.Mapper.RESTMapping(k.gk, version)
		if err != nil {
			failed = err
			continue
		}
		found = append(found, mapping)
	}
	if len(found) == 0 {
		mappings, err := k.watcher.config.Mapper.RESTMappings(k.gk)
		if err != nil {
			failed = err
		}
		found = mappings
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("find the resource of %s: %w", k.gk, failed)
	}
	return found[attempt%len(found)], nil
}

// follow reads the kind and keeps the store up to date until the kind is gone or the watch is ended.
func (k *kind) follow(mapping *meta.RESTMapping) error {
	logger := k.watcher.config.Log.WithValues("kind", k.gk.String())
	quiet := logger.V(1)
	ctx := klog.NewContext(k.ctx, quiet)
	k.store.version(mapping.GroupVersionKind)
	reflector := cache.NewReflectorWithOptions(k.listWatch(mapping), &metav1.PartialObjectMetadata{}, k.store,
		cache.ReflectorOptions{Name: "rukpak", TypeDescription: k.gk.String(), Logger: &quiet, Backoff: backoff(servedPause)})
	pause := pauses(servedPause)
	for k.ctx.Err() == nil {
		err := reflector.ListAndWatchWithContext(ctx)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("%w: %w", errGone, err)
		}
		k.report(err)
		k.rest(pause(), false)
	}
	return k.ctx.Err()
}

// listWatch reads what carries an owner mark, in all namespaces or in the only one.
func (k *kind) listWatch(mapping *meta.RESTMapping) cache.ListerWatcher {
	var client metadata.ResourceInterface = k.watcher.config.Client.Resource(mapping.Resource)
	if only := k.watcher.config.Namespace; only != "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		client = k.watcher.config.Client.Resource(mapping.Resource).Namespace(only)
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = ownership.LabelInstanceUID
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = ownership.LabelInstanceUID
			return client.Watch(ctx, options)
		},
	}, k.watcher.config.Client)
}

// rest waits; somebody who asks for the kind again may shorten what exceeds a second.
func (k *kind) rest(pause time.Duration, wakeable bool) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	soonest := time.Now().Add(time.Second)
	for {
		var wake <-chan struct{}
		if wakeable {
			wake = k.wake
		}
		select {
		case <-k.ctx.Done():
			return
		case <-timer.C:
			return
		case <-wake:
			timer.Reset(min(pause, time.Until(soonest)))
			wakeable = false
		}
	}
}

// report notes why the kind is not in the cache, or that all is well, and logs what is new.
func (k *kind) report(err error) {
	if k.ctx.Err() != nil {
		return
	}
	k.mu.Lock()
	known := k.err
	k.err = err
	k.mu.Unlock()
	if err != nil && (known == nil || known.Error() != err.Error()) {
		k.watcher.config.Log.Info("Cannot watch objects; trying again", "kind", k.gk.String(), "reason", err.Error())
	}
}

func (k *kind) lastError() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

func backoff(longest time.Duration) *wait.Backoff {
	return &wait.Backoff{Duration: firstPause, Cap: longest, Steps: 12, Factor: 2, Jitter: 0.5}
}

func pauses(longest time.Duration) wait.DelayFunc {
	return backoff(longest).DelayWithReset(clock.RealClock{}, calm)
}
