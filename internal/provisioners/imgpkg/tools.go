// SPDX-License-Identifier: Apache-2.0

package imgpkg

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"rukpak.io/rukpak/internal/parse"
	"rukpak.io/rukpak/provisioner"
)

// tools are the documents that are for Carvel's programs and are no objects.
type tools struct {
	content   fs.FS
	images    lock
	rules     []searchRule
	overrides []override
	kapp      []string // files
	vendir    []string // files
	faults    []*provisioner.InputError
}

// kbldConfig is what is read of kbld.k14s.io/v1alpha1 Config.
type kbldConfig struct {
	APIVersion             string            `json:"apiVersion"`
	Kind                   string            `json:"kind"`
	Metadata               json.RawMessage   `json:"metadata"`
	MinimumRequiredVersion string            `json:"minimumRequiredVersion"`
	SearchRules            []searchRule      `json:"searchRules"`
	Overrides              []override        `json:"overrides"`
	Sources                []json.RawMessage `json:"sources"`
	Destinations           []json.RawMessage `json:"destinations"`
	Keys                   []string          `json:"keys"`
}

type searchRule struct {
	KeyMatcher *struct {
		Name string `json:"name"`
		Path []any  `json:"path"`
	} `json:"keyMatcher"`
	ValueMatcher *struct {
		Image     string `json:"image"`
		ImageRepo string `json:"imageRepo"`
	} `json:"valueMatcher"`
	UpdateStrategy *struct {
		None        *struct{}     `json:"none"`
		EntireValue *struct{}     `json:"entireValue"`
		JSON        *searchNested `json:"json"`
		YAML        *searchNested `json:"yaml"`
	} `json:"updateStrategy"`
}

type searchNested struct {
	SearchRules []searchRule `json:"searchRules"`
}

type override struct {
	Image             string          `json:"image"`
	NewImage          string          `json:"newImage"`
	Preresolved       bool            `json:"preresolved"`
	TagSelection      json.RawMessage `json:"tagSelection"`
	PlatformSelection json.RawMessage `json:"platformSelection"`
}

// take takes a document that is for a tool.
func (t *tools) take(at parse.Place, fields map[string]any) bool {
	version, _ := fields["apiVersion"].(string)
	group, _, _ := strings.Cut(version, "/")
	kind, _ := fields["kind"].(string)
	switch {
	case group == "kbld.k14s.io":
		t.kbld(at, kind, fields)
	case group == "kapp.k14s.io" && kind == "Config":
		t.kapp = append(t.kapp, at.String())
	case group == "vendir.k14s.io":
		t.vendored(at, kind, fields)
	case group == "imgpkg.carvel.dev":
		t.fault(at, "%s of imgpkg belongs into the folder .imgpkg", kind)
	default:
		return false
	}
	return true
}

func (t *tools) fault(at parse.Place, form string, args ...any) {
	t.faults = append(t.faults, &provisioner.InputError{File: at.File, Line: at.Line, Reason: fmt.Sprintf(form, args...)})
}

// kbld takes rules and overrides. What needs a registry or a build is refused.
func (t *tools) kbld(at parse.Place, kind string, fields map[string]any) {
	switch kind {
	case "Config", "ImageOverrides", "ImageKeys":
	default:
		t.fault(at, "%s of kbld builds or moves images, which is not done here: run kbld before the bundle is pushed, and leave it out", kind)
		return
	}
	var config kbldConfig
	err := exactly(fields, &config)
	switch {
	case err != nil:
		t.fault(at, "%s of kbld: %s", kind, strings.TrimPrefix(err.Error(), "json: "))
		return
	case len(config.Sources)+len(config.Destinations) > 0:
		t.fault(at, "%s of kbld has sources or destinations, and nothing is built here: run kbld before the bundle is pushed", kind)
		return
	}
	for _, key := range config.Keys {
		rule := searchRule{}
		rule.KeyMatcher = &struct {
			Name string `json:"name"`
			Path []any  `json:"path"`
		}{Name: key}
		config.SearchRules = append(config.SearchRules, rule)
	}
	t.rules = append(t.rules, config.SearchRules...)
	for i, one := range config.Overrides {
		switch {
		case one.Image == "" || one.NewImage == "":
			t.fault(at, "overrides[%d] needs image and newImage", i)
		case one.TagSelection != nil || one.PlatformSelection != nil:
			t.fault(at, "overrides[%d] asks a registry which image is meant: run kbld before the bundle is pushed, which locks it", i)
		case !one.Preresolved && !strings.Contains(one.NewImage, "@"):
			t.fault(at, "overrides[%d].newImage %q is no reference by digest, and no registry is asked here: write the digest, or preresolved: true", i, one.NewImage)
		default:
			t.overrides = append(t.overrides, one)
		}
	}
}

