// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"rukpak.io/rukpak/provisioner"
)

func TestBadInputIsNamed(t *testing.T) {
	subchart := func(pairs ...string) fstest.MapFS {
		return chartOf(append([]string{"templates/a.yaml", configMap("1"), "charts/cache/Chart.yaml", "apiVersion: v2\nname: cache\nversion: 0.1.0\n"}, pairs...)...)
	}
	for _, tc := range []struct {
		name               string
		content            fstest.MapFS
		parameters, config string
		want               string
	}{
		{"unknown parameter", small(), `{"crd":"Skip","chrt":""}`, "", `parameters: unknown field "chrt", unknown field "crd": there are chart, releaseName,`},
		{"parameter in another case", small(), `{"CRDs":"Skip"}`, "", `parameters: unknown field "CRDs"`},
		{"crds", small(), `{"crds":"skip"}`, "", `parameters: crds is "skip": it may be CreateReplace, Create, Skip`},
		{"hooks", small(), `{"hooks":"Some"}`, "", `parameters: hooks is "Some": it may be All, WithoutTests, None`},
		{"release", small(), `{"releaseName":"A_b"}`, "", `parameters: releaseName is "A_b": Helm takes lower case letters`},
		{"version", small(), `{"kubeVersion":"new"}`, "", `parameters: kubeVersion is "new": it is a version such as v1.34.2`},
		{"APIs", small(), `{"apiVersions":[""]}`, "", `parameters: apiVersions[0] is ""`},
		{"chart out of the content", small(), `{"chart":"../a"}`, "", `parameters: chart is "../a": name a folder or an archive`},
		{"chart that is not there", small(), `{"chart":"a"}`, "", `parameters: chart: there is no "a" in the content`},
		{"folder without chart", small(), `{"chart":"templates"}`, "", `parameters: chart: there is no Chart.yaml in the folder "templates"`},
		{"no chart at all", files("a.yaml", "x"), "", "", "there is no Chart.yaml: choose a class"},
		{"several charts", files("a/Chart.yaml", chartYAML, "b/Chart.yaml", chartYAML), "", "", "there are several charts (a, b): name one by the parameter chart of the class"},
		{"several archives", files("a.tgz", "", "b.tgz", ""), "", "", "there are several archives of charts (a.tgz, b.tgz)"},
		{"an archive that is none", files("a.tgz", "text"), "", "", "a.tgz: is no archive of a chart: "},
		{"library", files(chartFile, chartYAML+"type: library\n"), "", "", "Chart.yaml: the chart is a library"},
		{"no name", files(chartFile, "apiVersion: v2\nversion: 1.0.0\n"), "", "", "Chart.yaml: validation: chart.metadata.name is required"},
		{"YAML of the chart", files(chartFile, "a: b\n c: ["), "", "", "Chart.yaml:2: "},
		{"an empty dependency", files(chartFile, chartYAML+"dependencies: [~]\n"), "", "", "Chart.yaml: "},
		{"missing dependencies", files(chartFile, chartYAML+"dependencies: [{name: a, version: 1.0.0}, {name: b, version: 1.0.0}]\n"), "", "", "Chart.yaml: the dependencies a, b are declared but not in the folder charts/: put them there by `helm dependency build`"},
		{"missing dependency of a dependency", subchart("charts/cache/Chart.yaml", "apiVersion: v2\nname: cache\nversion: 0.1.0\ndependencies: [{name: deep, version: 1.0.0}]\n"), "", "", "Chart.yaml: chart web/charts/cache: the dependency deep 1.0.0 is declared and enabled, but not in its folder charts/"},
		{"kubeVersion", files(chartFile, chartYAML+"kubeVersion: '>=1.99'\n"), "", "", "Chart.yaml: kubeVersion: the chart is for Kubernetes >=1.99, and the cluster's version is v1.34.2"},
		{"values", chartOf("values.yaml", "a: 1\nb: [\n"), "", "", "values.yaml:"},
		{"values that are a list", chartOf("values.yaml", "[1]"), "", "", "values.yaml: the values are a list, not a mapping"},
		{"values of a subchart", subchart("charts/cache/values.yaml", "a: ["), "", "", "charts/cache/values.yaml:"},
		{"no chart in charts", subchart("charts/README.md", "x"), "", "", "charts/README.md: is no chart, but in the folder of charts"},
		{"no chart in a folder in charts", subchart("charts/x/README.md", "x"), "", "", "charts/x/Chart.yaml: there is no such file"},
		{"an archive in charts", subchart("charts/x.tgz", "x"), "", "", "charts/x.tgz: is no archive of a chart: "},
		{"template", chartOf("templates/a.yaml", "a\n{{ if }}"), "", "", "templates/a.yaml:2: missing value for if"},
		{"unknown function", chartOf("templates/a.yaml", "{{ env \"HOME\" }}"), "", "", "templates/a.yaml:1: function \"env\" not defined"},
		{"function of the machine", chartOf("templates/a.yaml", "{{ expandenv \"HOME\" }}"), "", "", "templates/a.yaml:1: function \"expandenv\" not defined"},
		{"nil", chartOf("templates/a.yaml", "\n\n{{ .Values.a.b }}"), "", "", "templates/a.yaml:3: at <.Values.a.b>: nil pointer evaluating interface {}.b"},
		{"required", chartOf("templates/a.yaml", "\n{{ required \"set colour\\nplease\" .Values.colour }}"), "", "", "templates/a.yaml:2: set colour please"},
		{"what a function says", chartOf("templates/a.yaml", "\n{{ substr 5 2 \"abc\" }}"), "", "", "templates/a.yaml:2: at <substr 5 2 \"abc\">: error calling substr: "},
		{"what a function says in a named template", chartOf("templates/_a.tpl", "{{ define \"x\" }}\n{{ chunk 0 (list 1) }}{{ end }}", "templates/b.yaml", "{{ include \"x\" . }}"), "", "", "templates/_a.tpl:2: at <chunk 0 (list 1)>: error calling chunk: "},
		{"fail", subchart("charts/cache/templates/_a.tpl", "{{ define \"x\" }}\n{{ fail \"not so\" }}{{ end }}", "charts/cache/templates/b.yaml", "{{ include \"x\" . }}"), "", "", "charts/cache/templates/b.yaml:1: not so"},
		{"error in a named template", chartOf("templates/_a.tpl", "{{ define \"x\" }}\n\n{{ .Values.a.b.c }}{{ end }}", "templates/b.yaml", "\n{{ include \"x\" . }}"), "", "", "templates/_a.tpl:3: at <.Values.a.b.c>: nil pointer"},
		{"no such template", chartOf("templates/b.yaml", "{{ include \"x\" . }}"), "", "", "templates/b.yaml:1: "},
		{"YAML", chartOf("templates/b.yaml", configMap("1")+"---\na: [\n"), "", "", "templates/b.yaml: renders to invalid YAML: yaml: line "},
		{"the second document", chartOf("templates/b.yaml", configMap("1")+"---\nkind: A\n"), "", "", "templates/b.yaml: A: renders to an object that is not complete: there is no apiVersion (document 2 of the file)"},
		{"text", chartOf("templates/b.txt", "Hello"), "", "", "templates/b.txt: renders to text, which is no object"},
		{"no name of an object", chartOf("templates/b.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {}\n"), "", "", "templates/b.yaml: Pod: renders to an object that is not complete: there is no metadata.name"},
		{"generateName", chartOf("templates/b.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n"), "", "", "generateName is not supported"},
		{"twice", chartOf("templates/a.yaml", configMap("1"), "templates/b.yaml", strings.Replace(configMap("2"), "settings", "settings, namespace: team-a", 1)), "", "", "templates/b.yaml: ConfigMap team-a/settings: the object is rendered twice, also in templates/a.yaml"},
		{"a definition twice", chartOf("crds/a.yaml", hookObject("CustomResourceDefinition", "a.b", ""), "templates/b.yaml", hookObject("CustomResourceDefinition", "a.b", "")), "", "", "templates/b.yaml: CustomResourceDefinition.apiextensions.k8s.io a.b: the object is rendered twice, also in crds/a.yaml"},
		{"definition", chartOf("templates/a.yaml", configMap("1"), "crds/a.yaml", "a: ["), "", "", "crds/a.yaml: invalid YAML: "},
		{"definition as a hook of deletion", chartOf("templates/a.yaml", hookObject("CustomResourceDefinition", "a.b", "helm.sh/hook: post-delete")), "", "", "a hook at tests or deletion that defines a kind is not supported"},
		{"nothing is left", chartOf("crds/a.yaml", hookObject("CustomResourceDefinition", "a.b", "")), `{"crds":"Skip"}`, "", "parameters: crds is Skip, so that nothing of the chart is left"},
		{"annotation", chartOf("templates/a.yaml", hookObject("Job", "a", "helm.sh/hook-weight: 5")), "", "", `metadata.annotations["helm.sh/hook-weight"] is a number: quote the value`},
		{"config", small(), "", `["x"]`, "config: is no JSON object of values: "},
		{"schema", small(), "", `{"replicas":"two","colour":3}`, "config: colour: chart web: got number, want string\nconfig: replicas: chart web: got string, want integer"},
		{"schema of a subchart", subchart("charts/cache/values.schema.json", `{"properties":{"ports":{"items":{"type":"integer"}}},"required":["size"]}`), "", `{"cache":{"ports":[1,"x"]}}`, "config: cache.ports[1]: chart cache: got string, want integer\nconfig: cache: chart cache: missing property 'size'"},
		{"values of a subchart that are none", subchart("charts/cache/values.schema.json", `{}`), "", `{"cache":"x"}`, "config"},
		{"schema that is no JSON", chartOf("values.schema.json", "{", "templates/a.yaml", configMap("1")), "", "", "values.schema.json: is no JSON: "},
		{"schema that is none", chartOf("values.schema.json", `{"type":7}`, "templates/a.yaml", configMap("1")), "", "", "values.schema.json: "},
		{"schema elsewhere", chartOf("values.schema.json", `{"properties":{"a":{"$ref":"https://example.com/a.json"}}}`, "templates/a.yaml", configMap("1")), "", "", `values.schema.json: $ref "https://example.com/a.json" is fetched from elsewhere, which is not allowed: put that schema into this file`},
		{"schema in a file", chartOf("values.schema.json", `{"properties":{"a":{"$ref":"../../etc/passwd"}}}`, "templates/a.yaml", configMap("1")), "", "", `values.schema.json: $ref "etc/passwd" is fetched from elsewhere`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			result, err := render1(t, tc.content, func(r *provisioner.Request) {
				r.Parameters, r.Config = json.RawMessage(tc.parameters), json.RawMessage(tc.config)
			})
			if !provisioner.IsInputError(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\n%v\nwant %q", phasesOf(result), err, tc.want)
			}
			if err != nil && strings.Count(err.Error(), "\n") > strings.Count(tc.want, "\n") {
				t.Errorf("%q has more lines than faults", err)
			}
		})
	}
}

