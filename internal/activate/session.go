// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/ownership"
)

// session is one call of the engine: as whom it acts, for whom, and what it found out so far. Its methods are the only
// ones that send requests.
type session struct {
	client  client.Client
	owner   ownership.Owner
	options Options

	reads, writes atomic.Int64

	dry     bool     // nothing is really written, so nothing is to be waited for
	removed sync.Map // ownership.ID of what was deleted -> true

	brings  map[schema.GroupKind]bool // kinds that CustomResourceDefinitions of the set define
	serving map[schema.GroupVersion]bool
	guesses guesses

	versions versions

	patience time.Duration
	waiting  sync.Once
	deadline time.Time
}

const pause = 100 * time.Millisecond

// wait pauses for a moment. It returns false once this call has waited for as long as it may, all waits taken together.
func (s *session) wait(ctx context.Context) bool {
	s.waiting.Do(func() { s.deadline = time.Now().Add(s.patience) })
	if !time.Now().Add(pause).Before(s.deadline) {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// get reads an object as it is now.
func (s *session) get(ctx context.Context, like client.Object) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(like.GetObjectKind().GroupVersionKind())
	s.reads.Add(1)
	return live, s.client.Get(ctx, client.ObjectKeyFromObject(like), live)
}

// peek reads only the metadata of an object.
func (s *session) peek(ctx context.Context, like client.Object) (*metav1.PartialObjectMetadata, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(like.GetObjectKind().GroupVersionKind())
	s.reads.Add(1)
	return live, s.client.Get(ctx, client.ObjectKeyFromObject(like), live)
}

// list reads the metadata of the first objects of a kind, in all namespaces.
func (s *session) list(ctx context.Context, kind schema.GroupVersionKind, limit int64) ([]metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	s.reads.Add(1)
	err := s.client.List(ctx, found, client.Limit(limit))
	return found.Items, err
}

// create makes an object and returns what the API server made of it. Unknown fields are refused, as server-side apply
// would refuse them later.
func (s *session) create(ctx context.Context, desired *unstructured.Unstructured, options ...client.CreateOption) (*unstructured.Unstructured, error) {
	made := &unstructured.Unstructured{Object: desired.Object} // the client puts the answer in place of the map
	s.writes.Add(1)
	options = append(options, client.FieldOwner(ownership.FieldManager), client.FieldValidation(metav1.FieldValidationStrict))
	return made, s.client.Create(ctx, made, options...)
}

// apply sends the object by server-side apply to the live one with this UID, and only to that. With a resource version
// it is done only if the live object still has it.
func (s *session) apply(ctx context.Context, desired *unstructured.Unstructured, uid types.UID, version string) (*unstructured.Unstructured, error) {
	sent := withMetadata(desired, map[string]any{"uid": string(uid)})
	if version != "" {
		sent = withMetadata(sent, map[string]any{"resourceVersion": version})
	}
	s.writes.Add(1)
	err := s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), client.FieldOwner(ownership.FieldManager), client.ForceOwnership)
	return sent, err
}

// hand writes who manages what, if the live object is still what was looked at.
func (s *session) hand(ctx context.Context, live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) error {
	// A "test" of the version would answer that the request is invalid; a "replace" answers that there is a conflict.
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
	if err != nil {
		return err
	}
	s.writes.Add(1)
	return s.client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(ownership.FieldManager))
}

// remove deletes what was looked at, and nothing else. Dependents go in the background.
func (s *session) remove(ctx context.Context, live client.Object) error {
	uid, version := live.GetUID(), live.GetResourceVersion()
	named := &unstructured.Unstructured{} // any kind can be deleted so, known to the client's scheme or not
	named.SetGroupVersionKind(live.GetObjectKind().GroupVersionKind())
	named.SetNamespace(live.GetNamespace())
	named.SetName(live.GetName())
	s.writes.Add(1)
	return s.client.Delete(ctx, named, client.Preconditions{UID: &uid, ResourceVersion: &version},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// scope tells whether a kind is namespaced. A kind that is not known makes discovery look once more.
func (s *session) scope(kind schema.GroupVersionKind) (meta.RESTScopeName, error) {
	mapper := s.client.RESTMapper()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if _, ok := mapper.(meta.ResettableRESTMapper); ok && meta.IsNoMatchError(err) {
		meta.MaybeResetRESTMapper(mapper)
		mapping, err = mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return "", err
	}
	return mapping.Scope.Name(), nil
}

// withMetadata returns a copy with further metadata. It shares all that is not metadata.
func withMetadata(object *unstructured.Unstructured, more map[string]any) *unstructured.Unstructured {
	out := make(map[string]any, len(object.Object))
	for key, value := range object.Object {
		out[key] = value
	}
	metadata := map[string]any{}
	if old, ok := out["metadata"].(map[string]any); ok {
		for key, value := range old {
			metadata[key] = value
		}
	}
	for key, value := range more {
		metadata[key] = value
	}
	out["metadata"] = metadata
	return &unstructured.Unstructured{Object: out}
}
