// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"rukpak.io/rukpak/provisioner"
)

// outline is what counts of a chart: all but how it was read.
type outline struct {
	Metadata         *chart.Metadata
	Values           map[string]any
	Schema           string
	Templates, Files map[string]string
	Charts           []outline
}

func outlineOf(c *chart.Chart) outline {
	texts := func(files []*common.File) map[string]string {
		all := map[string]string{}
		for _, file := range files {
			all[file.Name] = string(file.Data)
		}
		return all
	}
	o := outline{c.Metadata, c.Values, string(c.Schema), texts(c.Templates), texts(c.Files), nil}
	if len(o.Values) == 0 {
		o.Values = nil
	}
	for _, inner := range c.Dependencies() {
		o.Charts = append(o.Charts, outlineOf(inner))
	}
	slices.SortFunc(o.Charts, func(a, b outline) int {
		return strings.Compare(a.Metadata.Name+a.Metadata.Version, b.Metadata.Name+b.Metadata.Version)
	})
	return o
}

// unchecked gives what the provisioner reads, also of charts that it refuses later.
func unchecked(t *testing.T, dir, where string) (*chart.Chart, error) {
	t.Helper()
	l := &chartReader{ctx: t.Context(), content: os.DirFS(dir), files: maxFiles, bytes: maxBytes, charts: maxCharts, from: map[*common.File]string{}}
	read, err := l.read(where)
	if err != nil {
		return nil, err
	}
	return l.chart(read, where, 0)
}

func TestChartsAreReadAsHelmReadsThem(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(sharedChart(t, "."), "*", "*"))
	if err != nil || len(dirs) < 15 {
		t.Fatalf("%q, %v", dirs, err)
	}
	for _, dir := range dirs {
		where, path := ".", dir
		if strings.HasSuffix(dir, "frobnitz_backslash_archive") {
			where = "frobnitz_backslash-1.2.3.tgz"
			path = filepath.Join(dir, where)
		}
		want, err := loader.Load(path)
		if err != nil {
			t.Errorf("%s: helm: %v", dir, err)
			continue
		}
		got, err := unchecked(t, dir, where)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		if diff := cmp.Diff(outlineOf(want), outlineOf(got)); diff != "" {
			t.Errorf("%s (-helm +rukpak):\n%s", dir, diff)
		}
	}
}

func TestIgnoredFilesAndLinksAreAsHelmHasThem(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		chartFile: "\xef\xbb\xbf" + chartYAML, ".helmignore": "\xef\xbb\xbf# comment\n*.bak\n/secret/\ncharts/skipped/\n!keep\n", "templates/a.yaml": configMap("1"), "templates/.hidden": "x",
		"a.bak": "x", "keep": "x", "secret/a": "x", "sub/secret/a": "x", "charts/skipped/README.md": "x", "charts/_partial/x": "x", "charts/a.prov": "x",
		"charts/cache/Chart.yaml": strings.Replace(chartYAML, "web", "cache", 1), "charts/cache/.helmignore": "values.yaml\n", "charts/cache/values.yaml": "a: 1\n---\nb: 2\n", "values.yaml": "\xef\xbb\xbfa: 1\nb: 12345678901\nc: 1.5\n",
		"elsewhere/linked.yaml": "x", "crds/a.yaml": "a",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"templates/b.yaml": "../elsewhere/linked.yaml", "linked": "elsewhere"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, rules := range []string{"*.bak\n/secret/\ncharts/skipped/\n", "templates/a.yaml\ncharts/skipped/\n", "charts\n", "\xef\xbb\xbf# c\ncharts/skipped\nelse*\n"} {
		if err := os.WriteFile(filepath.Join(dir, ".helmignore"), []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		want, err := loader.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		got, err := unchecked(t, dir, ".")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(outlineOf(want), outlineOf(got)); diff != "" {
			t.Errorf("%q (-helm +rukpak):\n%s", rules, diff)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	if _, err := unchecked(t, dir, "."); !provisioner.IsInputError(err) || !strings.Contains(err.Error(), "dangling: is a link that leads nowhere") {
		t.Errorf("got %v", err)
	}
}

func TestAChartIsFoundInTheContent(t *testing.T) {
	archived, err := os.ReadFile(filepath.Join(sharedChart(t, "edge/frobnitz_backslash_archive"), "frobnitz_backslash-1.2.3.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, parameter, want string
		content               fstest.MapFS
	}{
		{"root", "", ".", chartOf("charts/a/Chart.yaml", chartYAML)},
		{"folder", "", "web", files("web/Chart.yaml", chartYAML, "web/charts/a/Chart.yaml", chartYAML, "README.md", "")},
		{"deep folder", "", "deploy/charts/web", files("deploy/charts/web/Chart.yaml", chartYAML, "a.tgz", "")},
		{"archive", "", "a.tgz", files("a.tgz", string(archived), "README.md", "")},
		{"named folder", "b", "b", files("a/Chart.yaml", chartYAML, "b/Chart.yaml", chartYAML)},
		{"named archive", "b.tgz", "b.tgz", files("a/Chart.yaml", chartYAML, "b.tgz", string(archived))},
	} {
		got, err := find(t.Context(), tc.content, tc.parameter)
		if err != nil || got != tc.want {
			t.Errorf("%s: got %q, %v, want %q", tc.name, got, err, tc.want)
		}
		if _, err := load(t.Context(), tc.content, parameters{Chart: tc.parameter}); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// FuzzChart makes trees of bytes: each file is the length of its name, that of its text, and both.
func FuzzChart(f *testing.F) {
	seed := func(content fstest.MapFS) (encoded []byte) {
		for name, file := range content {
			encoded = append(encoded, byte(len(name)))
			encoded = binary.LittleEndian.AppendUint16(encoded, uint16(len(file.Data))) //nolint:gosec // files of tests are short
			encoded = append(append(encoded, name...), file.Data...)
		}
		return encoded
	}
	f.Add(seed(small()))
	f.Add(seed(chartOf("templates/a.yaml", configMap("{{ range .Values }}{{ . }}{{ end }}"), "values.yaml", "a: [1]", "requirements.yaml", "dependencies: [{name: x}]", "crds/a.json", "{}")))
	f.Add(seed(chartOf("charts/a.tgz", "\x1f\x8b\x08", "values.schema.json", `{"$ref":"#"}`, ".helmignore", "!x\n**\n")))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		content := fstest.MapFS{}
		for len(encoded) > 3 && len(content) < 30 {
			name, text := int(encoded[0]), int(binary.LittleEndian.Uint16(encoded[1:]))
			encoded = encoded[3:]
			name = min(name, len(encoded))
			text = min(text, len(encoded)-name)
			content[strings.Trim(strings.ToValidUTF8(string(encoded[:name]), "_"), "/")] = &fstest.MapFile{Data: encoded[name : name+text]}
			encoded = encoded[name+text:]
		}
		result, err := render1(t, content, nil)
		if err == nil && len(result.Phases) == 0 {
			t.Error("a result without objects")
		}
	})
}
