// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/provisioner"
	"rukpak.io/rukpak/provisioner/provisionertest"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
`

// files makes a tree of alternating names and texts.
func files(pairs ...string) fstest.MapFS {
	tree := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		tree[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return tree
}

// layered is a base and overlays, as most trees are.
func layered() fstest.MapFS {
	return files(
		"base/kustomization.yaml", "resources: [web.yaml]\nconfigMapGenerator: [{name: settings, files: [key=data/settings.txt]}]\n",
		"base/web.yaml", deployment,
		"base/data/settings.txt", "colour=blue\n",
		"overlays/production/kustomization.yaml", "namePrefix: prod-\nresources: [../../base]\ncomponents: [../../components/more]\n",
		"components/more/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nreplicas: [{name: web, count: 3}]\n",
		"elsewhere/kustomization.yaml", "resources: ['https://example.com/base?ref=v1']\n",
	)
}

func TestConformance(t *testing.T) {
	provisionertest.Run(t, provisionertest.Subject{
		Provisioner: New(),
		Good: []provisionertest.Case{
			{Name: "Base", Content: layered(), Parameters: json.RawMessage(`{"path":"base"}`)},
			{Name: "Overlay", Content: layered(), Config: json.RawMessage(`{"path":"overlays/production"}`)},
			{Name: "Options", Content: layered(), Parameters: json.RawMessage(`{"path":"base"}`), Config: json.RawMessage(`{"namePrefix":"a-"}`)},
		},
		Bad: []provisionertest.Case{
			{Name: "Syntax", Content: files("kustomization.yaml", "resources: [a.yaml]", "a.yaml", "a: ["), File: "a.yaml"},
			{Name: "Kustomization", Content: files("kustomization.yaml", "resources: ["), File: "kustomization.yaml"},
			{Name: "UnknownField", Content: files("kustomization.yaml", "resource: [a.yaml]"), File: "kustomization.yaml"},
			{Name: "Parameters", Content: layered(), Parameters: json.RawMessage(`{"pth":"base"}`), File: "parameters"},
			{Name: "Config", Content: layered(), Config: json.RawMessage(`{"path":"../base"}`), File: "config"},
			{Name: "NoObject", Content: files("kustomization.yaml", "resources: [a.yaml]", "a.yaml", "# nothing"), File: "kustomization.yaml"},
			{Name: "NoKustomization", Content: files("a.yaml", deployment), Whole: true},
		},
	})
}

func render(t *testing.T, content fstest.MapFS, parameters, config string) (string, error) {
	t.Helper()
	result, err := New().Render(t.Context(), provisioner.Request{
		Instance: types.NamespacedName{Namespace: "ns", Name: "web"}, Content: content,
		Parameters: json.RawMessage(parameters), Config: json.RawMessage(config),
	})
	var text strings.Builder
	for _, phase := range result.Phases {
		for _, object := range phase.Objects {
			encoded, err := yaml.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "--- %s\n%s", phase.Name, encoded)
		}
	}
	return text.String(), err
}

func TestConfigurationIsAnOverlay(t *testing.T) {
	for _, tc := range []struct {
		name, config string
		want         []string
	}{
		{"nothing", `{"path":"base"}`, []string{"name: web\n", "replicas: 1\n", "settings-"}},
		{"another folder", `{"path":"overlays/production"}`, []string{"name: prod-web\n", "replicas: 3\n", "prod-settings-"}},
		{"a component", `{"path":"base","components":["components/more"]}`, []string{"name: web\n", "replicas: 3\n"}},
		{"names", `{"path":"base","namePrefix":"a-","nameSuffix":"-z","namespace":"there"}`, []string{"name: a-web-z\n", "namespace: there\n"}},
		{"labels", `{"path":"base","labels":[{"pairs":{"team":"shop"},"includeSelectors":true}],"commonAnnotations":{"a":"b"}}`, []string{"matchLabels:\n      app: web\n      team: shop\n", "a: b\n"}},
		{"an image", `{"path":"base","images":[{"name":"example.com/web","newTag":"2"}]}`, []string{"image: example.com/web:2\n"}},
		{"replicas", `{"path":"base","replicas":[{"name":"web","count":5}]}`, []string{"replicas: 5\n"}},
		{
			"a patch", `{"path":"base","patches":[{"target":{"kind":"Deployment"},"patch":"- {op: replace, path: /spec/replicas, value: 7}"}]}`,
			[]string{"replicas: 7\n"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := render(t, layered(), "", tc.config)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got)
				}
			}
		})
	}
}

func TestBadInputIsNamed(t *testing.T) {
	for _, tc := range []struct {
		name               string
		content            fstest.MapFS
		parameters, config string
		want               string
	}{
		{"unknown option", layered(), "", `{"patchs":[]}`, `config: unknown field "patchs": there are path, components, namespace, namePrefix`},
		{"option in another case", layered(), "", `{"nameprefix":"x"}`, `config: unknown field "nameprefix": there are `},
		{"option of an option", layered(), "", `{"images":[{"naem":"x"}]}`, `config: unknown field "images[0].naem": there are `},
		{"no object", layered(), "", `["x"]`, `config: `},
		{"unknown restrictor", layered(), `{"loadRestrictor":"none"}`, "", `parameters: loadRestrictor is "none": it may be RootOnly or None`},
		{"folder that is not there", layered(), "", `{"path":"overlays/prod"}`, `config: path: there is no folder "overlays/prod" in the content`},
		{"component that is not there", layered(), "", `{"path":"base","components":["more"]}`, `config: components[0]: there is no folder "more" in the content`},
		{"patch by path", layered(), "", `{"path":"base","patches":[{"path":"a.yaml"}]}`, `config: patches[0].path: a configuration has no files, give the text of the patch in patches[0].patch`},
		{"patch that hits nothing", layered(), "", `{"path":"base","patches":[{"patch":"{apiVersion: v1, kind: Pod, metadata: {name: x}}"}]}`, "config: "},
		{"no Kustomization in the root", layered(), "", "", "kustomization.yaml: there is no such file, but the folder is to be built"},
		{
			"file that is not there", files("a/kustomization.yaml", "resources: [web.yml]"), `{"path":"a"}`, "",
			`a/kustomization.yaml: resources: "web.yml" is not in the content`,
		},
		{"path out of the content", files("a/kustomization.yaml", "resources: [../../up]"), `{"path":"a"}`, "", `a/kustomization.yaml: resources: "../../up" leaves the content`},
		{"absolute path", files("kustomization.yaml", "resources: [/etc/passwd]"), "", "", `kustomization.yaml: resources: "/etc/passwd" leaves the content`},
		{"two files", files("kustomization.yaml", "{}", "Kustomization", "{}"), "", "", "kustomization.yaml: Kustomization is in the same folder: keep one of them"},
		{
			"too deep", files("kustomization.yaml", "resources: [web.yaml]", "web.yaml", "a: "+strings.Repeat("[", 501)+strings.Repeat("]", 501)), "", "",
			"web.yaml: its values are nested more than 500 levels deep",
		},
		{"a Kustomization that is too deep", files("kustomization.yaml", "a: "+strings.Repeat("[", 501)+strings.Repeat("]", 501)), "", "", "kustomization.yaml: its values are nested"},
		{"a circle", files("a/kustomization.yaml", "resources: [../b]", "b/kustomization.yaml", "resources: [../a]"), `{"path":"a"}`, "", "cycle detected"},
		{"helm", files("kustomization.yaml", "helmCharts: [{name: x, repo: 'https://example.com'}]"), "", "", "kustomization.yaml: helmCharts is not supported, since it runs the program helm"},
		{
			"file beside the folder", files("a/kustomization.yaml", "resources: [../web.yaml]", "web.yaml", deployment), `{"path":"a"}`, "",
			"web.yaml: ",
		},
		{
			"a folder of generators", files("kustomization.yaml", "generators: [g]", "g/kustomization.yaml", "{}"), "", "",
			`kustomization.yaml: generators: "g" is a folder: name its files`,
		},
		{
			"a plugin", files("kustomization.yaml", "generators: [g.yaml]", "g.yaml", "apiVersion: someteam.example.com/v1\nkind: Thing\nmetadata: {name: x}"), "", "",
			"kustomization.yaml: ",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := render(t, tc.content, tc.parameters, tc.config)
			if !provisioner.IsInputError(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %s\n%v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestAllOfTheContentMayBeReadIfTheClassSaysSo(t *testing.T) {
	content := files("a/kustomization.yaml", "resources: [../web.yaml]", "web.yaml", deployment)
	got, err := render(t, content, `{"path":"a","loadRestrictor":"None"}`, "")
	if err != nil || !strings.Contains(got, "name: web\n") {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestNothingIsFetched(t *testing.T) {
	const inner = "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npath: https://example.com/p.yaml\n"
	for name, kustomization := range map[string]string{
		"repository":        "resources: ['https://github.com/example/app//base?ref=v1']",
		"short repository":  "resources: [github.com/example/app]",
		"in capitals":       "resources: [GitHub.com/example/app]",
		"scp":               "resources: ['git@example.com:app.git']",
		"file":              "resources: ['file:///etc']",
		"ssh":               "bases: ['ssh://git@example.com/app']",
		"getter":            "resources: ['git::https://example.com/app']",
		"one file":          "resources: ['https://example.com/web.yaml']",
		"component":         "components: ['https://example.com/app?ref=v1']",
		"crds":              "crds: ['https://example.com/web.json']",
		"patch":             "patches: [{path: 'https://example.com/p.yaml'}]",
		"old patch":         "patchesStrategicMerge: ['https://example.com/p.yaml']",
		"older patch":       "patchesJson6902: [{target: {kind: Pod, name: x, version: v1}, path: 'https://example.com/p.yaml'}]",
		"schema":            "openapi: {path: 'https://example.com/s.json'}",
		"generated file":    "configMapGenerator: [{name: x, files: ['a=https://example.com/a']}]",
		"generated secret":  "secretGenerator: [{name: x, envs: ['https://example.com/a']}]",
		"replacement":       "replacements: [{path: 'https://example.com/a'}]",
		"configuration":     "configurations: ['https://example.com/a']",
		"transformer":       "transformers: ['https://example.com/a']",
		"transformer there": "transformers:\n- |\n" + indent(inner),
		"transformer file":  "transformers: [t.yaml]",
		"second document":   "transformers: [two.yaml]",
		"another case":      "Resources: ['https://example.com/app']",
		"through an anchor": "namePrefix: &a https://example.com/a\nresources: [*a]",
	} {
		t.Run(name, func(t *testing.T) {
			content := files("kustomization.yaml", kustomization, "t.yaml", inner, "two.yaml", "# first\n---\n"+inner)
			_, err := render(t, content, "", "")
			if !provisioner.IsInputError(err) || !strings.Contains(err.Error(), "is fetched from elsewhere, which is not allowed") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

func TestURLsInWhatIsOnlyTextAreNoReferences(t *testing.T) {
	content := files("kustomization.yaml", "resources: [web.yaml]\ncommonAnnotations: {see: 'https://example.com'}\n"+
		"configMapGenerator: [{name: x, literals: ['url=https://example.com']}]\nimages: [{name: a, newName: 'example.com:5000/a@b'}]\n", "web.yaml", deployment)
	if got, err := render(t, content, "", ""); err != nil || !strings.Contains(got, "url: https://example.com") {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestTreesThatMultiplyEndSoon(t *testing.T) {
	content := files("0/kustomization.yaml", "resources: [web.yaml]", "0/web.yaml", deployment)
	for i := 1; i < 40; i++ {
		for _, side := range []string{"a", "b"} {
			content[fmt.Sprintf("%d%s/kustomization.yaml", i, side)] = &fstest.MapFile{Data: fmt.Appendf(nil, "namePrefix: %s-\nresources: [../%d]", side, i-1)}
		}
		content[fmt.Sprintf("%d/kustomization.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "resources: [../%da, ../%db]", i, i)}
	}
	_, err := render(t, content, `{"path":"39"}`, "")
	if !provisioner.IsInputError(err) || !strings.Contains(err.Error(), "more than 1000 Kustomizations are built") {
		t.Errorf("got %v", err)
	}
}

func TestOneRenderHasNoEffectOnTheNext(t *testing.T) {
	schema := `{"definitions":{"v1.Web":{"properties":{"spec":{"properties":{"parts":{"type":"array","items":{"type":"object"},"x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge"}}}},"x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Web","version":"v1"}]}}}`
	content := files(
		"with/kustomization.yaml", "openapi: {path: schema.json}\nresources: [web.yaml]\npatches: [{path: patch.yaml}]\n", "with/schema.json", schema,
		"without/kustomization.yaml", "resources: [web.yaml]\npatches: [{path: patch.yaml}]\n")
	for _, folder := range []string{"with", "without"} {
		content[folder+"/web.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: example.com/v1\nkind: Web\nmetadata: {name: x}\nspec: {parts: [{name: a, size: 1}, {name: b}]}\n")}
		content[folder+"/patch.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: example.com/v1\nkind: Web\nmetadata: {name: x}\nspec: {parts: [{name: a, size: 2}]}\n")}
	}
	before, err := render(t, content, `{"path":"without"}`, "")
	if err != nil {
		t.Fatal(err)
	}
	with, err := render(t, content, `{"path":"with"}`, "")
	if err != nil || with == before || !strings.Contains(with, "name: b") {
		t.Fatalf("the schema has no effect: %s, %v", with, err)
	}
	after, err := render(t, content, `{"path":"without"}`, "")
	if diff := cmp.Diff(before, after); err != nil || diff != "" {
		t.Errorf("%v (-before +after):\n%s", err, diff)
	}
}

func TestWhoWaitsForItsTurnIsLetGo(t *testing.T) {
	p := New()
	p.turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.build(ctx, newTree(ctx, layered()), contentRoot+"/base", parameters{}, false); err == nil {
		t.Error("it had its turn")
	}
}
