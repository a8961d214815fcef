// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/provisioner"
)

// sideBySide is what a revision needs of the level below.
type sideBySide interface {
	each(ctx context.Context, s *session, phase string, objects []*unstructured.Unstructured, do step) []ObjectResult
}

// revisions is the highest level: phases in order.
type revisions struct {
	objects *objects
	phases  sideBySide
	gates   *gates
}

// apply goes through the phases until one does not stand. Tasks of other moments are passed over.
func (r *revisions) apply(ctx context.Context, s *session, all []provisioner.Phase) Result {
	all = At(all, s.options.Tasks.Moment)
	s.survey(all)
	var result Result
	for i, phase := range all {
		done := r.phase(ctx, s, phase, all[i+1:])
		result.Objects = append(result.Objects, done...)
		stands := len(done) == len(phase.Objects) && firm(done)
		last := i+1 == len(all) || !IsTask(all[i+1])
		if IsTask(phase) && (stands && last || taskFailed(done)) {
			r.tidy(ctx, s, block(all, i), result.Objects)
			stands = firm(result.Objects)
		}
		if !stands && !(s.options.PassForbidden && onlyForbidden(done, len(phase.Objects))) {
			break
		}
	}
	return s.close(result, total(all))
}

func (r *revisions) phase(ctx context.Context, s *session, phase provisioner.Phase, later []provisioner.Phase) []ObjectResult {
	if IsTask(phase) {
		return r.run(ctx, s, phase)
	}
	done := r.phases.each(ctx, s, phase.Name, phase.Objects, r.objects.apply)
	if len(done) == len(phase.Objects) && firm(done) {
		r.gates.open(ctx, s, phase.Objects, done, later)
	}
	return done
}

func taskFailed(results []ObjectResult) bool {
	return slices.ContainsFunc(results, func(result ObjectResult) bool {
		return result.report != nil && result.report.State == TaskFailed
	})
}

// firm reports whether all objects stand, so that others can build on them.
func firm(results []ObjectResult) bool {
	for _, result := range results {
		if result.Err != nil || result.Wait != "" {
			return false
		}
	}
	return true
}

// onlyForbidden reports whether all of a phase was tried, and nothing but permissions is in the way of what does not stand.
func onlyForbidden(results []ObjectResult, objects int) bool {
	return len(results) == objects && !slices.ContainsFunc(results, func(result ObjectResult) bool {
		return result.Wait != "" || result.Err != nil && result.Err.Reason != PermissionsMissing
	})
}

func total(all []provisioner.Phase) int {
	n := 0
	for _, phase := range all {
		n += len(phase.Objects)
	}
	return n
}

// close completes the result of a call over so many objects.
func (s *session) close(result Result, objects int) Result {
	result.Skipped = objects - len(result.Objects)
	result.Complete = result.Skipped == 0 && firm(result.Objects)
	result.Reads, result.Writes = int(s.reads.Load()), int(s.writes.Load())
	return result
}
