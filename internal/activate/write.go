// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"weak"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/ownership"
)

// write applies desired to the live object. With a version, only if it is still that. It returns the object as it is
// then, unless it took another way than a change.
func (o *objects) write(ctx context.Context, s *session, t target, live *unstructured.Unstructured, version string) (ObjectResult, *unstructured.Unstructured, error) {
	before := ownership.OwnFieldsHash(live)
	sent, err := s.apply(ctx, t.desired, live.GetUID(), version)
	if err == nil {
		o.remember(s, t, sent)
		action := Applied
		if sent.GetResourceVersion() == live.GetResourceVersion() || ownership.OwnFieldsHash(sent) == before {
			action = Intact
		}
		return ObjectResult{ID: t.id, Action: action}, sent, nil
	}
	if stale(err) || !apierrors.IsInvalid(err) || !onlyAsChange(ctx, s, t, err) {
		return ObjectResult{}, nil, err
	}
	if advice, failure := s.againstRecreation(ctx, t.id, live); failure != nil || advice != "" {
		if failure != nil {
			return ObjectResult{}, nil, failure
		}
		return ObjectResult{}, nil, immutable(t.id, err, advice)
	}
	result, err := o.recreate(ctx, s, t, live)
	return result, nil, err
}

// againstRecreation says what to do about a field that cannot be changed, "" if the object may be deleted and created.
func (s *session) againstRecreation(ctx context.Context, id ownership.ID, live *unstructured.Unstructured) (advice string, err error) {
	what, isPrecious := precious[id.GroupKind()]
	if id.GroupKind() == crdKind {
		if isPrecious, err = s.hasResources(ctx, live); err != nil {
			return "", err
		}
	}
	switch {
	case isPrecious:
		return "undo the change; it is not deleted and created, since " + what, nil
	case !s.options.RecreateImmutable:
		return "undo the change, or set spec.strategy.recreateImmutable of the instance to delete and create the object", nil
	default:
		return "", nil
	}
}

// hasResources reports whether there are custom resources of a definition, also for one of which that cannot be told.
func (s *session) hasResources(ctx context.Context, crd *unstructured.Unstructured) (bool, error) {
	kind, served := servedKind(crd)
	if !served {
		return true, nil
	}
	resources, err := s.list(ctx, kind, 1)
	if err != nil {
		return true, fmt.Errorf("look whether there are custom resources: %w", err)
	}
	return len(resources) > 0, nil
}

// precious kinds are never deleted to be created anew, but for definitions without custom resources.
var precious = map[schema.GroupKind]string{
	{Kind: "Namespace"}:             "all that is in the namespace would be lost",
	{Kind: "PersistentVolumeClaim"}: "its data would be lost",
	{Kind: "PersistentVolume"}:      "its data would be lost",
	crdKind:                         "all its custom resources would be lost",
}

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

func immutable(id ownership.ID, err error, advice string) *Error {
	return &Error{ID: id, Reason: ImmutableField, Fields: fieldsOf(err), Err: err, Advice: advice}
}

// onlyAsChange reports whether the API server refuses the object only as a change of the live one. It asks by a dry run
// of a create: one that fails because the name is taken got past all that is to be said against the object itself.
func onlyAsChange(ctx context.Context, s *session, t target, refusal error) bool {
	if byPolicy(refusal) {
		return false
	}
	_, err := s.create(ctx, t.desired, client.DryRunAll)
	switch {
	case apierrors.IsAlreadyExists(err):
		return true
	case apierrors.IsInvalid(err):
		return false
	default: // no answer, such as from a webhook that knows no dry run: go by the words
		return speaksOfChange(refusal)
	}
}

// byPolicy reports whether admission refused, which names no field.
func byPolicy(err error) bool {
	return len(fieldsOf(err)) == 0 && !strings.Contains(err.Error(), "immutable")
}

func speaksOfChange(err error) bool {
	text := strings.ToLower(err.Error())
	return slices.ContainsFunc([]string{"immutable", "may not change", "may not be changed", "cannot change", "cannot be changed",
		"updates to", "once set"}, func(words string) bool { return strings.Contains(text, words) })
}

// recreate deletes the live object and creates the desired one as soon as it is gone. If that takes long, the next call
// finds it on its way, or absent.
func (o *objects) recreate(ctx context.Context, s *session, t target, live *unstructured.Unstructured) (ObjectResult, error) {
	if err := s.remove(ctx, live); err != nil && !apierrors.IsNotFound(err) {
		return ObjectResult{}, err
	}
	for {
		going, err := s.peek(ctx, t.desired)
		switch {
		case apierrors.IsNotFound(err):
			made, err := s.create(ctx, t.desired)
			if err != nil {
				return ObjectResult{}, err
			}
			o.remember(s, t, made)
			return ObjectResult{ID: t.id, Action: Recreated}, nil
		case err != nil:
			return ObjectResult{}, err
		case going.GetUID() != live.GetUID():
			return ObjectResult{}, errAgain
		case !s.wait(ctx):
			note := goingNote(going.GetFinalizers()) + ", to be created anew"
			return ObjectResult{ID: t.id, Action: Waiting, Wait: note}, nil
		}
	}
}

func newRecord(source, live *unstructured.Unstructured) record {
	return record{
		uid: live.GetUID(), version: versionOf(live), fields: ownership.OwnFieldsHash(live),
		desired: digestOf(source), source: weak.Make(source),
	}
}
