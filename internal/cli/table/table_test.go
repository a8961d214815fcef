// SPDX-License-Identifier: Apache-2.0

package table

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestColumnsAreAlignedWithoutCountingColour(t *testing.T) {
	shown := Table{Titles: []string{"NAME", "STATE", "AGE"}}
	shown.Add("web", "\x1b[32mReady\x1b[0m", "1m")
	shown.Add("höchste", "", "")
	var out strings.Builder
	if err := shown.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := "NAME      STATE   AGE\n" +
		"web       \x1b[32mReady\x1b[0m   1m\n" +
		"höchste   -       -\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestWithoutTitlesEmptyCellsStayEmpty(t *testing.T) {
	var shown Table
	shown.Add("a:", "1")
	shown.Add("long:", "")
	var out strings.Builder
	if err := shown.Write(&out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a:      1\nlong:\n", out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
