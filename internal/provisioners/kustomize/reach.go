// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"rukpak.io/rukpak/provisioner"
)

// reach walks the Kustomizations that a build would read, before it does, and finds what they would have it fetch. The
// library asks the network in the middle of a build, and nothing can be put between.
type reach struct {
	tree   *tree
	files  map[string]string // of each folder, its Kustomization
	builds map[string]int    // how many folders a build of one is
	schema bool              // a Kustomization names a schema of kinds
	faults []*provisioner.InputError
}

func newReach(t *tree) *reach {
	return &reach{tree: t, files: map[string]string{}, builds: map[string]int{}}
}

// start walks from what a configuration names, and returns the folder to build.
func (r *reach) start(config Config) string {
	root := path.Clean("./" + config.Path)
	builds := 1
	for i, folder := range append([]string{root}, config.Components...) {
		named := fmt.Sprintf("components[%d]", i-1)
		if i == 0 {
			named = "path"
		}
		if r.tree.IsDir(path.Join(contentRoot, folder)) {
			builds += r.folder(path.Clean(folder))
			continue
		}
		r.fault("config", "%s: there is no folder %q in the content", named, folder)
	}
	if builds > maxFolders && len(r.faults) == 0 {
		r.fault(path.Join(root, r.files[root]), "more than %d Kustomizations are built, each as often as it is referred to", maxFolders)
	}
	return root
}

// folder walks a Kustomization and tells how many it builds.
func (r *reach) folder(dir string) int {
	if builds, seen := r.builds[dir]; seen {
		return builds // 0 in a circle, which the library refuses
	}
	r.builds[dir] = 0
	name, ok := r.find(dir)
	if !ok || len(r.builds) > maxFolders {
		return 1
	}
	data, err := r.tree.read(name)
	if err != nil {
		r.fault(name, "%s", oneLine(err.Error()))
		return 1
	}
	r.tree.checked[name], r.files[dir] = true, path.Base(name)
	fields := map[string]any{}
	if err := sigsyaml.Unmarshal(data, &fields); err != nil {
		r.fault(name, "%s", oneLine(err.Error()))
		return 1
	}
	builds := 1 + r.references(name, fields)
	r.builds[dir] = min(builds, maxFolders+1)
	return r.builds[dir]
}

func (r *reach) find(dir string) (string, bool) {
	var found []string
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		if dir, err := r.tree.stat(path.Join(contentRoot, dir, name)); err == nil && !dir {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		r.fault(path.Join(dir, "kustomization.yaml"), "there is no such file, but the folder is to be built")
		return "", false
	case 1:
		return path.Join(dir, found[0]), true
	}
	r.fault(path.Join(dir, found[0]), "%s is in the same folder: keep one of them", found[1])
	return "", false
}

func (r *reach) references(name string, fields map[string]any) (builds int) {
	for _, field := range []string{"helmCharts", "helmChartInflationGenerator", "helmGlobals"} {
		if fields[field] != nil {
			r.fault(name, "%s is not supported, since it runs the program helm: use a class that renders charts, or put the rendered chart into the content", field)
			delete(fields, field)
		}
	}
	r.schema = r.schema || fields["openapi"] != nil
	before := len(r.faults)
	r.scan(name, "", fields)
	if len(r.faults) > before {
		return 0
	}
	for _, field := range []string{"resources", "bases", "components"} {
		for _, reference := range texts(fields[field]) {
			builds += r.follow(name, field, reference)
		}
	}
	for _, field := range []string{"generators", "transformers", "validators"} {
		for _, reference := range texts(fields[field]) {
			r.configuration(name, field, reference)
		}
	}
	return min(builds, maxFolders+1)
}

// follow goes into a folder that is referred to.
func (r *reach) follow(name, field, reference string) int {
	target, ok := r.local(name, field, reference)
	if !ok || !r.tree.IsDir(path.Join(contentRoot, target)) {
		return 0
	}
	return r.folder(target)
}

// local is the path of the content that a reference means.
func (r *reach) local(name, field, reference string) (string, bool) {
	target := path.Join(path.Dir(name), reference)
	if path.IsAbs(reference) || !fs.ValidPath(target) {
		r.fault(name, "%s: %q leaves the content", field, reference)
		return "", false
	}
	if !r.tree.Exists(path.Join(contentRoot, target)) {
		r.fault(name, "%s: %q is not in the content", field, reference)
		return "", false
	}
	return target, true
}

// configuration looks at what configures a builtin generator, transformer or validator: a file, or text in place.
func (r *reach) configuration(name, field, reference string) {
	if strings.Contains(reference, "\n") {
		r.documents(name, field, []byte(reference))
		return
	}
	target, ok := r.local(name, field, reference)
	if !ok {
		return
	}
	if r.tree.IsDir(path.Join(contentRoot, target)) {
		r.fault(name, "%s: %q is a folder: name its files", field, reference)
		return
	}
	data, err := r.tree.read(target)
	if err != nil {
		r.fault(target, "%s", oneLine(err.Error()))
		return
	}
	r.documents(target, field, data)
}

func (r *reach) documents(name, field string, data []byte) {
	decoder := yaml.NewYAMLToJSONDecoder(bytes.NewReader(data))
	for {
		var document any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.fault(name, "%s: %s", field, oneLine(err.Error()))
			return
		}
		r.scan(name, field, document)
	}
}

// free are fields whose texts are never taken for the place of something.
var free = []string{
	"patch", "literals", "commonAnnotations", "commonLabels", "labels", "annotations", "images", "imageTag", "buildMetadata",
	"metadata", "replicas", "options", "target", "targets", "value", "fieldSpecs", "generatorOptions",
}

// scan refuses every text that the library would fetch, in whatever field it stands.
func (r *reach) scan(name, field string, value any) {
	switch value := value.(type) {
	case string:
		for _, text := range []string{value, value[strings.Index(value, "=")+1:]} { // files: [key=path]
			if isRemote(text) {
				r.fault(name, "%s: %q is fetched from elsewhere, which is not allowed: add it to the sources of the bundle, and refer to it by its path", field, value)
				return
			}
		}
	case []any:
		for _, item := range value {
			r.scan(name, field, item)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if !slices.Contains(free, key) {
				r.scan(name, joinField(field, key), value[key])
			}
		}
	}
}

// isRemote is wider than what the library takes for a URL or a repository (its loader and its package git).
func isRemote(text string) bool {
	if strings.Contains(text, "\n") {
		return false // a document in place
	}
	lower := strings.ToLower(text)
	user, host, _ := strings.Cut(lower, "@")
	return strings.Contains(lower, "://") || strings.HasPrefix(lower, "git::") || strings.HasPrefix(lower, "gh:") ||
		strings.HasPrefix(lower, "github.com/") || strings.HasPrefix(lower, "github.com:") ||
		host != "" && !strings.Contains(user, "/") && strings.ContainsAny(host, "/:")
}

func (r *reach) fault(file, form string, args ...any) {
	r.faults = append(r.faults, &provisioner.InputError{File: file, Reason: fmt.Sprintf(form, args...)})
}

// texts are the items of a list that are text. Others are the library's to refuse.
func texts(value any) (found []string) {
	items, _ := value.([]any)
	for _, item := range items {
		if text, ok := item.(string); ok {
			found = append(found, text)
		}
	}
	return found
}

func joinField(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}
