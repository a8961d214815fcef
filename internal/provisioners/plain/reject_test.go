// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/parse"
	"rukpak.io/rukpak/provisioner"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// TestBadInputNamesFileAndLine has for each kind of fault the whole error.
func TestBadInputNamesFileAndLine(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"Syntax":        {"a: b\n---\nkey: [1,\n", "x.yaml:1: there is no apiVersion\nx.yaml:3: is not YAML: did not find expected node content"},
		"SyntaxLine":    {"# c\n---\n" + configMap + "data:\n  a: b: c\n", "x.yaml:7: is not YAML: mapping values are not allowed in this context"},
		"Tab":           {configMap + "data:\n\ta: b\n", "x.yaml:5: is not YAML: found character that cannot start any token"},
		"Text":          {"\n\nhello\n", "x.yaml:3: is text, not an object"},
		"List":          {configMap + "---\n- a\n", "x.yaml:5: is a list, not an object"},
		"Number":        {"5", "x.yaml:1: is a number, not an object"},
		"NoKind":        {"apiVersion: v1\nmetadata: {name: a}\n", "x.yaml:1: a: there is no kind"},
		"KindNumber":    {"apiVersion: v1\nkind: 5\nmetadata: {name: a}\n", "x.yaml:1: a: kind is a number, not text"},
		"NoVersion":     {"---\nkind: Foo\nmetadata: {name: a, namespace: b}\n", "x.yaml:2: Foo b/a: there is no apiVersion"},
		"BadVersion":    {"apiVersion: a/b/c\nkind: Foo\nmetadata: {name: a}\n", `x.yaml:1: Foo.a a: apiVersion "a/b/c" is not group/version`},
		"NoMetadata":    {"apiVersion: apps/v1\nkind: Deployment\n", "x.yaml:1: Deployment.apps: there is no metadata.name"},
		"Metadata":      {"apiVersion: v1\nkind: Pod\nmetadata: [a]\n", "x.yaml:1: Pod: metadata is a list, not a mapping"},
		"NoName":        {"apiVersion: v1\nkind: Pod\nmetadata: {name: }\n", "x.yaml:1: Pod: there is no metadata.name"},
		"NameNumber":    {"apiVersion: v1\nkind: Pod\nmetadata: {name: 5}\n", "x.yaml:1: Pod: metadata.name is a number, not text"},
		"NamePath":      {"apiVersion: v1\nkind: Pod\nmetadata: {name: ..}\n", `x.yaml:1: Pod ..: metadata.name ".." may not be '..'`},
		"NamespacePath": {"apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: a/b}\n", `x.yaml:1: Pod a/b/a: metadata.namespace "a/b" may not contain '/'`},
		"GenerateName":  {"apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n", "x.yaml:1: Pod: metadata.generateName is not supported, since every activation would make another object: set metadata.name"},
		"Owners":        {"apiVersion: v1\nkind: Pod\nmetadata: {name: a, ownerReferences: [{uid: x}]}\n", "x.yaml:1: Pod a: metadata.ownerReferences is not supported, since it needs the UID of an object in a cluster: remove it"},
		"LabelNumber":   {"apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {x: 5, b: true}}\n", `x.yaml:1: Pod a: metadata.labels["b"] is true or false: quote the value`},
		"Annotations":   {"apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: text}\n", "x.yaml:1: Pod a: metadata.annotations is text, not a mapping"},
		"KeyTwice":      {configMap + "data:\n  a: b\n  c: d\n  a: e\n", `x.yaml:7: the key "a" is set in line 5 already, to another value: remove one`},
		"MergeLate":     {configMap + "a: &a {x: 1}\nb:\n  x: 2\n  <<: *a\n", `x.yaml:7: the merge key brings "x", which is set in line 6 already: put the merge key first`},
		"MergeText":     {configMap + "b: {<<: text}\n", "x.yaml:4: a merge key needs a mapping, or a list of mappings"},
		"UnknownAlias":  {configMap + "b: *nope\n", "x.yaml:1: is not YAML: unknown anchor 'nope' referenced"},
		"SelfAlias":     {configMap + "b: &b [*b]\n", "x.yaml:4: the alias *b stands for something that contains it"},
		"Tag":           {configMap + "b: !Ref x\n", `x.yaml:4: "x" with the tag !Ref is not supported: remove the tag, or quote the text`},
		"Binary":        {configMap + "b: !!binary eA==\n", `x.yaml:4: "eA==" with the tag !!binary is not supported: remove the tag, or quote the text`},
		"TagMap":        {configMap + "b: !!set {x}\n", "x.yaml:4: the tag !!set is not supported: remove it"},
		"NaN":           {configMap + "b: .nan\n", "x.yaml:4: objects cannot have the number NaN: quote it if it is text"},
		"LongNumber":    {configMap + "b: 18446744073709551615\n", "x.yaml:4: the number 18446744073709551615 has more digits than can be kept: quote it if it is text"},
		"LongerNumber":  {configMap + "b: 123456789012345678901234567890\n", "x.yaml:4: the number 123456789012345678901234567890 has more digits than can be kept: quote it if it is text"},
		"KeyList":       {configMap + "? [a]\n: b\n", "x.yaml:4: a key must be text: quote it"},
		"KeyFloat":      {configMap + "1.0: b\n", "x.yaml:4: a key must be text: quote it"},
		"NotUTF8":       {"a: b\nc: \xff\n", "x.yaml:2: is not text in UTF-8: save it as such"},
		"NUL":           {"a: b\x00\n", "x.yaml:1: is not text in UTF-8: save it as such"},
		"Twice":         {configMap + "---\n" + configMap, "x.yaml:5: ConfigMap a: is in x.yaml:1 already: remove one"},
		"TwiceVersions": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n---\napiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: a}\n", "x.yaml:5: Deployment.apps a: is in x.yaml:1 already: remove one"},
		"TwiceDefault":  {configMap + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: prod}\n", "x.yaml:5: ConfigMap prod/a: is in x.yaml:1 already: remove one"},
		"ListItem":      {"kind: List\napiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n- apiVersion: v1\n  kind: Pod\n- 5\n", "x.yaml:7: Pod: there is no metadata.name\nx.yaml:9: List items[2]: is a number, not an object"},
		"EmptyList":     {"kind: List\napiVersion: v1\nitems: []\n", "none of the 1 YAML and JSON files has an object; activating nothing would remove all that is there"},
		"JSON":          {"{\"apiVersion\": \"v1\",\n\"kind\": \"Pod\",\n\"metadata\": {\"name\": \"a\",\n\"name\": \"b\"}}", "x.yaml:4: the key \"name\" is set in line 3 already, to another value: remove one"},
		"Separator":     {"---foo\nbar: x\n", "x.yaml:2: is not YAML: mapping values are not allowed in this context"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rejects(t, fstest.MapFS{"x.yaml": {Data: []byte(test.in)}}, test.want)
		})
	}
}

