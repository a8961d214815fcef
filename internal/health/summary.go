// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rukpak.io/rukpak/internal/plural"
)

// Item is the health of one named object.
type Item struct {
	Object string // as ownership.ID's String has it
	Result
}

// Summary is the health of many objects.
type Summary struct {
	// Counts by status. Terminating and NotFound objects count as InProgress, since the engine makes them anew;
	// Unknown ones as Failed, since nothing changes that but a change.
	Total, Current, InProgress, Failed int
	// Status is Failed if any object is, else InProgress if any is, else Current.
	Status Status
	// Message is one line: what is not current, the failed ones first, then by name, the first few in full.
	Message string
}

// Summarize adds up. At most so many objects are named in the message. The order of items is of no importance.
func Summarize(items []Item, named int) Summary {
	s := Summary{Total: len(items), Status: Current}
	var rest []Item
	for _, item := range items {
		switch item.Status {
		case Current:
			s.Current++
			continue
		case Failed, Unknown:
			s.Failed++
		default:
			s.InProgress++
		}
		rest = append(rest, item)
	}
	switch {
	case s.Failed > 0:
		s.Status = Failed
	case s.InProgress > 0:
		s.Status = InProgress
	default:
		s.Message = plural.All(s.Total, "object") + " current"
		return s
	}
	slices.SortFunc(rest, func(a, b Item) int {
		return cmp.Or(cmp.Compare(rank(a.Status), rank(b.Status)), cmp.Compare(a.Object, b.Object))
	})
	var names []string
	for _, item := range rest[:min(named, len(rest))] {
		names = append(names, strings.TrimSuffix(fmt.Sprintf("%s: %s", item.Object, item.Message), ": "))
	}
	if more := len(rest) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	s.Message = fmt.Sprintf("%d of %d objects are not current: %s", len(rest), s.Total, strings.Join(names, "; "))
	return s
}

func rank(s Status) int {
	if s == Failed || s == Unknown {
		return 0
	}
	return 1
}