func TestSchemasAreLeftOutIfTheClassSaysSo(t *testing.T) {
	content := small()
	if _, err := render1(t, content, func(r *provisioner.Request) {
		r.Parameters, r.Config = json.RawMessage(`{"disableSchemaValidation":true}`), json.RawMessage(`{"replicas":"two"}`)
	}); err != nil {
		t.Error(err)
	}
}

func TestNothingIsFetched(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	content := chartOf(
		"templates/a.yaml", configMap(`{{ getHostByName "`+strings.TrimPrefix(server.URL, "http://")+`" | quote }}`),
		"values.schema.json", `{"$ref":"`+server.URL+`/schema.json"}`,
	)
	if _, err := render1(t, content, nil); !provisioner.IsInputError(err) || asked {
		t.Errorf("got %v, asked %t", err, asked)
	}
	declared := files(chartFile, chartYAML+"dependencies: [{name: a, version: 1.0.0, repository: '"+server.URL+"'}]\n")
	if _, err := render1(t, declared, nil); !provisioner.IsInputError(err) || asked {
		t.Errorf("got %v, asked %t", err, asked)
	}
}

// TestChartsThatDoTooMuchAreEnded has charts that would take all time or memory.
func TestChartsThatDoTooMuchAreEnded(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	for name, tc := range map[string]struct{ template, want string }{
		"loop":                 {"{{ range until 1000000 }}{{ range until 1000000 }}{{ end }}{{ end }}", "the templates of the chart do not end: they took 500000 steps"},
		"loop over a number":   {"{{ range 2000000000 }}{{ end }}", "do not end"},
		"loop by tpl":          {`{{ tpl "{{ range 2000000000 }}{{ end }}" . }}`, "do not end"},
		"loop by piped tpl":    {`{{ . | tpl (print "{{ range 2000000" "000 }}{{ end }}") }}`, "do not end"},
		"loop in a variable":   {`{{ $x := include "loop" . }}`, "do not end"},
		"loop in a condition":  {`{{ if (include "loop" .) }}{{ end }}`, "do not end"},
		"many":                 {"{{ include \"many\" 30 }}", "do not end"},
		"recursion":            {"{{ include \"self\" . }}", "more than 1000 templates run one inside another"},
		"recursion by turns":   {"{{ include \"ping\" . }}", "more than 1000 templates run one inside another"},
		"recursion by tpl":     {`{{ $x := dict }}{{ $_ := set $x "t" "{{ tpl .t . }}" }}{{ tpl $x.t $x }}`, "more than 1000 templates run one inside another"},
		"recursion in place":   {"{{ template \"again\" . }}", "more than 1000 templates run one inside another"},
		"recursion by file":    {"{{ include (print .Template.BasePath \"/a.yaml\") . }}", "more than 1000 templates run one inside another"},
		"output":               {`{{ range until 10000 }}{{ $.Values.big }}{{ end }}`, "write more than 128 MiB"},
		"output of text":       {`{{ range until 10000 }}` + big[:100_000] + `{{ end }}`, "write more than 128 MiB"},
		"output of nindent":    {`{{ range until 100000 }}{{ $.Values.big | nindent 4 }}{{ end }}`, "write more than 128 MiB"},
		"output of toYaml":     {`{{ range until 100000 }}{{ toYaml $.Values }}{{ end }}`, "write more than 128 MiB"},
		"one output":           {`{{ range until 20 }}{{ $.Values.big }}{{ end }}`, "templates/a.yaml: the templates render more than 64 MiB, or one of them more than 16 MiB"},
		"repeat":               {`{{ repeat 1000000000 "abc" }}`, "a text of more than 16 MiB is made"},
		"indent":               {`{{ indent 1000000000 "abc" }}`, "a text of more than 16 MiB is made"},
		"replace":              {`{{ replace "x" .Values.big .Values.big }}`, "a text of more than 16 MiB is made"},
		"doubling":             {`{{ $x := "0123456789abcdef" }}{{ range until 40 }}{{ $x = print $x $x }}{{ end }}`, "a value is too large to be written"},
		"until":                {`{{ until 2000000000 }}`, "a list of more than 1000000 numbers is made"},
		"until below zero":     {`{{ until -2000000000 }}`, "a list of more than 1000000 numbers is made"},
		"untilStep":            {`{{ untilStep 0 9223372036854775807 9223372036854775806 }}`, "a list of more than 1000000 numbers is made"},
		"seq":                  {`{{ seq 1 1 2000000000 }}`, "a list of more than 1000000 numbers is made"},
		"keys":                 {`{{ range until 1000 }}{{ genPrivateKey "ed25519" | len }}{{ end }}`, "do not end"},
		"a value in itself":    {`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ $x }}`, "a value is too deep to be written: it contains itself"},
		"itself as YAML":       {`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ toYamlPretty $x }}`, "a value is too deep to be written: it contains itself"},
		"itself as TOML":       {`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ toToml $x }}`, "a value is too deep to be written: it contains itself"},
		"itself as text":       {`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ printf "%v" $x }}`, "a value is too deep to be written: it contains itself"},
		"itself as HTML":       {`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ html $x }}`, "a value is too deep to be written: it contains itself"},
		"itself as a number":   {`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ int64 $x }}`, "a value is too deep to be written: it contains itself"},
		"itself as a key":      {`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ dict $x 1 }}`, "a value is too deep to be written: it contains itself"},
		"itself copied":        {`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ deepCopy $x }}`, "a value is too deep to be written: it contains itself"},
		"twice twice and more": {`{{ $x := list 1 }}{{ range until 40 }}{{ $x = list $x $x }}{{ end }}{{ toJson $x }}`, "a value is too large to be written"},
		"blocks":               {strings.Repeat("{{ if true }}", 100_000) + strings.Repeat("{{ end }}", 100_000), "has more than 500 blocks one inside another"},
		"blocks by tpl":        {`{{ tpl (print (repeat 1000 "{{ if true }}") (repeat 1000 "{{ end }}")) . }}`, "has more than 500 blocks one inside another"},
	} {
		t.Run(name, func(t *testing.T) {
			content := chartOf("templates/a.yaml", tc.template, "values.yaml", "big: "+big+"\n", "templates/_a.tpl", `
{{ define "self" }}{{ include "self" . }}{{ end }}{{ define "ping" }}{{ include "pong" . }}{{ end }}{{ define "pong" }}{{ include "ping" . }}{{ end }}
{{ define "again" }}{{ template "again" . }}{{ end }}{{ define "loop" }}{{ range 2000000000 }}{{ end }}{{ end }}
{{ define "many" }}{{ if gt . 0 }}{{ include "many" (sub . 1 | int) }}{{ include "many" (sub . 1 | int) }}{{ end }}{{ end }}`)
			result, err := render1(t, content, nil)
			if !provisioner.IsInputError(err) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "templates/a.yaml") {
				t.Errorf("got %v, %v, want %q", phasesOf(result), err, tc.want)
			}
		})
	}
}