func TestBadJSONNamesFileAndLine(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"Ends":      {"{\n\"a\": [1,\n\n", "x.json:2: is not JSON: it ends early"},
		"Syntax":    {"{\n\"a\": 1,\n}", "x.json:3: is not JSON: invalid character '}' looking for beginning of object key string"},
		"KeyTwice":  {"{\"apiVersion\": \"v1\",\n \"kind\": \"Pod\",\n \"kind\": \"Pot\"}", `x.json:3: the key "kind" is set twice, to different values: remove one`},
		"Number":    {"{\"a\":\n  18446744073709551616}", "x.json:2: the number 18446744073709551616 has more digits than can be kept: quote it if it is text"},
		"Huge":      {`{"a": 1e999}`, "x.json:1: the number 1e999 is too large"},
		"Array":     {"[\n1]", "x.json:1: is a list, not an object"},
		"Deep":      {strings.Repeat(`{"a":`, 600) + "1" + strings.Repeat("}", 600), "x.json:1: is nested more than 500 levels deep"},
		"ListItems": {"{\"kind\": \"List\", \"apiVersion\": \"v1\", \"items\": [\n {\"apiVersion\": \"v1\", \"kind\": \"Pod\"},\n\n 7]}", "x.json:2: Pod: there is no metadata.name\nx.json:4: List items[1]: is a number, not an object"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rejects(t, fstest.MapFS{"x.json": {Data: []byte(test.in)}}, test.want)
		})
	}
}

func rejects(t *testing.T, content fs.FS, want string) {
	t.Helper()
	result, err := New().Render(t.Context(), request(content))
	if err == nil {
		t.Fatalf("rendered %v", result)
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if !provisioner.IsInputError(err) {
		t.Errorf("is a %T, not bad input", err)
	}
}

func TestDuplicatesNameBothFiles(t *testing.T) {
	content := fstest.MapFS{"b/two.json": {Data: []byte("\n{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}")}, "a/one.yaml": {Data: []byte(configMap)}}
	rejects(t, content, "b/two.json:2: ConfigMap a: is in a/one.yaml:1 already: remove one")
}

func TestNoObjectIsAnError(t *testing.T) {
	const end = " has an object; activating nothing would remove all that is there"
	tests := map[string]struct {
		content fstest.MapFS
		want    string
	}{
		"NoFiles":       {fstest.MapFS{}, "there are no files: the content" + end},
		"OtherFiles":    {fstest.MapFS{"README.md": {}}, "none of the 1 files ends in .yaml, .yml or .json, so none" + end},
		"Comments":      {fstest.MapFS{"a.yaml": {Data: []byte("# nothing\n---\n")}, "b.yaml": {}}, "none of the 2 YAML and JSON files" + end},
		"Kustomization": {fstest.MapFS{"kustomization.yaml": {Data: []byte("resources: [x]")}}, "none of the 1 YAML and JSON files" + end},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { rejects(t, test.content, test.want) })
	}
}

func TestChartIsNamedAsSuch(t *testing.T) {
	rejects(t, fstest.MapFS{"Chart.yaml": {Data: []byte("apiVersion: v2\nname: x\nversion: 1.0.0\n")}},
		"Chart.yaml:1: describes a Helm chart, which plain.rukpak.io does not render: choose a class whose provisioner does")
}

