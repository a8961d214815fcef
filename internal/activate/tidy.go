// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// markOfTask goes from what was a task and is state now.
var markOfTask = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", AnnotationRun))

// block gives the phases of tasks that end with the one at i and have no state between them. Their objects are deleted
// together: the account that one of them makes is there for all.
func block(all []provisioner.Phase, i int) []provisioner.Phase {
	first := i
	for first > 0 && IsTask(all[first-1]) {
		first--
	}
	return all[first : i+1]
}

// tidy deletes the objects of tasks that have ended, as these say, once a block of tasks is over: all have ended well, or
// one failed. Others may be waited for still; what has not ended is left alone. What cannot be deleted is noted in results.
func (r *revisions) tidy(ctx context.Context, s *session, phases []provisioner.Phase, results []ObjectResult) {
	for _, phase := range slices.Backward(phases) {
		for _, source := range slices.Backward(phase.Objects) {
			at := slices.IndexFunc(results, func(result ObjectResult) bool {
				return result.Phase == phase.Name && result.report != nil && sameTask(result.ID, source)
			})
			if at < 0 {
				continue
			}
			policy, err := policyOf(source)
			if err == nil && policy.wants(results[at].report.State) {
				err = r.objects.tidyOne(ctx, s, source, *results[at].report)
			}
			if err != nil && results[at].Err == nil {
				results[at].Action, results[at].Err = Failed, classify(results[at].ID, err)
			}
		}
	}
}

// sameTask compares identities where that of the source may lack the namespace.
func sameTask(id ownership.ID, source *unstructured.Unstructured) bool {
	other := ownership.IDOf(source)
	if other.Namespace == "" {
		other.Namespace = id.Namespace
	}
	return other == id
}

// tidyOne deletes the object that was made for a task, and nothing else.
func (o *objects) tidyOne(ctx context.Context, s *session, source *unstructured.Unstructured, report TaskReport) error {
	named := inVersion(withMetadata(source, map[string]any{"namespace": report.ID.Namespace}), source.GroupVersionKind().Version)
	err := error(errAgain)
	for attempt := 0; attempt < attempts && again(err); attempt++ {
		if attempt > 1 {
			backOff(ctx, attempt)
		}
		var live client.Object
		if live, err = s.look(ctx, named); err != nil {
			continue
		}
		holder, held := ownership.OwnerOf(live)
		if !held || holder.UID != s.owner.UID || live.GetUID() != report.UID || live.GetDeletionTimestamp() != nil ||
			live.GetAnnotations()[AnnotationRun] != s.options.Tasks.runOf(report.Phase) {
			return nil
		}
		if crd, ok := live.(*unstructured.Unstructured); ok {
			if kept, wait, failure := s.inUse(ctx, crd); failure != nil || kept+wait != "" {
				return failure
			}
		}
		err = s.remove(ctx, live)
	}
	if apierrors.IsNotFound(err) || notServed(err) {
		return nil
	}
	return err
}

// removeTask deletes the object of an earlier run. A Job goes only after its Pods, so that two runs never overlap.
func (s *session) removeTask(ctx context.Context, live *unstructured.Unstructured) error {
	if live.GroupVersionKind().GroupKind() != jobKind {
		return s.remove(ctx, live)
	}
	uid, version := live.GetUID(), live.GetResourceVersion()
	s.writes.Add(1)
	return s.client.Delete(ctx, live.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version},
		client.PropagationPolicy(metav1.DeletePropagationForeground))
}
