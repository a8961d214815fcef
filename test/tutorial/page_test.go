// SPDX-License-Identifier: Apache-2.0

package tutorial

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMarkedBlocksAreStepsAndOthersAreNot(t *testing.T) {
	page := strings.ReplaceAll(`# Page
~~~sh
make dev
~~~
<!-- test -->
~~~sh
one
two
~~~

~~~text
shown
~~~
<!-- test: fails -->
~~~sh
three
~~~
Text.
~~~text
not the output of three
~~~
`, "~~~", "```")
	got, err := steps(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []step{
		{line: 7, sh: "one\ntwo", lines: []string{"shown"}},
		{line: 16, sh: "three", fails: true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(step{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMarkWithoutABlockIsAnError(t *testing.T) {
	for _, page := range []string{"<!-- test -->\ntext", "<!-- test -->", "<!-- test -->\n```sh\nls"} {
		if got, err := steps(page); err == nil {
			t.Errorf("%q gives %v", page, got)
		}
	}
}

func TestShownLinesMustBeInTheOutput(t *testing.T) {
	output := "NAME   READY\nnotes  True   3s\n"
	for _, test := range []struct {
		shown string
		want  []string
	}{
		{"NAME READY", nil},
		{"notes   True", nil},
		{"notes ... 3s", nil},
		{"notes False", []string{"notes False"}},
		{"3s ... notes", []string{"3s ... notes"}},
		{"", nil},
	} {
		got := step{lines: []string{test.shown}}.missing(output)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q: -want +got:\n%s", test.shown, diff)
		}
	}
}
