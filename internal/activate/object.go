// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"rukpak.io/rukpak/internal/ownership"
)

// objects is the lowest level: one object, a few requests.
type objects struct {
	observed Observed
	ledger   *Ledger
}

// attempts bounds how often an object is looked at again because it changed under our hands.
const attempts = 10

// target is an object of the content on its way into the cluster.
type target struct {
	id      ownership.ID
	source  *unstructured.Unstructured // as the content has it
	desired *unstructured.Unstructured // as it is sent
}

// apply brings one object to where it should be.
func (o *objects) apply(ctx context.Context, s *session, source *unstructured.Unstructured) ObjectResult {
	kind, t := source.GroupVersionKind(), target{id: ownership.IDOf(source), source: source}
	for {
		scope, err := s.scope(kind)
		if err == nil {
			t.desired = Desired(source, s.owner, scope, s.options.DefaultNamespace)
			t.id = ownership.IDOf(t.desired)
			var result ObjectResult
			if result, err = o.settle(ctx, s, t); err == nil {
				return result
			}
		}
		switch {
		case notServed(err) && s.isBrought(kind) && !interrupted(err):
			if !s.wait(ctx) {
				return ObjectResult{ID: t.id, Action: Waiting, Wait: "the API server does not serve this kind yet"}
			}
		case namespaceGoes(err):
			return ObjectResult{ID: t.id, Action: Waiting, Wait: fmt.Sprintf("namespace %s is being deleted", t.id.Namespace)}
		default:
			return failed(t.id, err)
		}
	}
}

func failed(id ownership.ID, err error) ObjectResult {
	if known, ok := err.(*Error); ok { //nolint:errorlint // only what this package has just made itself
		action := Failed
		if known.Reason == CollisionReason {
			action = Collision
		}
		return ObjectResult{ID: id, Action: action, Err: known}
	}
	return ObjectResult{ID: id, Action: Failed, Err: classify(id, err)}
}

// isBrought reports whether the set itself makes the API server serve a kind.
func (s *session) isBrought(kind schema.GroupVersionKind) bool {
	return s.brings[kind.GroupKind()] || s.serving[kind.GroupVersion()]
}

// settle looks at an object until it is as it should be, in spite of others who change it.
func (o *objects) settle(ctx context.Context, s *session, t target) (ObjectResult, error) {
	if o.known(s, t) {
		return ObjectResult{ID: t.id, Action: Intact}, nil
	}
	guess := !o.seen(t.id) && s.guesses.absent(t.id.GroupKind())
	var result ObjectResult
	var err error = errAgain
	for attempt := 0; attempt < attempts && again(err); attempt++ {
		if attempt > 1 {
			backOff(ctx, attempt)
		}
		result, err = o.once(ctx, s, t, guess)
		guess = false
	}
	return result, err
}

// known reports whether the object is as it should be for all that is known, so that no request is needed.
func (o *objects) known(s *session, t target) bool {
	if o.observed == nil {
		return false
	}
	last, ok := o.ledger.find(s.owner.UID, t.id)
	if !ok {
		return false
	}
	seen, ok := o.observed.Get(t.id)
	return ok && last.vouches(seen) && last.isOf(t.source)
}

func (o *objects) seen(id ownership.ID) bool {
	if o.observed == nil {
		return false
	}
	_, ok := o.observed.Get(id)
	return ok
}

// once creates the object or, if it is there, brings it up to date.
func (o *objects) once(ctx context.Context, s *session, t target, guess bool) (ObjectResult, error) {
	if !guess {
		live, err := s.get(ctx, t.desired)
		s.guesses.learn(t.id.GroupKind(), apierrors.IsNotFound(err))
		if err == nil {
			return o.present(ctx, s, t, live)
		}
		if !apierrors.IsNotFound(err) || notServed(err) {
			return ObjectResult{}, err
		}
	}
	made, err := s.create(ctx, t.desired)
	if apierrors.IsAlreadyExists(err) {
		return ObjectResult{}, errAgain
	}
	if err != nil {
		return ObjectResult{}, err
	}
	o.remember(s, t, made)
	return ObjectResult{ID: t.id, Action: Created}, nil
}

// present deals with an object that exists.
func (o *objects) present(ctx context.Context, s *session, t target, live *unstructured.Unstructured) (ObjectResult, error) {
	if err := ownership.MayTake(live, s.owner, s.options.Adoption, s.options.Alive); err != nil {
		return ObjectResult{}, &Error{ID: t.id, Reason: CollisionReason, Err: err}
	}
	if live.GetDeletionTimestamp() != nil {
		return ObjectResult{ID: t.id, Action: Waiting, Wait: goingNote(live.GetFinalizers())}, nil
	}
	if holder, ok := ownership.OwnerOf(live); !ok || holder.UID != s.owner.UID {
		return o.adopt(ctx, s, t, live)
	}
	return o.update(ctx, s, t, live)
}

