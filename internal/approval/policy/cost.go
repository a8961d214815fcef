// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"reflect"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
)

// What rules may cost, in the units of CEL: about one for each field that is read and each call.
const (
	// EstimateLimit is what a rule may cost at most for the largest plan that is foreseen. It is checked when it is compiled.
	EstimateLimit = 100_000_000
	// StepLimit is how many items a rule may look at when it is evaluated, in all its loops. Rules that look at each object a
	// few times do not reach it.
	StepLimit = 500_000
)

// What values have at most of which nobody knows where they come from, such as a text that is joined.
const (
	anyText = 4096
	anyList = 50_000
)

// sizes tells how large facts are at most.
type sizes struct{}

// EstimateSize knows sizes by the path of a value, such as plan, objects, @items, name.
func (sizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if path := node.Path(); len(path) > 0 {
		if size, ok := sizeAt(path); ok {
			return &checker.SizeEstimate{Max: size}
		}
	}
	switch node.Type().Kind() {
	case types.StringKind:
		return &checker.SizeEstimate{Max: anyText}
	case types.ListKind, types.MapKind, types.DynKind, types.AnyKind:
		return &checker.SizeEstimate{Max: anyList}
	case types.StructKind, types.OpaqueKind, types.TypeKind:
		return &checker.SizeEstimate{Max: 1}
	}
	return nil // a scalar
}

// EstimateCallCost leaves that to the library of Kubernetes.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// exhausted is a context that has ended: evaluation asks for that after StepLimit steps, and not before. The tracker of
// actual costs that CEL has would do more exactly what is wanted, but takes a time that grows with the square of the steps
// (its stack is never shortened within a loop): minutes for what takes milliseconds.
var exhausted = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(fmt.Errorf("it looks at more than the %d items that a rule may", StepLimit))
	return ctx
}()

// oversized says which list of the facts is larger than the estimates of costs foresee.
func oversized(of *shape, value reflect.Value, path string) error {
	for _, f := range of.fields {
		at := value.Field(f.index)
		if f.pointer {
			if at.IsNil() {
				continue
			}
			at = at.Elem()
		}
		switch at.Kind() {
		case reflect.Slice, reflect.Map:
			if uint64(at.Len()) > f.max {
				return fmt.Errorf("%s%s has %d items, more than the %d that rules are made for", path, f.name, at.Len(), f.max)
			}
		case reflect.Struct:
			if f.inner == nil {
				continue
			}
			if err := oversized(f.inner, at, path+f.name+"."); err != nil {
				return err
			}
		}
	}
	return nil
}

// sizeAt walks a path from the variables on.
func sizeAt(path []string) (uint64, bool) {
	at, items := root, false // items: the path is inside of the list or map of last
	var last *field
	for _, step := range path {
		switch {
		case step == "@items" || step == "@keys" || step == "@values":
			items = true
			continue
		case at == nil || at.byName[step] == nil:
			if last != nil && last.cel.Kind() == types.MapKind {
				return last.len, true
			}
			return 0, false
		}
		last, items = at.byName[step], false
		at = last.inner
	}
	switch {
	case last == nil:
		return 0, false
	case items, last.cel.Kind() == types.StringKind:
		return last.len, last.inner == nil
	case last.max > 0:
		return last.max, true
	}
	return 0, false
}
