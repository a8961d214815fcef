// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"
	"strings"
	"testing"
)

func TestNamespacesAreAListOfNames(t *testing.T) {
	for list, want := range map[string]struct {
		names []string
		err   string
	}{
		"a":          {names: []string{"a"}},
		"b,a, b,\na": {names: []string{"b", "a"}},
		"":           {err: "names none"},
		" , ":        {err: "names none"},
		"a,*":        {err: `"*" is no name of a namespace`},
		"a,kube/sys": {err: `"kube/sys" is no name`},
	} {
		var o Options
		err := o.SetNamespaces(list)
		if want.err != "" {
			if err == nil || !strings.Contains(err.Error(), want.err) {
				t.Errorf("%q: %v", list, err)
			}
			continue
		}
		if err != nil || !slices.Equal(o.Namespaces, want.names) {
			t.Errorf("%q: %q, %v", list, o.Namespaces, err)
		}
	}
}

func TestManagerThatIsConfinedSharesNoStore(t *testing.T) {
	if err := (Options{Namespaces: []string{"a"}, SharedStore: "file:///x"}).check(); err == nil || !strings.Contains(err.Error(), "--shared-store") {
		t.Errorf("got %v", err)
	}
	for _, fine := range []Options{{}, {Namespaces: []string{"a"}}, {SharedStore: "file:///x"}} {
		if err := fine.check(); err != nil {
			t.Error(err)
		}
	}
}