// vendored checks that vendir has been run: nothing is fetched here.
func (t *tools) vendored(at parse.Place, kind string, fields map[string]any) {
	t.vendir = append(t.vendir, at.String())
	if kind != "Config" {
		return
	}
	directories, _ := fields["directories"].([]any)
	for i, directory := range directories {
		entry, _ := directory.(map[string]any)
		named, _ := entry["path"].(string)
		into := path.Join(path.Dir(at.File), named)
		if info, err := fs.Stat(t.content, into); named == "" || !fs.ValidPath(into) || err != nil || !info.IsDir() {
			t.fault(at, "directories[%d].path %q is not in the content, and nothing is fetched here: run \"vendir sync\" before the bundle is pushed, or add it as a source of the bundle", i, named)
		}
	}
}

// refuseTemplates finds files that ytt would have to render first. Only comments can be instructions of ytt.
func refuseTemplates(ctx context.Context, content fs.FS, names []string) error {
	var faults []*provisioner.InputError
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		info, err := fs.Stat(content, name)
		if err == nil && info.Size() > parse.MaxDocument {
			continue // refused when it is read
		}
		data, err := fs.ReadFile(content, name)
		if err != nil {
			return fmt.Errorf("read the content: %w", err)
		}
		if line := templateLine(data); line > 0 {
			faults = append(faults, &provisioner.InputError{File: name, Line: line, Reason: "is a template of ytt, which is not run here: render it with ytt before the bundle is pushed"})
		}
	}
	return provisioner.Join(faults[:min(len(faults), parse.MaxFaults)])
}

// templateLine is the first line with an instruction of ytt, or 0.
func templateLine(data []byte) int {
	text := string(data)
	if !strings.Contains(text, "#@") {
		return 0
	}
	var texts []lines
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var root yaml.Node
		if err := decoder.Decode(&root); err != nil {
			break // its end, or no YAML, as templates may be
		}
		texts = findTexts(texts, &root, 0)
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		for len(texts) > 0 && texts[0].last < number { // they stand in the order of the file
			texts = texts[1:]
		}
		is := strings.HasPrefix(strings.TrimSpace(line), "#@") || strings.Contains(line, " #@")
		if is && (len(texts) == 0 || number < texts[0].first) {
			return number
		}
	}
	return 0
}

// lines are those of a text, where "#" begins no comment.
type lines struct{ first, last int }

func findTexts(texts []lines, node *yaml.Node, depth int) []lines {
	const quoted = yaml.LiteralStyle | yaml.FoldedStyle | yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle
	if node.Kind == yaml.ScalarNode && node.Style&quoted != 0 && strings.Contains(node.Value, "#@") {
		last := node.Line + strings.Count(node.Value, "\n")
		if node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 && !strings.HasSuffix(node.Value, "\n") {
			last++ // it begins below its mark
		}
		return append(texts, lines{node.Line, last})
	}
	const deepest = 100
	if depth > deepest {
		return texts
	}
	for _, child := range node.Content {
		texts = findTexts(texts, child, depth+1)
	}
	return texts
}
