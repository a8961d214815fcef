// SPDX-License-Identifier: Apache-2.0

// Package compilation remembers what was compiled of objects, such as expressions of CEL: that takes much longer than to use it.
// It stands beside the flow, below all that compiles.
package compilation

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Book remembers by UID and generation. The zero value is ready.
type Book[T any] struct {
	mu    sync.Mutex
	known map[types.UID]entry[T]
}

type entry[T any] struct {
	generation int64
	made       T
	err        error
}

// Of gives what compile gives of an object, and calls it only if the object's spec has changed since.
func (b *Book[T]) Of(object metav1.Object, compile func() (T, error)) (T, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.known[object.GetUID()]
	if !ok || found.generation != object.GetGeneration() {
		found = entry[T]{generation: object.GetGeneration()}
		found.made, found.err = compile()
		if b.known == nil {
			b.known = map[types.UID]entry[T]{}
		}
		b.known[object.GetUID()] = found
	}
	return found.made, found.err
}

// Forget drops what is known of an object that is gone, or of which nothing is to be compiled any more.
func (b *Book[T]) Forget(object types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, object)
}

// Len returns how many objects are known.
func (b *Book[T]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.known)
}
