// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// Preview is what Apply would do with one object now.
type Preview struct {
	// ObjectResult has the action, and why it would fail. Its Fields are not set: compare Live and After.
	ObjectResult
	// Live is the object as it is, After as it would be, as the API server answers to a dry run. Live is nil if it is
	// absent or not known; After is nil if the object would not be written, or a dry run could not tell.
	Live, After *unstructured.Unstructured
	// Expected is what the manifests alone make of Live where no dry run tells, nil else. The API server has not seen it.
	Expected *unstructured.Unstructured
	// Unchecked says in words why no dry run could tell what would come of the object.
	Unchecked string
}

// Previews finds out what Apply and Prune would do, with the same reads and the same judgement, and writes nothing: all
// writes are dry runs. Its methods may be called by several goroutines.
type Previews struct {
	engine   *Engine
	session  *session
	unserved sync.Map // GroupVersionKind -> unserved
}

// Previews returns previews of calls with these arguments.
func (e *Engine) Previews(c client.Client, owner ownership.Owner, options Options) *Previews {
	return &Previews{engine: e, session: e.session(client.NewDryRunClient(c), owner, options)}
}

// Prune previews a call of Prune. What a result calls Deleted would be.
func (p *Previews) Prune(ctx context.Context, phases []provisioner.Phase) Result {
	dry := New(Config{Served: p.engine.served}) // with a ledger of its own: what is remembered of the objects stays
	session := dry.session(p.session.client, p.session.owner, p.session.options)
	session.dry = true
	return dry.revisions.remove(ctx, session, phases)
}

// Apply previews what a call of Apply would do with one object.
func (p *Previews) Apply(ctx context.Context, source *unstructured.Unstructured) Preview {
	kind := source.GroupVersionKind()
	id := ownership.IDOf(source)
	if known, ok := p.unserved.Load(kind); ok {
		return p.inServedVersion(ctx, source, known.(unserved))
	}
	scope, err := p.session.scope(kind)
	if err != nil {
		if notServed(err) && !interrupted(err) {
			known := p.unservedKind(kind, err)
			p.unserved.Store(kind, known)
			return p.inServedVersion(ctx, source, known)
		}
		return failure(id, err)
	}
	desired := Desired(source, p.session.owner, scope, p.session.options.DefaultNamespace)
	t := target{id: ownership.IDOf(desired), source: source, desired: desired}
	objects := p.engine.revisions.objects
	if objects.known(p.session, t) {
		return Preview{ObjectResult: ObjectResult{ID: t.id, Action: Intact}}
	}
	guess := !objects.seen(t.id) && p.session.guesses.absent(t.id.GroupKind())
	var preview Preview
	err = errAgain
	for attempt := 0; attempt < attempts && again(err); attempt++ {
		if attempt > 1 {
			backOff(ctx, attempt)
		}
		preview, err = p.once(ctx, t, guess)
		guess = false
	}
	switch {
	case namespaceGoes(err):
		return Preview{ObjectResult: ObjectResult{ID: t.id, Action: Waiting, Wait: fmt.Sprintf("namespace %s is being deleted", t.id.Namespace)}}
	case err != nil:
		return Preview{ObjectResult: failed(t.id, err), Live: preview.Live, Expected: preview.Expected}
	}
	return preview
}

func failure(id ownership.ID, err error) Preview { return Preview{ObjectResult: failed(id, err)} }

func (p *Previews) once(ctx context.Context, t target, guess bool) (Preview, error) {
	preview := Preview{ObjectResult: ObjectResult{ID: t.id, Action: Created}}
	if !guess {
		live, err := p.session.get(ctx, t.desired)
		p.session.guesses.learn(t.id.GroupKind(), apierrors.IsNotFound(err))
		if err == nil {
			return p.present(ctx, t, live)
		}
		if !apierrors.IsNotFound(err) || notServed(err) {
			return preview, err
		}
	}
	made, err := p.session.create(ctx, t.desired)
	switch {
	case apierrors.IsAlreadyExists(err):
		return preview, errAgain
	case knowsNoDryRun(err):
		preview.Unchecked = oneLine(err.Error())
		return preview, nil
	case err != nil:
		return preview, err
	}
	preview.After = made
	return preview, nil
}

// knowsNoDryRun reports whether a webhook with side effects stands in the way of dry runs.
func knowsNoDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

func (p *Previews) present(ctx context.Context, t target, live *unstructured.Unstructured) (Preview, error) {
	s := p.session
	preview := Preview{ObjectResult: ObjectResult{ID: t.id}, Live: live}
	if err := ownership.MayTake(live, s.owner, s.options.Adoption, s.options.Alive); err != nil {
		preview.Action, preview.Err = Collision, &Error{ID: t.id, Reason: CollisionReason, Err: err}
		return preview, nil
	}
	if live.GetDeletionTimestamp() != nil {
		preview.Action, preview.Wait = Waiting, goingNote(live.GetFinalizers())
		return preview, nil
	}
	preview.Action = Adopted
	taken, err := p.takenOver(t, live)
	if holder, ok := ownership.OwnerOf(live); ok && holder.UID == s.owner.UID {
		preview.Action = Applied
		var intact bool
		if taken, intact, err = p.left(t, live); intact {
			preview.Action = Intact
			return preview, nil
		}
	}
	if err != nil {
		return preview, &Error{ID: t.id, Reason: Rejected, Err: err}
	}
	return p.change(ctx, t, preview, taken)
}

