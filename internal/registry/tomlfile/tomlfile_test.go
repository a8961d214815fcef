// SPDX-License-Identifier: Apache-2.0

package tomlfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
)

// flat writes a tree as lines "line path = value".
func flat(at *Table, path string) []string {
	var lines []string
	for _, key := range at.Keys {
		lines = append(lines, flatValue(key.Value, path+"."+key.Name)...)
	}
	return lines
}

func flatValue(v *Value, path string) []string {
	switch v.Kind {
	case Object:
		return append([]string{fmt.Sprintf("%d %s {}", v.Table.Line, path)}, flat(v.Table, path)...)
	case Array:
		var lines []string
		for i, item := range v.Items {
			lines = append(lines, flatValue(item, fmt.Sprintf("%s[%d]", path, i))...)
		}
		return lines
	}
	return []string{fmt.Sprintf("%d %s = %s", v.Line, path, v.Text)}
}

func TestOrderAndLinesAreKept(t *testing.T) {
	tree, err := Parse("f", []byte(`z = "1"
a.b = true
[t."x.y"]
k = ["p", "q"]

[[list]]
n = 1
[[list.inner]]
s = '''
two'''
[[list]]
i = {j = "k", l = {m = "n"}}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"1 .z = 1", "2 .a {}", "2 .a.b = true", "3 .t {}", "3 .t.x.y {}", "4 .t.x.y.k[0] = p", "4 .t.x.y.k[1] = q",
		"6 .list[0] {}", "7 .list[0].n = 1", "8 .list[0].inner[0] {}", "9 .list[0].inner[0].s = two",
		"11 .list[1] {}", "12 .list[1].i {}", "12 .list[1].i.j = k", "12 .list[1].i.l {}", "12 .list[1].i.l.m = n",
	}
	if diff := cmp.Diff(want, flat(tree, "")); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestErrorsAreOneLineWithFileAndLine(t *testing.T) {
	for text, want := range map[string]string{
		"a = 1\na = 2":       "f:2: ",
		"[t]\n[t]":           "f:2: ",
		"\n\nx":              "f:3: ",
		"a = \"":             "f:1: ",
		"a = 1\n[a.b]\nc=1":  "f:2: ",
		"a = {b = 1}\n[a.c]": "f:2: ",
	} {
		_, err := Parse("f", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for _, text := range []string{"", "a", `"\`, "\x00\x1f\u007f", "é\u2028😀", "<&>"} {
		var got map[string]string
		if err := toml.Unmarshal([]byte("a = "+Quote(text)), &got); err != nil || got["a"] != text {
			t.Errorf("%q became %q, %v", text, got["a"], err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a = 1\n[b]\nc = [1, 2]\n[[d]]\n[[d.e]]", "a.b.c = {d = 'e'}", "[[a]]\n[a.b]\n[[a.c]]", "x = 2020-01-01"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := Parse("f", data)
		var whole map[string]any
		if valid := toml.Unmarshal(data, &whole) == nil; valid != (err == nil) {
			t.Fatalf("valid is %t, and the error %v", valid, err)
		}
		if err == nil && len(tree.Keys) != len(whole) {
			t.Errorf("%d keys, not %d", len(tree.Keys), len(whole))
		}
	})
}
