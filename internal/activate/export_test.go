// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/internal/ownership"
)

// Fill puts n objects into a ledger.
func Fill(l *Ledger, n int) {
	for i := range n {
		name := fmt.Sprintf("a-name-of-usual-length-%d", i)
		id := ownership.ID{Group: "apps", Kind: "Deployment", Namespace: "some-namespace", Name: name}
		l.keep("uid", id, record{uid: types.UID(fmt.Sprintf("%036d", i)), fields: fmt.Sprintf("%032d", i)})
	}
}

// WithObserved returns an engine with the same ledger and another cache.
func WithObserved(e *Engine, observed Observed) *Engine {
	return New(Config{Observed: observed, Ledger: e.ledger})
}

func three() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{{}, {}, {}}
}

func fails(err *Error) step {
	return func(context.Context, *session, *unstructured.Unstructured) ObjectResult {
		return ObjectResult{Action: Failed, Err: err}
	}
}
