// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// remove deletes the objects in reverse order. Only custom resources are waited for: what sees to their finalizers may
// be among what goes next. Nothing else has to be gone before the next phase goes, and objects that only their
// finalizers keep, such as a claim that a Pod uses, do not hold up the whole.
func (r *revisions) remove(ctx context.Context, s *session, all []provisioner.Phase) Result {
	stages := reversed(State(all), s.options.Keep)
	var result Result
	for i, stage := range stages {
		done := r.phases.each(ctx, s, stage.Name, stage.Objects, r.objects.remove)
		if len(done) == len(stage.Objects) && firm(done) && i+1 < len(stages) && !s.dry {
			r.awaitGone(ctx, s, stage.Objects, done)
		}
		result.Objects = append(result.Objects, done...)
		if len(done) < len(stage.Objects) || !firm(done) {
			break
		}
	}
	return s.close(result, total(stages))
}

// reversed orders the phases for deletion, without what is to be kept: backwards, but CustomResourceDefinitions after
// all that may be of their kinds or see to these, and namespaces last of all, whatever phase they came in.
func reversed(all []provisioner.Phase, keep func(ownership.ID) bool) []provisioner.Phase {
	var stages []provisioner.Phase
	last := map[schema.GroupKind]*provisioner.Phase{
		crdKind:             {Name: provisioner.PhaseCRDs},
		{Kind: "Namespace"}: {Name: provisioner.PhaseNamespaces},
	}
	for _, phase := range slices.Backward(all) {
		stage := provisioner.Phase{Name: phase.Name}
		for _, object := range phase.Objects {
			if keep != nil && keep(ownership.IDOf(object)) {
				continue
			}
			if late := last[object.GroupVersionKind().GroupKind()]; late != nil {
				late.Objects = append(late.Objects, object)
				continue
			}
			stage.Objects = append(stage.Objects, object)
		}
		stages = append(stages, stage)
	}
	stages = append(stages, *last[crdKind], *last[schema.GroupKind{Kind: "Namespace"}])
	return slices.DeleteFunc(stages, func(p provisioner.Phase) bool { return len(p.Objects) == 0 })
}

// awaitGone waits until the custom resources among the objects are gone, and notes in the results which are not.
func (r *revisions) awaitGone(ctx context.Context, s *session, objects []*unstructured.Unstructured, results []ObjectResult) {
	for i, object := range objects {
		if results[i].Action != Deleted || results[i].Note == "" || builtIn(object.GroupVersionKind().Group) {
			continue
		}
		results[i].Wait, results[i].Note = results[i].Note, ""
		object = inVersion(withMetadata(object, map[string]any{"namespace": results[i].ID.Namespace}), results[i].version)
		for results[i].Wait != "" {
			live, err := s.peek(ctx, object)
			switch {
			case apierrors.IsNotFound(err) || notServed(err):
				results[i].Wait = ""
				continue
			case err != nil:
				phase := results[i].Phase
				results[i] = failed(results[i].ID, err)
				results[i].Phase = phase
				return
			case live.GetUID() != results[i].uid: // another object took its name
				results[i].Wait = ""
				continue
			}
			results[i].Wait = goingNote(live.GetFinalizers())
			if !s.wait(ctx) {
				break
			}
		}
	}
}

// groups are those that the API server itself serves. They are noted before anything runs, since clients add to the
// scheme whatever they meet.
var groups = builtInGroups()

func builtInGroups() map[string]bool {
	all := map[string]bool{crdKind.Group: true, apiServiceKind.Group: true}
	for _, version := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		all[version.Group] = true
	}
	return all
}

// builtIn reports whether the API server itself serves a group.
func builtIn(group string) bool { return groups[group] }