// left returns the fields that only we still hold, and whether the object is as it should be.
func (p *Previews) left(t target, live *unstructured.Unstructured) (*fieldpath.Set, bool, error) {
	own, err := managedBy(live)
	if err != nil {
		return nil, false, err
	}
	left := leftovers(own, t.desired, p.session.options.Earlier, t.id)
	intact := left.Empty() && lacking(own.applied, t.desired.Object).Empty() &&
		len(differing(t.desired.Object, live.Object, own.all())) == 0
	return left, intact, nil
}

// takenOver returns the fields of former owners that go, since the content does not have them.
func (p *Previews) takenOver(t target, live *unstructured.Unstructured) (*fieldpath.Set, error) {
	take := takeOver(t.desired.Object, p.session.options.Adoption == ownership.AdoptForce)
	taken := fieldpath.NewSet()
	for _, entry := range live.GetManagedFields() {
		fields, err := decodeFields(entry)
		if err != nil {
			return nil, err
		}
		if !isApplied(entry) {
			taken = taken.Union(take(entry, fields))
		}
	}
	return lacking(taken, t.desired.Object), nil
}

// change previews a server-side apply after which the fields in gone are gone too.
func (p *Previews) change(ctx context.Context, t target, preview Preview, gone *fieldpath.Set) (Preview, error) {
	after, err := p.session.apply(ctx, t.desired, preview.Live.GetUID(), "")
	switch {
	case knowsNoDryRun(err):
		preview.Unchecked, preview.Expected = oneLine(err.Error()), expected(t.desired, preview.Live, gone)
		return preview, nil
	case err != nil && !stale(err) && apierrors.IsInvalid(err) && onlyAsChange(ctx, p.session, t, err):
		preview.Expected = expected(t.desired, preview.Live, gone)
		return p.recreate(ctx, t, preview, err)
	case err != nil:
		preview.Expected = expected(t.desired, preview.Live, gone)
		return preview, err
	}
	if preview.After = after; !gone.Empty() {
		preview.After, err = p.without(ctx, after, gone)
	}
	return preview, err
}

func (p *Previews) recreate(ctx context.Context, t target, preview Preview, refusal error) (Preview, error) {
	advice, err := p.session.againstRecreation(ctx, t.id, preview.Live)
	if err != nil {
		return preview, err
	}
	if preview.Action = Recreated; advice != "" {
		preview.Action, preview.Err = Failed, immutable(t.id, refusal, advice)
	}
	return preview, nil // what the API server would make of it can only be told once the old one is gone
}

// without asks what becomes of an object without some fields, of which some may have defaults.
func (p *Previews) without(ctx context.Context, object *unstructured.Unstructured, gone *fieldpath.Set) (*unstructured.Unstructured, error) {
	object = object.DeepCopy()
	strip(object.Object, gone)
	object.SetManagedFields(nil)
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "", "value": object.Object}})
	if err != nil {
		return object, err
	}
	filled := object.DeepCopy()
	err = p.session.client.Patch(ctx, filled, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(ownership.FieldManager))
	if err != nil {
		return object, err
	}
	return filled, nil
}

// strip removes the members of set from a value and returns what is left of it.
func strip(have any, set *fieldpath.Set) any {
	switch have := have.(type) {
	case map[string]any:
		set.Members.Iterate(func(element fieldpath.PathElement) {
			if element.FieldName != nil {
				delete(have, *element.FieldName)
			}
		})
		set.Children.Iterate(func(element fieldpath.PathElement) {
			if element.FieldName == nil || have[*element.FieldName] == nil {
				return
			}
			below, _ := set.Children.Get(element)
			have[*element.FieldName] = strip(have[*element.FieldName], below)
		})
		return have
	case []any:
		return stripItems(have, set)
	}
	return have
}

func stripItems(have []any, set *fieldpath.Set) []any {
	rest := make([]any, 0, len(have))
	for _, item := range have {
		selects := func(element fieldpath.PathElement) bool {
			found, ok := lookup([]any{item}, element)
			return ok && element.Index == nil && found != nil
		}
		removed := false
		set.Members.Iterate(func(element fieldpath.PathElement) { removed = removed || selects(element) })
		if removed {
			continue
		}
		set.Children.Iterate(func(element fieldpath.PathElement) {
			if below, ok := set.Children.Get(element); ok && selects(element) {
				item = strip(item, below)
			}
		})
		rest = append(rest, item)
	}
	return rest
}

// Unreachable reports whether an error of a preview says that the API server did not answer, and so nothing of objects.
func Unreachable(err error) bool { return unreachable(err) || interrupted(err) }
