// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummarize(t *testing.T) {
	item := func(name string, s Status, message string) Item {
		return Item{Object: name, Result: Result{s, message}}
	}
	tests := map[string]struct {
		items []Item
		named int
		want  Summary
	}{
		"nothing is current": {want: Summary{Status: Current, Message: "all 0 objects are current"}},
		"all current": {
			items: []Item{item("a", Current, "x"), item("b", Current, "")}, named: 3,
			want: Summary{Total: 2, Current: 2, Status: Current, Message: "all 2 objects are current"},
		},
		"failed ones come first, then names": {
			items: []Item{
				item("a", InProgress, "1 of 2"), item("d", Unknown, "odd"), item("c", Failed, "broken"), item("b", NotFound, ""),
				item("e", Terminating, "is being deleted"), item("f", Current, ""),
			},
			named: 3,
			want: Summary{
				Total: 6, Current: 1, InProgress: 3, Failed: 2, Status: Failed,
				Message: "5 of 6 objects are not current: c: broken; d: odd; a: 1 of 2; and 2 more",
			},
		},
		"without a message there is the name": {
			items: []Item{item("b", NotFound, "")}, named: 1,
			want: Summary{Total: 1, InProgress: 1, Status: InProgress, Message: "1 of 1 objects are not current: b"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for range 2 { // in either order
				if diff := cmp.Diff(tc.want, Summarize(tc.items, tc.named)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				slices.Reverse(tc.items)
			}
		})
	}
}
