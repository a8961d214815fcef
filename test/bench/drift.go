// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/ownership"
)

// atOnce is how many objects are deleted at the same time in the second part.
const atOnce = 10

// drift deletes objects of one instance, one after another and then several at once, and measures until each is there
// again: from the delete's request to the watched event of an object with the same name.
func drift(ctx context.Context, b *bench) ([]Row, error) {
	s, err := b.environment(ctx)
	if err == nil {
		err = s.prepare(ctx)
	}
	if err != nil {
		return nil, err
	}
	const name = "drift"
	objects := mixOf(b.scaled(100))
	if err := s.instance(ctx, name, v1alpha1.ApprovalAutomatic, objects); err != nil {
		return nil, err
	}
	instance, err := s.ready(ctx, name)
	if err != nil {
		return nil, err
	}
	all := objects.objects(name, 0, 0)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // an order, the same in every run
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	returned, err := s.watchReturns(ctx, instance)
	if err != nil {
		return nil, err
	}
	defer returned.stop()
	b.say("   delete %d objects, one after another", len(all))
	single, err := s.deleteBy(ctx, returned, all, 1)
	if err != nil {
		return nil, s.explain(err)
	}
	b.say("   delete %d objects, %d at once", len(all), atOnce)
	several, err := s.deleteBy(ctx, returned, all, atOnce)
	if err != nil {
		return nil, s.explain(err)
	}
	if _, err := s.ready(ctx, name); err != nil {
		return nil, err
	}
	if _, err := s.remove(ctx, name); err != nil {
		return nil, err
	}
	return []Row{
		times(fmt.Sprintf("%d deletions, one after another: p99 until restored", len(all)), single, below(1)),
		times(fmt.Sprintf("%d deletions, %d at once: p99 until restored", len(all), atOnce), several, nil),
	}, nil
}

func times(what string, took []float64, target *Target) Row {
	return Row{What: what, Measured: percentile(took, 99), Unit: "s", Target: target, Details: map[string]any{
		"p50": percentile(took, 50), "p90": percentile(took, 90), "max": percentile(took, 100), "count": len(took),
	}}
}

// deleteBy deletes objects in groups; the next group goes when the one before is restored.
func (s *stage) deleteBy(ctx context.Context, returned *returns, all []*unstructured.Unstructured, size int) ([]float64, error) {
	var took []float64
	for len(all) > 0 {
		group := all[:min(size, len(all))]
		all = all[len(group):]
		for _, object := range group {
			returned.expect(ownership.ID{Group: object.GroupVersionKind().Group, Kind: object.GetKind(), Namespace: tenants, Name: object.GetName()})
		}
		var deletes []func(context.Context) error
		for _, object := range group {
			deletes = append(deletes, func(ctx context.Context) error {
				victim := &metav1.PartialObjectMetadata{}
				victim.SetGroupVersionKind(object.GroupVersionKind())
				victim.SetNamespace(tenants)
				victim.SetName(object.GetName())
				returned.begin(victim)
				return s.client.Delete(ctx, victim, client.PropagationPolicy(metav1.DeletePropagationBackground))
			})
		}
		if err := inParallel(ctx, size, deletes); err != nil {
			return nil, err
		}
		seconds, err := returned.await(ctx, 30*time.Second)
		if err != nil {
			return nil, err
		}
		took = append(took, seconds...)
	}
	return took, nil
}
