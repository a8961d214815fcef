// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// outcome is what a tree holds, or what is wrong with it, as text.
func outcome(t *testing.T, content fs.FS) string {
	t.Helper()
	found, err := FindFiles(t.Context(), content)
	if err != nil {
		return err.Error()
	}
	read := NewObjects("test.rukpak.io", "prod")
	if err := read.ReadAll(t.Context(), content, found.Manifests); err != nil {
		return err.Error()
	}
	text := fmt.Sprint(read.Skipped, read.Repeated, read.Refusal())
	for _, one := range read.Found {
		encoded, err := json.Marshal(one.Object)
		if err != nil {
			t.Fatal(err)
		}
		text += "\n" + one.Place.String() + " " + string(encoded)
	}
	return text
}

// asKubectl gives the first document as kubectl reads it.
func asKubectl(text string) (map[string]any, error) {
	fields := map[string]any{}
	err := utilyaml.Unmarshal([]byte(text), &fields)
	return fields, err
}

// TestScalarsMeanWhatTheyMeanToKubectl holds each scalar against the parser that kubectl uses.
func TestScalarsMeanWhatTheyMeanToKubectl(t *testing.T) {
	scalars := []string{
		"0400", "0o400", "0O17", "0x1F", "0X1f", "0b101", "0B11", "-0b11", "+0b11", "08", "09.5", "0_8", "1_000", "_1", "1__0", "-1", "+1", "+0400", "--1",
		"1.", ".5", "+.5", "-.5", "1.5e3", "1e3", "1E3", "1e", "1e+", ".e3", "1e400", "-1e400", "0.1", "1.0", "-0", "-0.0", "1e21", "123456789012.5", "0x1p4", ".5_0", "1_0.5",
		"9223372036854775807", "-9223372036854775808", "9007199254740993",
		"y", "Y", "n", "N", "yes", "Yes", "YES", "yES", "no", "on", "On", "off", "OFF", "true", "True", "TRUE", "tRUE", "false",
		"~", "null", "Null", "NULL", "nULL", "''", `""`, "'~'", `"yes"`, "'0400'",
		"2020-01-02", "2020-01-02T03:04:05Z", "2020-1-2 3:4:5", "12:30:45", "190:20:30", "1.2.3", "1h", "0x", "0b", "+", ".", "..", "<<", "=", "inf", "NaN",
		"!!str 5", "!!str yes", "!!int '5'", "!!float 1", "!!float '1.5'", "!!bool 'yes'", "!!null ''", "!!timestamp 2020-01-02", "! 5", "!", "\"x\" # !", "é! ", "!!str",
		"|-\n  a\n  b", ">\n  a\n  b\n", "'it''s'", `"\u263a\t\x41"`, "a # comment", "a#b", "[1, a, [b]]", "{a: 1, ? b : c}", "{}", "[]", "{a, b: }",
	}
	for _, scalar := range scalars {
		t.Run(scalar, func(t *testing.T) {
			text := configMap + "value: " + scalar + "\n"
			want, err := asKubectl(text)
			if err != nil {
				t.Fatalf("kubectl refuses it: %v", err)
			}
			docs, faults := readChunk("x.yaml", chunk{line: 1, data: []byte(text)})
			if len(faults) > 0 || len(docs) != 1 {
				t.Fatalf("got %d documents and %v", len(docs), faults)
			}
			if diff := cmp.Diff(want, docs[0].Value); diff != "" {
				t.Errorf("(-kubectl +got):\n%s", diff)
			}
		})
	}
}

func TestKeysMeanWhatTheyMeanToKubectl(t *testing.T) {
	text := configMap + "data: {1: a, 0400: b, yes: c, 'no': d, on: e, ~x: f, \"2\": g}\n"
	text = strings.Replace(text, "on: e, ", "", 1) // equal to yes
	want, err := asKubectl(text)
	if err != nil {
		t.Fatal(err)
	}
	docs, faults := readChunk("x.yaml", chunk{line: 1, data: []byte(text)})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if diff := cmp.Diff(want, docs[0].Value); diff != "" {
		t.Errorf("(-kubectl +got):\n%s", diff)
	}
}

// FuzzParse looks for panics, for results that kubectl would not have, and for ones that differ from run to run.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		configMap, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{}]}", "a: &a [*a]", "<<: {a: 1}", "? [a]\n: b", "--- {a: b}\n--- !!str", "%YAML 1.1\n---\na",
		"\ufeff---\n\ufeffa: 0400\r\n...\n", "a: |\n  x\n ---", "kind: List\nitems: [{kind: List, items: 5}]", "a: 1e400\nb: .5.", "{", "[", "\"\\ud83d", "a: !!binary x", "- - - - -", "'", "# \x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		content := fstest.MapFS{"x.yaml": {Data: data}, "y.json": {Data: data}}
		if one, two := outcome(t, content), outcome(t, content); one != two {
			t.Errorf("first %s\nthen %s", one, two)
		}
		chunks, fault := split("x.yaml", data)
		if fault != nil {
			return
		}
		for _, chunk := range chunks {
			docs, faults := readChunk("x.yaml", chunk)
			if len(faults) > 0 || len(docs) != 1 || bytes.Contains(chunk.data, []byte("\n...")) {
				continue
			}
			sameAsKubectl(t, string(chunk.data), docs[0])
		}
	})
}

func sameAsKubectl(t *testing.T, text string, doc Document) {
	t.Helper()
	got, isMap := doc.Value.(map[string]any)
	want, err := asKubectl(text)
	if !isMap || err != nil {
		return // kubectl refuses more than the parser does, and that is for the API server to say
	}
	if !cmp.Equal(want, got) {
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		t.Errorf("%q:\nkubectl %s\ngot     %s", text, a, b)
	}
}