func TestAllFilesAreRefusedAtOnceButNotWithoutEnd(t *testing.T) {
	content := fstest.MapFS{}
	for i := range 30 {
		content[fmt.Sprintf("f%02d.yaml", i)] = &fstest.MapFile{Data: []byte("text")}
	}
	_, err := New().Render(t.Context(), request(content))
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != parse.MaxFaults+1 || lines[0] != "f00.yaml:1: is text, not an object" || lines[parse.MaxFaults] != "and more faults: mend these first" {
		t.Errorf("got %d lines:\n%s", len(lines), err)
	}
}

func TestAliasesDoNotExplode(t *testing.T) {
	laughs := configMap + "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
	for c := 'b'; c < 'k'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 10), ", "))
	}
	_, err := New().Render(t.Context(), request(fstest.MapFS{"x.yaml": {Data: []byte(laughs)}}))
	if err == nil || !strings.Contains(err.Error(), "aliases make the document larger by more than 4 MiB") {
		t.Error(err)
	}
}

func TestLimitsAreNamed(t *testing.T) {
	for want, data := range map[string]string{
		"x.yaml:1: the document is larger than 16 MiB: split it":                          "# " + strings.Repeat("x", parse.MaxDocument),
		"x.yaml:1: the document has more than 2097152 values: split it":                   "a: [" + strings.Repeat(",", parse.MaxStructure) + "]",
		"x.yaml:1: is nested more than 500 levels deep":                                   strings.Repeat("[", 600) + strings.Repeat("]", 600),
		"x.yaml: the YAML and JSON files so far are larger than 64 MiB: split the bundle": strings.Repeat("\n", parse.MaxFiles+1),
	} {
		t.Run(want, func(t *testing.T) { rejects(t, fstest.MapFS{"x.yaml": {Data: []byte(data)}}, want) })
	}
}

// TestAllFilesTogetherAreBounded holds also for documents that are small, each alone, and become large.
func TestAllFilesTogetherAreBounded(t *testing.T) {
	bomb := "data: {a: &a [" + strings.Repeat("x,", 1000) + "], b: [" + strings.Repeat("*a ,", 200) + "]}\n"
	object := func(i int, data string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: n%d}\n%s", i, data)
	}
	files := fstest.MapFS{}
	var text strings.Builder
	for i := range 3 {
		files[fmt.Sprintf("f%d.yaml", i)] = &fstest.MapFile{Data: []byte(object(i, strings.Repeat("\n", parse.MaxStructure-100)))}
	}
	for i := range 40 {
		text.WriteString(object(i, bomb) + "---\n")
	}
	rejects(t, files, "f2.yaml:1: the files so far have more than 4194304 values: split the bundle")
	rejects(t, fstest.MapFS{"x.yaml": {Data: []byte(text.String())}}, "x.yaml:100: the files so far have more than 4194304 values: split the bundle")
}

func TestParametersAndConfigAreRefused(t *testing.T) {
	content := fstest.MapFS{"x.yaml": {Data: []byte(configMap)}}
	for raw, want := range map[string]string{
		`{"b": 1, "a": {}}`: `config: unknown field "a", "b": plain.rukpak.io takes none, leave it out`,
		`[1]`:               `config: is not a JSON object; plain.rukpak.io takes none, leave it out`,
	} {
		req := request(content)
		req.Config = []byte(raw)
		if _, err := New().Render(t.Context(), req); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if err := New().Validate(t.Context(), nil, []byte(raw)); err == nil || err.Error() != strings.Replace(want, "config", "parameters", 1) {
			t.Errorf("parameters: got %v", err)
		}
	}
	for _, raw := range []string{"", "null", " {} "} {
		req := request(content)
		req.Config, req.Parameters = []byte(raw), []byte(raw)
		if _, err := New().Render(t.Context(), req); err != nil {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

func TestFaultsOfTheStoreAreNotBadInput(t *testing.T) {
	_, err := New().Render(t.Context(), request(brokenFS{fstest.MapFS{"x.yaml": {}}}))
	if err == nil || provisioner.IsInputError(err) || !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

var errBroken = errors.New("the disk is broken")

type brokenFS struct{ fstest.MapFS }

func (brokenFS) ReadFile(name string) ([]byte, error) {
	return nil, &fs.PathError{Op: "read", Path: name, Err: errBroken}
}

func TestCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New().Render(ctx, request(fstest.MapFS{"x.yaml": {Data: []byte(configMap)}})); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestKeyTwiceWithOneValueIsNoted(t *testing.T) {
	result, err := New().Render(t.Context(), request(fstest.MapFS{
		"a.yaml": {Data: []byte(configMap + "data:\n  a: b\n  a: b\n")},
		"b.json": {Data: []byte("{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"a\",\n\"name\": \"a\"}}")},
	}))
	if want := "A key is set twice, to the same value: a.yaml:6, b.json:2."; err != nil || result.Notes != want {
		t.Errorf("got %q and %v, want %q", result.Notes, err, want)
	}
}
