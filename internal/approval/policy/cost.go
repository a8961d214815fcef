// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
)

// What rules may cost, in the units of CEL: about one for each field that is read and each call.
const (
	// EstimateLimit is what a rule may cost at most for the largest plan that is foreseen. It is checked when it is compiled.
	EstimateLimit = 100_000_000
	// CostLimit is what a rule may cost when it is evaluated. It is not reached by rules that look at each object once.
	CostLimit = 10_000_000
	// TotalLimit is what all rules of a class may cost together when they are evaluated.
	TotalLimit = 20_000_000
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
	case types.ListKind, types.MapKind:
		return &checker.SizeEstimate{Max: anyList}
	}
	return nil
}

// EstimateCallCost leaves that to the library of Kubernetes.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate { return nil }

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