func TestLargeChartsAreRefused(t *testing.T) {
	many := fstest.MapFS{chartFile: {Data: []byte(chartYAML)}}
	for i := range maxFiles + 1 {
		many["files/"+strings.Repeat("a", i%200+1)+string(rune('a'+i/200))] = &fstest.MapFile{}
	}
	deep := chartYAML
	nested := fstest.MapFS{}
	for i, dir := 0, ""; i < maxLevels+2; i, dir = i+1, dir+"charts/web/" {
		nested[dir+chartFile] = &fstest.MapFile{Data: []byte(deep)}
	}
	var bomb bytes.Buffer
	zipped := gzip.NewWriter(&bomb)
	for range 80 {
		if _, err := zipped.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		content fstest.MapFS
		want    string
	}{
		"files":   {many, "the chart has more than 10000 files"},
		"bytes":   {chartOf("a", string(make([]byte, maxBytes))), "the files of the chart are larger than 64 MiB"},
		"archive": {chartOf("charts/a.tgz", bomb.String()), "charts/a.tgz: the files of the chart are larger than 64 MiB"},
		"charts":  {nested, "more than 16 one inside another"},
		"values":  {chartOf("values.yaml", "a: "+strings.Repeat("[", 501)+strings.Repeat("]", 501)), "values.yaml: its values are nested more than 500 levels deep"},
		"folders": {chartOf(strings.Repeat("a/", maxDepth+2)+"b", ""), "folders are more than 40 deep"},
	} {
		if _, err := render1(t, tc.content, nil); !provisioner.IsInputError(err) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}
