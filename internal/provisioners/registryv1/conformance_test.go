// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"rukpak.io/rukpak/internal/testenv/golden"
	"rukpak.io/rukpak/provisioner"
	"rukpak.io/rukpak/provisioner/provisionertest"
)

func TestConformance(t *testing.T) {
	subject := provisionertest.Subject{Provisioner: New()}
	contents := map[string]fstest.MapFS{}
	for _, one := range golden.Archives(t) {
		contents[one.Name] = one.Content
		if !strings.HasPrefix(one.Want, "error") && one.Config == "" {
			subject.Good = append(subject.Good, provisionertest.Case{Name: one.Name, Content: one.Content, Parameters: []byte(one.Parameters)})
		}
	}
	small := contents["testdata/webhooks.txtar"]
	with := func(name, text string) fstest.MapFS {
		changed := maps.Clone(small)
		changed[name] = &fstest.MapFile{Data: []byte(text)}
		return changed
	}
	subject.Bad = []provisionertest.Case{
		{Name: "Syntax", Content: with("manifests/x.yaml", "a: ["), File: "manifests/x.yaml"},
		{Name: "Subfolder", Content: with("manifests/more/x.yaml", "a: b"), File: "manifests/more"},
		{Name: "MediaType", Content: with("metadata/annotations.yaml", "annotations: {operators.operatorframework.io.bundle.mediatype.v1: helm}"), File: "metadata/annotations.yaml"},
		{Name: "Folder", Content: with("metadata/annotations.yaml", "annotations: {operators.operatorframework.io.bundle.manifests.v1: ../..}"), File: "metadata/annotations.yaml"},
		{Name: "NoManifests", Content: with("metadata/annotations.yaml", "annotations: {operators.operatorframework.io.bundle.manifests.v1: elsewhere/}"), File: "metadata/annotations.yaml"},
		{Name: "Metadata", Content: with("metadata/annotations.yaml", "annotations: [1]"), File: "metadata/annotations.yaml"},
		{Name: "Properties", Content: with("metadata/properties.yaml", "properties: 5"), File: "metadata/properties.yaml"},
		{Name: "WrongType", Content: with("manifests/csv.yaml", strings.Replace(string(small["manifests/csv.yaml"].Data), "installModes:", "installModes: 5\n  old:", 1)), File: "manifests/csv.yaml"},
		{Name: "Parameters", Content: small, Parameters: []byte(`{"certificates": "Mine"}`), File: "parameters"},
		{Name: "ParameterName", Content: small, Parameters: []byte(`{"Certificates": "Auto"}`), File: "parameters"},
		{Name: "Config", Content: small, Config: []byte(`{"watchNamespaces": "a"}`), File: "config"},
		{Name: "ConfigType", Content: small, Config: []byte(`{"deploymentConfig": {"env": {"a": "b"}}}`), File: "config"},
		{Name: "WatchNothing", Content: small, Config: []byte(`{"watchNamespace": "a"}`), File: "config"},
		{Name: "NoBundle", Content: fstest.MapFS{"x.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}}, Whole: true},
	}
	provisionertest.Run(t, subject)
}

// TestInstallModes goes through what may be watched with each set of modes.
func TestInstallModes(t *testing.T) {
	const home = "home"
	for name, test := range map[string]struct {
		modes  modes
		config string
		want   string // targets, or the error
	}{
		"All":              {modes{all: true}, "", `[""]`},
		"AllNull":          {modes{all: true}, `{"watchNamespace": null}`, `[""]`},
		"AllWatches":       {modes{all: true}, `{"watchNamespace": "a"}`, "watches all namespaces: leave it out"},
		"AllOwn":           {modes{all: true, own: true}, `{"watchNamespace": "home"}`, `["home"]`},
		"AllOwnOther":      {modes{all: true, own: true}, `{"watchNamespace": "a"}`, `so it has to be "home"`},
		"Own":              {modes{own: true}, `{"watchNamespace": "home"}`, `["home"]`},
		"OwnUnset":         {modes{own: true}, "", `set it to "home"`},
		"OwnOther":         {modes{own: true}, `{"watchNamespace": "a"}`, `so it has to be "home"`},
		"Single":           {modes{single: true}, `{"watchNamespace": "a"}`, `["a"]`},
		"SingleUnset":      {modes{single: true}, "{}", "name the namespace to watch"},
		"SingleOwn":        {modes{single: true}, `{"watchNamespace": "home"}`, `cannot watch "home"`},
		"SingleList":       {modes{single: true}, `{"watchNamespace": ["a"]}`, "watchNamespace is a list"},
		"Multi":            {modes{multi: true}, `{"watchNamespace": ["b", "a"]}`, `["a","b"]`},
		"MultiOwn":         {modes{multi: true}, `{"watchNamespace": ["b", "home"]}`, `cannot watch "home"`},
		"MultiOwnAllowed":  {modes{multi: true, own: true}, `{"watchNamespace": ["b", "home"]}`, `["b","home"]`},
		"MultiOne":         {modes{multi: true}, `{"watchNamespace": "a"}`, "does not fit"},
		"MultiTwice":       {modes{multi: true}, `{"watchNamespace": ["a", "a"]}`, "names a namespace twice"},
		"NotAName":         {modes{single: true}, `{"watchNamespace": "A b"}`, "is no name of a namespace"},
		"Number":           {modes{single: true}, `{"watchNamespace": 5}`, "neither the name of a namespace nor a list"},
		"EmptyText":        {modes{all: true, single: true}, `{"watchNamespace": ""}`, "is no name of a namespace"},
		"UnknownOfNothing": {modes{all: true}, `{"nope": 1}`, "there are watchNamespace, deploymentConfig"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := parseConfig([]byte(test.config), test.modes, home)
			got, _ := json.Marshal(config.targets)
			if err != nil {
				if got = []byte(err.Error()); !provisioner.IsConfigError(err) {
					t.Errorf("%v is not about the configuration", err)
				}
			}
			if !strings.Contains(string(got), test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestSchemaSaysWhatIsTaken holds the schema against the decoder: what one refuses, the other does.
func TestSchemaSaysWhatIsTaken(t *testing.T) {
	for _, m := range []modes{{all: true}, {own: true}, {all: true, single: true}, {single: true, multi: true}} {
		schema := compile(t, m)
		for config, valid := range map[string]bool{
			`{}`: m.all, `{"watchNamespace": null}`: m.all, `{"watchNamespace": 5}`: false, `{"watchNamespace": ["a", "b"]}`: m.multi,
			`{"nope": 1}`: false, `{"version": 1}`: false,
		} {
			if m == (modes{all: true}) && strings.Contains(config, "watchNamespace") {
				valid = false
			}
			checkBoth(t, schema, m, config, valid)
		}
	}
	m := modes{all: true}
	schema := compile(t, m)
	for config, valid := range map[string]bool{
		`{"deploymentConfig": {}}`:                                                             true,
		`{"deploymentConfig": {"env": [{"name": "A", "value": "b"}]}}`:                         true,
		`{"deploymentConfig": {"env": [{"name": "A", "value": 5}]}}`:                           false,
		`{"deploymentConfig": {"env": [{"nom": "A"}]}}`:                                        false,
		`{"deploymentConfig": {"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}}`:         true,
		`{"deploymentConfig": {"tolerations": [{"tolerationSeconds": 5}]}}`:                    true,
		`{"deploymentConfig": {"tolerations": [{"tolerationSeconds": "5"}]}}`:                  false,
		`{"deploymentConfig": {"nodeSelector": {"a": true}}}`:                                  false,
		`{"deploymentConfig": {"volumes": [{"name": "a", "emptyDir": {"sizeLimit": "1Gi"}}]}}`: true,
		`{"deploymentConfig": {"volumes": [{"name": "a", "empty": {}}]}}`:                      false,
		`{"deploymentConfig": {"affinity": {"podAffinity": {}}, "annotations": {"a": "b"}}}`:   true,
		`{"deploymentConfig": {"selector": {}}}`:                                               false,
	} {
		checkBoth(t, schema, m, config, valid)
	}
}

func compile(t *testing.T, m modes) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(m.schema())))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("config.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func checkBoth(t *testing.T, schema *jsonschema.Schema, m modes, config string, valid bool) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(config))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); (err == nil) != valid {
		t.Errorf("%s with %s: the schema says %v", config, m, err)
	}
	if m == (modes{all: true}) && config == `{"watchNamespace": null}` {
		return // null is as good as unset, which a schema without the field cannot say
	}
	if _, err := parseConfig([]byte(config), m, "home"); (err == nil) != valid {
		t.Errorf("%s with %s: the decoder says %v", config, m, err)
	}
}

// FuzzBundle looks for panics, and for results that differ from run to run.
func FuzzBundle(f *testing.F) {
	for _, one := range golden.Archives(f) {
		if csv := one.Content["manifests/csv.yaml"]; csv != nil {
			f.Add(csv.Data, one.Content["metadata/annotations.yaml"].Data, one.Config)
		}
	}
	f.Fuzz(func(t *testing.T, csv, annotations []byte, config string) {
		content := fstest.MapFS{"manifests/csv.yaml": {Data: csv}, "metadata/annotations.yaml": {Data: annotations}, "metadata/dependencies.yaml": {Data: annotations}}
		one := golden.Archive{Content: content, Config: config}
		if first, second := outcome(t, one), outcome(t, one); first != second {
			t.Errorf("first %s\nthen %s", first, second)
		}
	})
}
