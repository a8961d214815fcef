// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"rukpak.io/rukpak/provisioner"
	"rukpak.io/rukpak/provisioner/provisionertest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func files(texts map[string]string) fstest.MapFS {
	content := fstest.MapFS{}
	for name, text := range texts {
		content[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return content
}

const one = `{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "a"}}`

func TestConformance(t *testing.T) {
	bad := func(name, text string) provisionertest.Case {
		return provisionertest.Case{Name: name, Content: files(map[string]string{"main.jsonnet": text}), File: "main.jsonnet"}
	}
	provisionertest.Run(t, provisionertest.Subject{
		Provisioner: New(),
		Good: []provisionertest.Case{
			{Name: "Web", Content: os.DirFS("testdata/web"), Config: []byte(`{"replicas": 3}`), Parameters: []byte(`{"entry": "main.jsonnet"}`)},
			{Name: "Library", Content: files(map[string]string{"env/x.jsonnet": `import "lib.libsonnet"`, "vendor/lib.libsonnet": one}), Parameters: []byte(`{"entry": "env/x.jsonnet"}`)},
		},
		Bad: []provisionertest.Case{
			bad("Syntax", "{\n  a:\n}"), bad("Runtime", `error "no"`), bad("Number", "5"), bad("Nothing", "{}"),
			bad("Twice", "["+one+","+one+"]"), bad("NoName", `{apiVersion: "v1", kind: "ConfigMap"}`),
			bad("File", `importstr "/etc/passwd"`), bad("Escape", `importstr "../../etc/passwd"`), bad("Endless", `local f(x) = f(x + 1); f(0)`),
			{Name: "Import", Content: files(map[string]string{"main.jsonnet": `import "x.libsonnet"`, "x.libsonnet": "\n\nerror 'in here'"}), File: "x.libsonnet"},
			{Name: "UnknownParameter", Content: os.DirFS("testdata/web"), Parameters: []byte(`{"entri": "a"}`), File: "parameters"},
			{Name: "ParameterOutside", Content: os.DirFS("testdata/web"), Parameters: []byte(`{"entry": "../a"}`), File: "parameters"},
			{Name: "UnknownArgument", Content: os.DirFS("testdata/web"), Config: []byte(`{"replica": 3}`), File: "config"},
		},
	})
}

func TestErrorsNameTheLine(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"syntax":  {"{\n  a: 1,\n  b: )\n}", "main.jsonnet:3: "},
		"runtime": {"local a = 1;\n{x: error 'broken'}", "main.jsonnet:2: broken"},
		"import":  {"local a = 1;\nimport 'x'", `main.jsonnet:2: couldn't open import "x"`},
		"type":    {"\n[5]", "main.jsonnet: $[0] is a number"},
	} {
		_, err := New().Render(t.Context(), provisioner.Request{Content: files(map[string]string{"main.jsonnet": test.text})})
		if !provisioner.IsInputError(err) || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

func TestTheClusterAndTheInstanceAreKnown(t *testing.T) {
	text := `{apiVersion: "v1", kind: "ConfigMap", metadata: {name: std.extVar("instance").name}, data: {
		crds: std.toString(std.member(std.extVar("cluster").apis, "apiextensions.k8s.io/v1")), config: std.extVar("config").a}}`
	req := provisioner.Request{
		Content: files(map[string]string{"main.jsonnet": text}), Config: []byte(`{"a": "b"}`),
		Cluster: provisioner.Cluster{APIs: []string{"apiextensions.k8s.io/v1"}},
	}
	req.Instance.Name = "web"
	result, err := New().Render(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	got := result.Phases[0].Objects[0]
	data := got.Object["data"].(map[string]any)
	if got.GetName() != "web" || data["crds"] != "true" || data["config"] != "b" {
		t.Errorf("got %v", got.Object)
	}
}

// What content does must not end the process that renders for others.
func TestTimeAndMemoryAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		longest time.Duration
		want    string
	}{
		"without end": {"std.foldl(function(a, b) a + b, std.range(1, 100000000), 0)", time.Second, "takes longer than 1s"},
		"memory":      {`std.length(std.makeArray(40, function(i) std.repeat("x", 100000000 + i)) + [1]) + std.foldl(function(n, s) n + std.length(s), std.makeArray(40, function(i) std.repeat("x", 100000000 + i)), 0)`, time.Minute, "memory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&Provisioner{Longest: test.longest}).Render(t.Context(), provisioner.Request{Content: files(map[string]string{"main.jsonnet": test.text})})
			var fault *provisioner.InputError
			if !errors.As(err, &fault) || fault.File != "main.jsonnet" || !strings.Contains(fault.Reason, test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
