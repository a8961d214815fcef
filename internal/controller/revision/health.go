// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/health"
	"rukpak.io/rukpak/internal/health/check"
	"rukpak.io/rukpak/internal/ownership"
)

const (
	healthReaders = 8 // objects of one instance that are read at the same time
	namedObjects  = 5 // unhealthy objects that a message names
)

// healthBook remembers, by instance, the health of objects at a resource
// version, so that an object is read again only after it changed.
type healthBook struct {
	mu     sync.Mutex
	owners map[types.UID]map[ownership.ID]judged
}

type judged struct {
	resourceVersion string
	check           string // by which it was judged
	result          health.Result
}

func (b *healthBook) find(owner types.UID, id ownership.ID, resourceVersion, by string) (health.Result, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, ok := b.owners[owner][id]
	return known.result, ok && known.resourceVersion == resourceVersion && known.check == by
}

func (b *healthBook) keep(owner types.UID, id ownership.ID, now judged) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.owners == nil {
		b.owners = map[types.UID]map[ownership.ID]judged{}
	}
	if b.owners[owner] == nil {
		b.owners[owner] = map[ownership.ID]judged{}
	}
	b.owners[owner][id] = now
}

func (b *healthBook) forget(owner types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.owners, owner)
}

// written drops what is known of objects that the engine has just changed. The
// watch may not have heard of that yet, and would vouch for how they were: a
// revision would count as healthy by the health of the one before.
func (b *healthBook) written(owner types.UID, result activate.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, object := range result.Objects {
		if object.Action != activate.Intact {
			delete(b.owners[owner], object.ID)
		}
	}
}

// judgeHealth judges the objects of the revision that is active.
func (c *Controller) judgeHealth(ctx context.Context, w *work) error {
	subject := w.target
	if subject != nil && !is(subject, v1alpha1.ConditionActive) {
		subject = w.active
	}
	if subject == nil || !is(subject, v1alpha1.ConditionActive) {
		return nil
	}
	loaded, err := c.Manifests.Load(ctx, subject)
	if err != nil {
		return err
	}
	items, err := c.judgeAll(ctx, w, subject, loaded)
	if err != nil {
		return err
	}
	c.recordHealth(subject, health.Summarize(items, namedObjects))
	return nil
}

func (c *Controller) judgeAll(ctx context.Context, w *work, subject *v1alpha1.InstanceRevision, loaded *Loaded) ([]health.Item, error) {
	actor, err := c.Accounts.Client(subject.Namespace, subject.Spec.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	checks, _ := c.checks.Of(w.instance) // what is wrong with one is told at the objects that it is for
	items := make([]health.Item, 0, loaded.Total)
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(healthReaders)
	for _, phase := range activate.State(loaded.lasting(subject)) {
		for _, object := range phase.Objects {
			id := ownership.IDOf(object)
			by := checks.For(object)
			if result, known := c.knownHealth(w.instance.UID, id, by); known {
				mu.Lock()
				items = append(items, health.Item{Object: id.String(), Result: result})
				mu.Unlock()
				continue
			}
			group.Go(func() error {
				result, err := c.readHealth(ctx, actor, w.instance.UID, object, by)
				mu.Lock()
				defer mu.Unlock()
				items = append(items, health.Item{Object: id.String(), Result: result})
				return err
			})
		}
	}
	return items, group.Wait()
}

// knownHealth answers from what the watch has: for kinds whose existence is
// health, and for objects that did not change since they were read.
func (c *Controller) knownHealth(owner types.UID, id ownership.ID, by *check.Check) (health.Result, bool) {
	seen, ok := c.Watcher.Get(id)
	if !ok {
		return health.Result{}, false
	}
	if by == nil && !health.NeedsStatus(id.GroupKind()) && seen.DeletionTimestamp.IsZero() {
		return health.Result{Status: health.Current}, true
	}
	return c.health.find(owner, id, seen.ResourceVersion, by.Key())
}

func (c *Controller) readHealth(ctx context.Context, actor client.Client, owner types.UID, object *unstructured.Unstructured, by *check.Check) (health.Result, error) {
	id := ownership.IDOf(object)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := actor.Get(ctx, client.ObjectKeyFromObject(object), live)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return health.Of(nil), nil
	case apierrors.IsForbidden(err):
		return health.Result{Status: health.Unknown, Message: "the service account may not read it"}, nil
	case err != nil:
		return health.Result{Status: health.Unknown, Message: "cannot be read"}, err
	}
	result := by.Judge(ctx, live)
	c.health.keep(owner, id, judged{live.GetResourceVersion(), by.Key(), result})
	return result, nil
}

func (c *Controller) recordHealth(subject *v1alpha1.InstanceRevision, summary health.Summary) {
	counts := &v1alpha1.ObjectCounts{Total: int64(summary.Total), Healthy: int64(summary.Current)}
	if had := subject.Status.Objects; had == nil || counts.Healthy > had.Healthy {
		now := metav1.Now()
		subject.Status.ProgressAt = &now
	}
	subject.Status.Objects = counts
	conditions := conditionsOf(subject)
	switch summary.Status {
	case health.Current:
		conditions.True(v1alpha1.ConditionHealthy, v1alpha1.ReasonHealthy, summary.Message)
	case health.Failed:
		conditions.False(v1alpha1.ConditionHealthy, v1alpha1.ReasonUnhealthy, summary.Message)
	default:
		conditions.False(v1alpha1.ConditionHealthy, v1alpha1.ReasonInProgress, summary.Message)
	}
}
