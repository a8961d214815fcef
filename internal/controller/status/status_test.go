// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOneLineJoinsLinesAndCutsAtTheLimit(t *testing.T) {
	tests := []struct {
		name, in, want string
	}{
		{name: "one line stays", in: "a", want: "a"},
		{name: "lines are joined", in: "a\n  b\n\nc\n", want: "a; b; c"},
		{name: "a long message is cut and says so", in: strings.Repeat("x", MaxMessage+1), want: strings.Repeat("x", MaxMessage-4) + " ..."},
		{name: "a cut never splits a character", in: strings.Repeat("x", MaxMessage-5) + "äääää", want: strings.Repeat("x", MaxMessage-5) + " ..."},
		{name: "bytes that are no text are replaced, as the API server would", in: "a\xffb\xc3", want: "a\ufffdb\ufffd"},
		{name: "nothing speaks to a terminal", in: "a\x1b[31mb\x07\u202ec\td\r\ne", want: "a\ufffd[31mb\ufffd\ufffdc\td; e"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := OneLine(test.in); got != test.want {
				t.Errorf("got %d bytes ending in %q, want %d bytes", len(got), got[max(0, len(got)-10):], len(test.want))
			}
		})
	}
}

func TestSetReportsOnlyChangesOfStatusOrReason(t *testing.T) {
	var list []metav1.Condition
	conditions := Conditions{List: &list, Generation: 3}
	if !conditions.True("Ready", "Good", "one") {
		t.Error("the first Set must report a change")
	}
	if conditions.True("Ready", "Good", "two") {
		t.Error("another message is no change")
	}
	if !conditions.False("Ready", "Bad", "two") {
		t.Error("another status is a change")
	}
	if got := list[0].ObservedGeneration; got != 3 {
		t.Errorf("observedGeneration is %d, want 3", got)
	}
}
