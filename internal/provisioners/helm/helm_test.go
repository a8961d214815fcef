// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/provisioner"
	"rukpak.io/rukpak/provisioner/provisionertest"
)

const chartYAML = "apiVersion: v2\nname: web\nversion: 1.2.3\n"

// files makes a tree of alternating names and texts.
func files(pairs ...string) fstest.MapFS {
	tree := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		tree[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return tree
}

// chartOf is a chart with these files beside Chart.yaml.
func chartOf(pairs ...string) fstest.MapFS {
	return files(append([]string{chartFile, chartYAML}, pairs...)...)
}

// configMap is a template of one object with one value.
func configMap(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata:\n  value: " + value + "\n"
}

// small is a chart with a bit of everything.
func small() fstest.MapFS {
	return chartOf(
		"values.yaml", "colour: blue\nreplicas: 2\ncache: {size: 1}\n",
		"values.schema.json", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"colour":{"type":"string"},"replicas":{"type":"integer"}}}`,
		"templates/_names.tpl", `{{- define "web.name" -}}{{ .Release.Name }}-web{{- end -}}`,
		"templates/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ include \"web.name\" . }}}\ndata:\n  colour: {{ .Values.colour | quote }}\n  keys: {{ keys .Values | join \",\" }}\n",
		"templates/NOTES.txt", "Colour {{ .Values.colour }}.",
		"templates/job.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations: {helm.sh/hook: \"pre-install,pre-upgrade\"}\nspec: {template: {spec: {restartPolicy: Never}}}\n",
		"charts/cache/Chart.yaml", "apiVersion: v2\nname: cache\nversion: 0.1.0\n",
		"charts/cache/templates/cache.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cache}\ndata: {size: {{ .Values.size | quote }}}\n",
		"crds/things.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\nspec: {group: example.com, names: {kind: Thing, plural: things}}\n",
		"templates/thing.yaml", "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: one}\n",
	)
}

func TestConformance(t *testing.T) {
	provisionertest.Run(t, provisionertest.Subject{
		Provisioner: New(),
		Good: []provisionertest.Case{
			{Name: "Small", Content: small()},
			{Name: "Values", Content: small(), Config: json.RawMessage(`{"colour":"red","cache":{"size":3}}`)},
			{Name: "Parameters", Content: small(), Parameters: json.RawMessage(`{"crds":"Skip","hooks":"None","releaseName":"x"}`)},
			{Name: "Folder", Content: files("a/Chart.yaml", chartYAML, "a/templates/a.yaml", configMap("1"), "README.md", "x")},
			{Name: "Random", Content: chartOf("templates/a.yaml", configMap("{{ randAlphaNum 20 }}"))},
			{Name: "Cluster", Content: chartOf("templates/a.yaml", configMap(`{{ .Capabilities.APIVersions.Has "x.example.com/v1" }}`)), Cluster: provisioner.Cluster{Version: "v1.30.1", APIs: []string{"v1", "x.example.com/v1"}}},
			{Name: "Reader", Content: chartOf("templates/a.yaml", configMap(`{{ (lookup "v1" "Secret" "ns" "there").data.a | quote }}`)), Reader: reader{}},
		},
		Bad: []provisionertest.Case{
			{Name: "NoChart", Content: files("a.yaml", configMap("1")), Whole: true},
			{Name: "ChartSyntax", Content: files(chartFile, "a: ["), File: chartFile},
			{Name: "ValuesSyntax", Content: chartOf("values.yaml", "a: ["), File: "values.yaml"},
			{Name: "TemplateSyntax", Content: chartOf("templates/a.yaml", "{{ if }}"), File: "templates/a.yaml"},
			{Name: "TemplateFails", Content: chartOf("templates/a.yaml", `{{ fail "no" }}`), File: "templates/a.yaml"},
			{Name: "YAML", Content: chartOf("templates/a.yaml", "a: ["), File: "templates/a.yaml"},
			{Name: "Nothing", Content: chartOf("templates/a.yaml", "# nothing"), File: chartFile},
			{Name: "Config", Content: small(), Config: json.RawMessage(`{"replicas":"two"}`), File: "config"},
			{Name: "ConfigIsAList", Content: small(), Config: json.RawMessage(`[]`), File: "config"},
			{Name: "Parameters", Content: small(), Parameters: json.RawMessage(`{"crd":"Skip"}`), File: "parameters"},
		},
	})
}

// reader is a cluster with one Secret.
type reader struct{ err error }

func (r reader) Get(_ context.Context, kind schema.GroupVersionKind, name types.NamespacedName) (*unstructured.Unstructured, error) {
	object := map[string]any{"apiVersion": "v1", "kind": kind.Kind, "metadata": map[string]any{"name": name.Name, "namespace": name.Namespace}, "data": map[string]any{"a": "found"}}
	switch {
	case r.err != nil:
		return nil, r.err
	case name.Name == "there" || name.Name == "there.example.com":
		return &unstructured.Unstructured{Object: object}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind.Kind}, name.Name)
}

func (r reader) List(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	one, err := r.Get(ctx, kind, types.NamespacedName{Namespace: namespace, Name: "there"})
	if err != nil || kind.Kind == "Unknown" {
		return nil, errors.Join(err, apierrors.NewNotFound(schema.GroupResource{}, ""))
	}
	return []*unstructured.Unstructured{one}, nil
}

func render1(t *testing.T, content fstest.MapFS, change func(*provisioner.Request)) (provisioner.Result, error) {
	t.Helper()
	req := provisioner.Request{Instance: types.NamespacedName{Namespace: namespace, Name: "shop"}, Content: content, Revision: 1, Cluster: provisioner.Cluster{Version: kubeVersion}}
	if change != nil {
		change(&req)
	}
	return New().Render(t.Context(), req)
}

// valueOf is what the ConfigMap of the template configMap says.
func valueOf(t *testing.T, content fstest.MapFS, change func(*provisioner.Request)) any {
	t.Helper()
	result, err := render1(t, content, change)
	if err != nil {
		t.Fatal(err)
	}
	for _, phase := range result.Phases {
		for _, object := range phase.Objects {
			if object.GetName() == "settings" {
				value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "data", "value")
				return value
			}
		}
	}
	t.Fatal("there is no ConfigMap settings")
	return nil
}

func TestTemplatesSeeTheReleaseAndTheCluster(t *testing.T) {
	for _, tc := range []struct {
		template string
		change   func(*provisioner.Request)
		want     any
	}{
		{"{{ .Release.Name }}/{{ .Release.Namespace }}/{{ .Release.Service }}", nil, "shop/team-a/Helm"},
		{"{{ .Release.Name }}", func(r *provisioner.Request) { r.Parameters = json.RawMessage(`{"releaseName":"other"}`) }, "other"},
		{"{{ .Release.IsInstall }}/{{ .Release.IsUpgrade }}/{{ .Release.Revision }}", nil, "true/false/1"},
		{"{{ .Release.IsInstall }}/{{ .Release.IsUpgrade }}/{{ .Release.Revision }}", func(r *provisioner.Request) { r.Upgrade, r.Revision = true, 7 }, "false/true/7"},
		{"{{ .Capabilities.KubeVersion.Version }}/{{ .Capabilities.KubeVersion.Minor }}", nil, "v1.34.2/34"},
		{"{{ .Capabilities.KubeVersion }}", func(r *provisioner.Request) { r.Parameters = json.RawMessage(`{"kubeVersion":"1.20"}`) }, "v1.20"},
		{`{{ .Capabilities.APIVersions.Has "apps/v1" }}/{{ .Capabilities.APIVersions.Has "a.example.com/v1/A" }}`, nil, "true/false"},
		{`{{ .Capabilities.APIVersions.Has "apps/v1" }}/{{ .Capabilities.APIVersions.Has "a.example.com/v1/A" }}`, func(r *provisioner.Request) { r.Cluster.APIs = []string{"a.example.com/v1/A"} }, "false/true"},
		{`{{ .Capabilities.APIVersions.Has "apps/v1" }}/{{ .Capabilities.APIVersions.Has "b.example.com/v1" }}`, func(r *provisioner.Request) { r.Parameters = json.RawMessage(`{"apiVersions":["b.example.com/v1"]}`) }, "true/true"},
		{"{{ .Chart.Name }}/{{ .Chart.Version }}/{{ .Template.Name }}", nil, "web/1.2.3/web/templates/a.yaml"},
		{`{{ .Files.Get "data/a.txt" | trim }}/{{ .Files.Get "../secret" }}/{{ .Files.Get "/etc/passwd" }}x`, nil, "file//x"},
		{`{{ getHostByName "example.com" }}x`, nil, "x"},
		{`{{ "2026-12-02T01:02:03+05:00" | toDate "2006-01-02T15:04:05Z07:00" | date "15:04" }}`, nil, "20:02"},
		{"{{ 0 | date \"2006-01-02T15:04\" }}", nil, "1970-01-01T00:00"},
		{"{{ .Values.missing }}{{ .Values.a.b | default \"none\" }}", func(r *provisioner.Request) { r.Config = json.RawMessage(`{"a":{}}`) }, "none"},
		{"{{ dict \"z\" 1 \"a\" 2 \"m\" 3 | keys | join \"\" }}{{ dict \"z\" 1 \"a\" 2 | values | join \"\" }}", nil, "zam"},
	} {
		t.Run(tc.template, func(t *testing.T) {
			want := tc.want
			if want == "zam" {
				want = "amz21"
			}
			if got := valueOf(t, chartOf("templates/a.yaml", configMap("|-\n    "+tc.template), "data/a.txt", "file\n"), tc.change); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestValuesAreMergedAsHelmDoes(t *testing.T) {
	content := func() fstest.MapFS {
		return chartOf(
			"values.yaml", "a: 1\nb: {c: 2, d: 3}\ncache: {size: 5}\nglobal: {g: x}\nlarge: 12345678\n", "templates/a.yaml", configMap("{{ toJson .Values | quote }}"),
			"charts/cache/Chart.yaml", "apiVersion: v2\nname: cache\nversion: 0.1.0\n", "charts/cache/values.yaml", "size: 1\nkeep: true\n",
			"charts/cache/templates/a.yaml", strings.Replace(configMap("{{ toJson .Values | quote }}"), "settings", "cache", 1),
		)
	}
	for config, want := range map[string]string{
		``:                        `{"a":1,"b":{"c":2,"d":3},"cache":{"global":{"g":"x"},"keep":true,"size":5},"global":{"g":"x"},"large":12345678}`,
		`null`:                    `{"a":1,"b":{"c":2,"d":3},"cache":{"global":{"g":"x"},"keep":true,"size":5},"global":{"g":"x"},"large":12345678}`,
		`{"b":{"c":9},"a":null}`:  `{"b":{"c":9,"d":3},"cache":{"global":{"g":"x"},"keep":true,"size":5},"global":{"g":"x"},"large":12345678}`,
		`{"cache":{"keep":null}}`: `{"a":1,"b":{"c":2,"d":3},"cache":{"global":{"g":"x"},"size":5},"global":{"g":"x"},"large":12345678}`,
		`{"global":{"h":"y"}}`:    `{"a":1,"b":{"c":2,"d":3},"cache":{"global":{"g":"x","h":"y"},"keep":true,"size":5},"global":{"g":"x","h":"y"},"large":12345678}`,
	} {
		if got := valueOf(t, content(), func(r *provisioner.Request) { r.Config = json.RawMessage(config) }); got != want {
			t.Errorf("of %s:\ngot  %s\nwant %s", config, got, want)
		}
	}
}

func TestDependenciesAreChosenByConditionTagAndAlias(t *testing.T) {
	const declared = chartYAML + "dependencies:\n" +
		"- {name: cache, version: 0.1.0, repository: 'https://example.com', condition: cache.enabled, tags: [fast]}\n" +
		"- {name: cache, version: 0.1.0, repository: 'https://example.com', alias: second, condition: second.enabled, import-values: [{child: exported, parent: imported}]}\n" +
		"- {name: names, version: 1.x, repository: 'https://example.com'}\n"
	content := files(
		chartFile, declared, "templates/a.yaml", configMap("{{ .Values.imported.key }}-{{ include \"names.of\" . }}"),
		"charts/cache/Chart.yaml", "apiVersion: v2\nname: cache\nversion: 0.1.0\n", "charts/cache/values.yaml", "exported: {key: taken}\n",
		"charts/cache/templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}}\n",
		"charts/names/Chart.yaml", "apiVersion: v2\nname: names\nversion: 1.0.0\ntype: library\n", "charts/names/templates/_a.tpl", `{{ define "names.of" }}library{{ end }}`,
		"charts/names/templates/b.yaml", "this: [is not rendered",
	)
	for config, want := range map[string]string{
		`{}`:                          "ConfigMap/cache ConfigMap/second ConfigMap/settings",
		`{"cache":{"enabled":false}}`: "ConfigMap/second ConfigMap/settings",
		`{"tags":{"fast":false}}`:     "ConfigMap/second ConfigMap/settings",
		`{"tags":{"fast":false},"cache":{"enabled":true}}`:     "ConfigMap/cache ConfigMap/second ConfigMap/settings",
		`{"second":{"enabled":true},"cache":{"enabled":null}}`: "ConfigMap/cache ConfigMap/second ConfigMap/settings",
	} {
		result, err := render1(t, content, func(r *provisioner.Request) { r.Config = json.RawMessage(config) })
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(namesIn(result), " "); got != want {
			t.Errorf("of %s: got %s, want %s", config, got, want)
		}
	}
	if got := valueOf(t, content, nil); got != "taken-library" {
		t.Errorf("got %q", got)
	}
}

func namesIn(result provisioner.Result) (names []string) {
	for _, phase := range result.Phases {
		for _, object := range phase.Objects {
			names = append(names, object.GetKind()+"/"+object.GetName())
		}
	}
	return names
}

// phasesOf is the order of a result: "name[moments]: Kind/name ...".
func phasesOf(result provisioner.Result) (all []string) {
	for _, phase := range result.Phases {
		text := phase.Name
		if len(phase.On) > 0 {
			text += fmt.Sprint(phase.On)
		}
		all = append(all, text+": "+strings.Join(namesIn(provisioner.Result{Phases: []provisioner.Phase{phase}}), " "))
	}
	return all
}

func hookObject(kind, name, annotations string) string {
	version := map[string]string{"Job": "batch/v1", "CustomResourceDefinition": "apiextensions.k8s.io/v1"}[kind]
	if version == "" {
		version = "v1"
	}
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n  annotations: {%s}\n", version, kind, name, annotations)
}

func TestHooksBecomeTasks(t *testing.T) {
	content := chartOf("templates/a.yaml", strings.Join([]string{
		configMap("1"),
		hookObject("Job", "second", `helm.sh/hook: "pre-install, Pre-Upgrade", helm.sh/hook-weight: "5"`),
		hookObject("Job", "first", `helm.sh/hook: "pre-install", helm.sh/hook-weight: "-5"`),
		hookObject("Secret", "b", `helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "1"`),
		hookObject("ServiceAccount", "a", `helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "1"`),
		hookObject("ConfigMap", "c", `helm.sh/hook: "pre-upgrade", helm.sh/hook-weight: "1"`),
		hookObject("Job", "both", `helm.sh/hook: "post-install,pre-rollback,post-rollback", helm.sh/hook-weight: "no number"`),
		hookObject("Job", "done", `helm.sh/hook: post-upgrade, helm.sh/hook-delete-policy: "hook-succeeded, hook-failed,before-hook-creation"`),
		hookObject("Pod", "try", `helm.sh/hook: test-success`),
		hookObject("Pod", "attempt", `helm.sh/hook: test`),
		hookObject("Job", "save", `helm.sh/hook: pre-delete`),
		hookObject("Job", "wipe", `helm.sh/hook: post-delete, helm.sh/hook-delete-policy: hook-succeeded`),
		hookObject("Job", "odd", `helm.sh/hook: "pre-install,after-lunch"`),
		hookObject("CustomResourceDefinition", "old.example.com", `helm.sh/hook: crd-install`),
		hookObject("CustomResourceDefinition", "new.example.com", `helm.sh/hook: pre-install, helm.sh/hook-delete-policy: before-hook-creation`),
		hookObject("PersistentVolumeClaim", "data", `helm.sh/resource-policy: keep`),
	}, ""))
	result, err := render1(t, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"chart-crds: CustomResourceDefinition/old.example.com CustomResourceDefinition/new.example.com",
		"pre-hooks-1[Install]: Job/first", "pre-hooks-2[Rollback]: Job/both", "pre-hooks-3[Install Upgrade]: ServiceAccount/a Secret/b", "pre-hooks-4[Upgrade]: ConfigMap/c",
		"pre-hooks-5[Install Upgrade]: Job/second",
		"configuration: ConfigMap/settings", "storage: PersistentVolumeClaim/data",
		"post-hooks-1[Install Rollback]: Job/both", "post-hooks-2[Upgrade]: Job/done",
		"tests-1[Test]: Pod/attempt", "tests-2[Test]: Pod/try",
		"pre-delete-hooks-1[Teardown]: Job/save", "post-delete-hooks-1[TeardownFinish]: Job/wipe",
	}
	if diff := cmp.Diff(want, phasesOf(result)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := `templates/a.yaml: Job.batch odd is left out, as by Helm: there is no hook "after-lunch"`; result.Notes != want {
		t.Errorf("notes are %q, want %q", result.Notes, want)
	}
	annotations := map[string]map[string]string{}
	for _, phase := range result.Phases {
		for _, object := range phase.Objects {
			annotations[object.GetName()] = object.GetAnnotations()
		}
	}
	for _, tc := range []struct{ name, annotation, want string }{
		{"done", provisioner.AnnotationDeleteTask, "BeforeRun,Failed,Succeeded"},
		{"wipe", provisioner.AnnotationDeleteTask, "Succeeded"},
		{"first", provisioner.AnnotationDeleteTask, ""},
		{"old.example.com", provisioner.AnnotationPrune, "disabled"},
		{"new.example.com", provisioner.AnnotationPrune, "disabled"},
		{"data", provisioner.AnnotationPrune, "disabled"},
		{"settings", provisioner.AnnotationPrune, ""},
	} {
		if got := annotations[tc.name][tc.annotation]; got != tc.want {
			t.Errorf("%s of %s is %q, want %q", tc.annotation, tc.name, got, tc.want)
		}
	}
}

func TestHooksAreRunAsTheClassSays(t *testing.T) {
	content := chartOf("templates/a.yaml", configMap("1")+hookObject("Job", "a", "helm.sh/hook: post-install")+hookObject("Pod", "b", "helm.sh/hook: test"))
	for parameters, want := range map[string]string{
		`{"hooks":"All"}`:          "ConfigMap/settings Job/a Pod/b",
		`{"hooks":"WithoutTests"}`: "ConfigMap/settings Job/a",
		`{"hooks":"None"}`:         "ConfigMap/settings",
	} {
		result, err := render1(t, content, func(r *provisioner.Request) { r.Parameters = json.RawMessage(parameters) })
		if got := strings.Join(namesIn(result), " "); err != nil || got != want {
			t.Errorf("of %s: got %s, %v, want %s", parameters, got, err, want)
		}
	}
}

func TestDefinitionsAreMadeFirstAndKept(t *testing.T) {
	content := small()
	content["crds/there.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: there.example.com}\n")}
	for _, tc := range []struct {
		parameters string
		reader     provisioner.Reader
		want       []string
		varies     int
	}{
		{`{"hooks":"None"}`, nil, []string{"chart-crds: CustomResourceDefinition/there.example.com CustomResourceDefinition/things.example.com", "configuration: ConfigMap/cache ConfigMap/shop-web", "custom: Thing/one"}, 0},
		{`{"hooks":"None","crds":"CreateReplace"}`, reader{}, []string{"chart-crds: CustomResourceDefinition/there.example.com CustomResourceDefinition/things.example.com", "configuration: ConfigMap/cache ConfigMap/shop-web", "custom: Thing/one"}, 0},
		{`{"hooks":"None","crds":"Create"}`, nil, []string{"chart-crds: CustomResourceDefinition/there.example.com CustomResourceDefinition/things.example.com", "configuration: ConfigMap/cache ConfigMap/shop-web", "custom: Thing/one"}, 0},
		{`{"hooks":"None","crds":"Create"}`, reader{}, []string{"chart-crds: CustomResourceDefinition/things.example.com", "configuration: ConfigMap/cache ConfigMap/shop-web", "custom: Thing/one"}, 2},
		{`{"hooks":"None","crds":"Skip"}`, nil, []string{"configuration: ConfigMap/cache ConfigMap/shop-web", "workloads: Thing/one"}, 0},
	} {
		result, err := render1(t, content, func(r *provisioner.Request) { r.Parameters, r.Reader = json.RawMessage(tc.parameters), tc.reader })
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, phasesOf(result)); diff != "" {
			t.Errorf("of %s (-want +got):\n%s", tc.parameters, diff)
		}
		if len(result.Varies) != tc.varies {
			t.Errorf("of %s: varies %q", tc.parameters, result.Varies)
		}
		for _, phase := range result.Phases {
			for _, object := range phase.Objects {
				if got := object.GetAnnotations()[provisioner.AnnotationPrune]; (got == provisioner.PruneDisabled) != (phase.Name == phaseCRDs) {
					t.Errorf("of %s: %s of %s is %q", tc.parameters, provisioner.AnnotationPrune, object.GetName(), got)
				}
			}
		}
	}
}

func TestLookupReadsTheCluster(t *testing.T) {
	for _, tc := range []struct {
		template string
		reader   provisioner.Reader
		want     any
		varies   []string
	}{
		{`{{ lookup "v1" "Secret" "ns" "there" | toJson | quote }}`, nil, "{}", nil},
		{`{{ (lookup "v1" "Secret" "ns" "there").metadata.namespace }}`, reader{}, "ns", []string{"templates/a.yaml calls lookup"}},
		{`{{ lookup "v1" "Secret" "ns" "gone" | toJson | quote }}`, reader{}, "{}", []string{"templates/a.yaml calls lookup"}},
		{`{{ range (lookup "v1" "Secret" "ns" "").items }}{{ .data.a }}{{ end }}`, reader{}, "found", []string{"templates/a.yaml calls lookup"}},
		{`{{ (lookup "v1" "Secret" "" "").kind }}`, reader{}, "SecretList", []string{"templates/a.yaml calls lookup"}},
		{`{{ lookup "x/v1" "Unknown" "" "" | toJson | quote }}`, reader{}, "{}", []string{"templates/a.yaml calls lookup"}},
	} {
		result, err := render1(t, chartOf("templates/a.yaml", configMap(tc.template)), func(r *provisioner.Request) { r.Reader = tc.reader })
		if err != nil {
			t.Errorf("%s: %v", tc.template, err)
			continue
		}
		got, _, _ := unstructured.NestedFieldNoCopy(result.Phases[0].Objects[0].Object, "data", "value")
		if got != tc.want || !cmp.Equal(tc.varies, result.Varies) {
			t.Errorf("%s: got %v, varies %q", tc.template, got, result.Varies)
		}
	}
	_, err := render1(t, chartOf("templates/a.yaml", configMap(`{{ lookup "v1" "Secret" "ns" "there" }}`)), func(r *provisioner.Request) {
		r.Reader = reader{apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "there", errors.New("no"))}
	})
	if !apierrors.IsForbidden(err) || provisioner.IsInputError(err) || !strings.Contains(err.Error(), "templates/a.yaml looks up Secret ns/there") {
		t.Errorf("got %v, which is the fault of the rights", err)
	}
}

func TestWhatVariesIsTold(t *testing.T) {
	for template, want := range map[string][]string{
		`x`: nil,
		`{{ if false }}{{ randAlpha 5 }}{{ end }}x`:   nil,
		`{{ randAlpha 5 }}`:                           {"templates/a.yaml calls randAlpha"},
		`{{ tpl "{{ uuidv4 }}" . }}`:                  {"templates/a.yaml calls uuidv4"},
		`{{ include "b" . }}`:                         {"templates/a.yaml calls randInt"},
		`{{ now | date "2006" | quote }}`:             {"templates/a.yaml calls now"},
		`{{ date "2006" "x" | quote }}`:               {"templates/a.yaml calls date"},
		`{{ 0 | date "2006" | quote }}`:               nil,
		`{{ genPrivateKey "ed25519" | quote }}`:       {"templates/a.yaml calls genPrivateKey"},
		`{{ htpasswd "a" "b" }}{{ bcrypt "a" }}`:      {"templates/a.yaml calls bcrypt", "templates/a.yaml calls htpasswd"},
		`{{ derivePassword 1 "long" "p" "u" "s" }}`:   nil,
		`{{ list 1 2 3 | first }}{{ shuffle "abc" }}`: {"templates/a.yaml calls shuffle"},
		`{{ (genCA "a" 1).Cert | quote }}`:            {"templates/a.yaml calls genCA"},
	} {
		result, err := render1(t, chartOf("templates/a.yaml", configMap(template), "templates/_b.tpl", `{{ define "b" }}{{ randInt 1 9 }}{{ end }}`), nil)
		if err != nil || !cmp.Equal(want, result.Varies) {
			t.Errorf("%s: got %q, %v, want %q", template, result.Varies, err, want)
		}
	}
}

func TestNotesAndSchemaAreGiven(t *testing.T) {
	content := small()
	content["charts/cache/templates/NOTES.txt"] = &fstest.MapFile{Data: []byte("of the subchart")}
	result, err := render1(t, content, nil)
	if err != nil || result.Notes != "Colour blue." {
		t.Errorf("notes are %q, %v", result.Notes, err)
	}
	if !strings.Contains(string(result.ConfigSchema), `"replicas"`) {
		t.Errorf("the schema is %s", result.ConfigSchema)
	}
	content["templates/NOTES.txt"].Data = []byte(strings.Repeat("ä", 5000))
	if result, err = render1(t, content, nil); err != nil || len(result.Notes) > maxNotes || !strings.HasSuffix(result.Notes, "ä\n...") {
		t.Errorf("notes of %d bytes, %v", len(result.Notes), err)
	}
}

func TestListsAreFlattened(t *testing.T) {
	list := map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{
		map[string]any{"apiVersion": "v1", "kind": "ConfigMapList", "items": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}},
		map[string]any{"apiVersion": "example.com/v1", "kind": "AllowList", "metadata": map[string]any{"name": "b"}, "items": []any{"x"}},
	}}
	text, err := yaml.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	result, err := render1(t, chartOf("templates/a.yaml", string(text)), nil)
	if got := strings.Join(namesIn(result), " "); err != nil || got != "ConfigMap/a AllowList/b" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestARenderEndsWithItsContext(t *testing.T) {
	for name, template := range map[string]string{
		"loops":   "{{ range until 10000 }}{{ range until 10000 }}{{ end }}{{ end }}x",
		"strings": `{{ range until 100000 }}{{ "` + strings.Repeat("a", 1000) + `" | upper | lower | sha256sum | trunc 1 }}{{ end }}`,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		content := chartOf("templates/a.yaml", configMap(template))
		go func() { time.Sleep(20 * time.Millisecond); cancel() }()
		_, err := New().Render(ctx, provisioner.Request{Instance: types.NamespacedName{Namespace: "a", Name: "b"}, Content: content})
		if err != nil && !errors.Is(err, context.Canceled) && !provisioner.IsInputError(err) { // a fast machine may be done before
			t.Errorf("%s: got %v", name, err)
		}
		cancel()
	}
	w := newWatch(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	w.ctx = ctx
	cancel()
	if err := w.step(1); !errors.Is(err, context.Canceled) {
		t.Errorf("a loop turns on: %v", err)
	}
}
