// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
)

// Rules are asked about plans that this version can read whole, or not at all.
func TestAPlanOfANewerFormatIsRefused(t *testing.T) {
	for _, text := range []string{`{"format":"rukpak.io/plan/v2"}`, `{}`, `{"format":""}`} {
		if got, err := Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), "its format is") {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
}
