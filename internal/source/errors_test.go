// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"testing"
)

func TestErrorsKeepTheirClassWhenWrapped(t *testing.T) {
	cause := errors.New("gone")
	for name, tc := range map[string]struct {
		err    error
		kind   Kind
		reason string
		text   string
	}{
		"Terminal":     {&Error{Reason: ReasonLimitExceeded, Kind: Terminal, Err: cause}, Terminal, ReasonLimitExceeded, "gone"},
		"Wrapped":      {fmt.Errorf("bundle a: %w", &Error{Reason: ReasonNotFound, Kind: Waiting, Err: cause}), Waiting, ReasonNotFound, "bundle a: gone"},
		"Unclassified": {cause, Transient, "", "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := KindOf(tc.err); got != tc.kind {
				t.Errorf("KindOf = %v, want %v", got, tc.kind)
			}
			if got := ReasonOf(tc.err); got != tc.reason {
				t.Errorf("ReasonOf = %q, want %q", got, tc.reason)
			}
			if got := tc.err.Error(); got != tc.text {
				t.Errorf("text = %q, want %q", got, tc.text)
			}
			if !errors.Is(tc.err, cause) {
				t.Error("the cause is lost")
			}
		})
	}
}
