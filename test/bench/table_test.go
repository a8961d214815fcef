// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestABarInACellBeginsNoOther(t *testing.T) {
	report := &Report{Rows: []Row{{Figure: "fetch", What: "a | b"}}}
	if got := report.asMarkdown(); !strings.Contains(got, `| fetch | a \| b |`) {
		t.Errorf("got\n%s", got)
	}
}