func goingNote(finalizers []string) string {
	if len(finalizers) == 0 {
		return "it is being deleted"
	}
	return "it is being deleted and has finalizers: " + strings.Join(finalizers, ", ")
}

// adopt takes an object that is not ours yet, with all that its former owner managed.
func (o *objects) adopt(ctx context.Context, s *session, t target, live *unstructured.Unstructured) (ObjectResult, error) {
	// The API server makes up managers for an object that has none when it is applied to, so that takes two rounds.
	rounds := 1
	if len(live.GetManagedFields()) == 0 {
		rounds = 2
	}
	var result ObjectResult
	for range rounds {
		entries, err := handOver(live, takeOver(t.desired.Object, s.options.Adoption == ownership.AdoptForce))
		if err != nil {
			return ObjectResult{}, &Error{ID: t.id, Reason: Rejected, Err: err}
		}
		if entries != nil {
			if err := s.hand(ctx, live, entries); err != nil {
				return ObjectResult{}, err
			}
		}
		if result, live, err = o.write(ctx, s, t, live, live.GetResourceVersion()); err != nil || live == nil {
			return result, err
		}
	}
	result.Action = Adopted
	return result, nil
}

// update brings an object that is ours up to date, without a write if it is.
func (o *objects) update(ctx context.Context, s *session, t target, live *unstructured.Unstructured) (ObjectResult, error) {
	own, err := managedBy(live)
	if err != nil {
		return ObjectResult{}, &Error{ID: t.id, Reason: Rejected, Err: err}
	}
	left := leftovers(own, t.desired, s.options.Earlier, t.id)
	dropped := left.Union(lacking(own.applied, t.desired.Object))
	fields := differing(t.desired.Object, live.Object, own.all())
	if dropped.Empty() && len(fields) == 0 {
		o.remember(s, t, live)
		return ObjectResult{ID: t.id, Action: Intact}, nil
	}
	if !left.Empty() {
		entries, err := handOver(live, leftOver(left))
		if err != nil {
			return ObjectResult{}, &Error{ID: t.id, Reason: Rejected, Err: err}
		}
		if err := s.hand(ctx, live, entries); err != nil {
			return ObjectResult{}, err
		}
	}
	result, _, err := o.write(ctx, s, t, live, "")
	if result.Action == Applied {
		result.Fields = withDropped(fields, dropped)
	}
	return result, err
}

// withDropped adds what has to go to the paths of what differs.
func withDropped(paths []string, dropped *fieldpath.Set) []string {
	dropped.Leaves().Iterate(func(path fieldpath.Path) {
		if len(paths) < maxFields {
			paths = append(paths, strings.TrimPrefix(path.String(), "."))
		}
	})
	slices.Sort(paths)
	return slices.Compact(paths)
}

// leftovers are the fields that our create set, that the content had, and has no more. What the create is said to have
// set includes what the API server and webhooks filled in: only earlier revisions can tell the two apart.
func leftovers(own managed, desired *unstructured.Unstructured, earlier func(ownership.ID) []*unstructured.Unstructured, id ownership.ID) *fieldpath.Set {
	candidates := lacking(own.updated, desired.Object)
	if candidates.Empty() {
		return candidates
	}
	if earlier == nil {
		return candidates.RecursiveDifference(never)
	}
	left := candidates.Intersection(markOfTask)
	for _, old := range earlier(id) {
		sent := Desired(old, ownership.Owner{}, "", "") // for what else the engine makes of content
		left = left.Union(candidates.Difference(lacking(candidates, sent.Object)))
	}
	return left
}

// remember notes that the object is as it should be.
func (o *objects) remember(s *session, t target, live *unstructured.Unstructured) {
	o.ledger.keep(s.owner.UID, t.id, newRecord(t.source, live))
}

// errAgain asks for another look at the object.
var errAgain = apierrors.NewConflict(schema.GroupResource{}, "", fmt.Errorf("it was made by somebody else and was gone again"))

func again(err error) bool { return err != nil && stale(err) }

// backOff lets others finish what they are doing.
func backOff(ctx context.Context, attempt int) {
	timer := time.NewTimer(time.Duration(5<<min(attempt, 6))*time.Millisecond + rand.N(10*time.Millisecond)) //nolint:gosec // no secret
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
