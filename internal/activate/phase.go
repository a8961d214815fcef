// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// step does something to one object.
type step func(ctx context.Context, s *session, object *unstructured.Unstructured) ObjectResult

// phases is the middle level: objects side by side.
type phases struct {
	parallel int
}

// each does step to all objects, some at a time, and returns the results in the order of the objects. All objects are
// tried whatever becomes of others, unless the API server is gone or the call is over: then the rest is left out.
func (p *phases) each(ctx context.Context, s *session, name string, objects []*unstructured.Unstructured, do step) []ObjectResult {
	results := make([]ObjectResult, len(objects))
	var next atomic.Int64
	var gone atomic.Bool
	var workers sync.WaitGroup
	for range min(p.parallel, len(objects)) {
		workers.Go(func() {
			for !gone.Load() {
				i := int(next.Add(1)) - 1
				if i >= len(objects) {
					return
				}
				results[i] = do(ctx, s, objects[i])
				results[i].Phase = name
				if err := results[i].Err; err != nil && (unreachable(err) || interrupted(err)) {
					gone.Store(true)
				}
			}
		})
	}
	workers.Wait()
	return tried(results)
}

// tried leaves out what was not tried.
func tried(results []ObjectResult) []ObjectResult {
	out := results[:0]
	for _, result := range results {
		if result.Action != "" {
			out = append(out, result)
		}
	}
	return out
}
