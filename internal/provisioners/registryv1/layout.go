// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"rukpak.io/rukpak/internal/parse"
	"rukpak.io/rukpak/provisioner"
)

const csvKind = "ClusterServiceVersion"

// root is a folder with one bundle.
type root struct {
	folder    string
	manifests string   // folder of the manifests
	files     []string // manifests, sorted
	others    []string // files beside them that are none
	metadata  string   // folder of the metadata, "" if there is none
	name      string   // of the ClusterServiceVersion, "" if it cannot be told
	version   string
	nested    []string // folders below that of the manifests
}

// layout is what content holds.
type layout struct {
	roots    []root
	packages []packageFile
}

// packageFile is that of the older layout.
type packageFile struct {
	file           string
	Name           string    `json:"packageName"`
	DefaultChannel string    `json:"defaultChannel"`
	Channels       []channel `json:"channels"`
}

type channel struct {
	Name string `json:"name"`
	CSV  string `json:"currentCSV"`
}

// finder looks through content for bundles.
type finder struct {
	ctx     context.Context //nolint:containedctx // of the one call that it lives for
	content fs.FS
	names   []string // all files of YAML and JSON
	all     []string // all files
	left    int64    // bytes that may be read yet
}

// find gives the bundles in content. Which is meant is for choose.
func find(ctx context.Context, content fs.FS) (*layout, error) {
	f := &finder{ctx: ctx, content: content, left: parse.MaxFiles}
	if err := f.list(); err != nil {
		return nil, err
	}
	found := &layout{}
	for _, name := range f.names {
		if isPackageFile(name) {
			pack, err := f.packageFile(name)
			if err != nil {
				return nil, err
			}
			found.packages = append(found.packages, pack)
		}
	}
	var err error
	if found.roots, err = f.annotated(); err != nil {
		return nil, err
	}
	if len(found.roots) == 0 {
		found.roots, err = f.bare()
	}
	if err == nil && len(found.roots) == 0 {
		err = f.nothing()
	}
	return found, err
}

func (f *finder) list() error {
	return fs.WalkDir(f.content, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case f.ctx.Err() != nil:
			return f.ctx.Err()
		case err != nil:
			return fmt.Errorf("list the content: %w", err)
		case name != "." && strings.HasPrefix(path.Base(name), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		}
		f.all = append(f.all, name)
		if isYAML(name) {
			f.names = append(f.names, name)
		}
		return nil
	})
}

func isYAML(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

func isPackageFile(name string) bool {
	base := path.Base(name)
	stem := strings.TrimSuffix(base, path.Ext(base))
	return stem == "package" || strings.HasSuffix(stem, ".package")
}

// isMetadata tells files that say something about a bundle and are no objects.
func isMetadata(name string) bool {
	base := path.Base(name)
	switch strings.TrimSuffix(base, path.Ext(base)) {
	case "annotations", "dependencies", "properties":
		return true
	}
	return isPackageFile(name)
}

// read reads a file within the limit on all of them.
func (f *finder) read(name string) ([]byte, error) {
	if err := f.ctx.Err(); err != nil {
		return nil, err
	}
	data, err := fs.ReadFile(f.content, name)
	if err != nil {
		return nil, fmt.Errorf("read the content: %w", err)
	}
	if f.left -= int64(len(data)); f.left < 0 {
		return nil, refuse(name, "the YAML and JSON files so far are larger than %d MiB: split the content", parse.MaxFiles>>20)
	}
	return data, nil
}

func (f *finder) packageFile(name string) (packageFile, error) {
	pack := packageFile{file: name}
	data, err := f.read(name)
	if err != nil {
		return pack, err
	}
	return pack, decodeFile(f.ctx, name, data, &pack)
}

// annotated are the folders with metadata/annotations.yaml.
func (f *finder) annotated() ([]root, error) {
	var roots []root
	for _, name := range f.names {
		metadata, base := path.Split(name)
		metadata = path.Clean(metadata)
		if path.Base(metadata) != "metadata" || strings.TrimSuffix(base, path.Ext(base)) != "annotations" {
			continue
		}
		folder := path.Dir(metadata)
		annotations, err := readAnnotations(f.ctx, f.content, name)
		if err != nil {
			return nil, err
		}
		manifests, err := annotations.folder(name, folder)
		if err != nil {
			return nil, err
		}
		one := root{folder: folder, manifests: manifests, metadata: metadata}
		f.fill(&one)
		if len(one.files) == 0 && len(one.nested) == 0 {
			return nil, refuse(name, "there are no manifests in %s/: put them there, or say in the annotation %s where they are", manifests, annotationManifests)
		}
		if err := f.identify(&one); err != nil {
			return nil, err
		}
		roots = append(roots, one)
	}
	return roots, nil
}

// bare are the folders with a ClusterServiceVersion, where there is no metadata.
func (f *finder) bare() ([]root, error) {
	var roots []root
	for _, name := range f.names {
		folder := path.Dir(name)
		if slices.ContainsFunc(roots, func(r root) bool { return r.folder == folder }) {
			continue
		}
		one := root{folder: folder, manifests: folder, files: []string{name}}
		if err := f.identify(&one); err != nil {
			return nil, err
		}
		if one.name == "" {
			continue
		}
		one.files = nil
		f.fill(&one)
		one.nested = nil
		roots = append(roots, one)
	}
	return roots, nil
}

// fill sorts the files in the folder of the manifests and below.
func (f *finder) fill(r *root) {
	for _, name := range f.all {
		folder := path.Dir(name)
		switch {
		case folder != r.manifests:
			if r.manifests == "." || strings.HasPrefix(folder, r.manifests+"/") {
				r.nested = append(r.nested, folder)
			}
		case !isYAML(name):
			r.others = append(r.others, name)
		case r.metadata == "" && isMetadata(name):
		default:
			r.files = append(r.files, name)
		}
	}
	r.nested = slices.Compact(r.nested)
}

// identify finds name and version of the ClusterServiceVersion. What is wrong with the files is for load to say.
func (f *finder) identify(r *root) error {
	for _, name := range r.files {
		data, err := f.read(name)
		if err != nil {
			return err
		}
		if !bytes.Contains(data, []byte(csvKind)) {
			continue
		}
		docs, _, err := parse.File(f.ctx, name, data)
		if err != nil {
			return err
		}
		for _, doc := range docs {
			fields, _ := doc.Value.(map[string]any)
			if fields["kind"] != csvKind {
				continue
			}
			metadata, _ := fields["metadata"].(map[string]any)
			spec, _ := fields["spec"].(map[string]any)
			r.name, _ = metadata["name"].(string)
			r.version, _ = spec["version"].(string)
			return nil
		}
	}
	return nil
}

// nothing says what the content is instead of a bundle, as far as that can be told.
func (f *finder) nothing() error {
	for _, name := range f.names {
		data, err := f.read(name)
		if err != nil {
			return err
		}
		if bytes.Contains(data, []byte(csvKind)) {
			docs, faults, err := parse.File(f.ctx, name, data)
			if err != nil {
				return err
			}
			if len(faults) > 0 {
				return provisioner.Join(faults)
			}
			for _, doc := range docs {
				if fields, _ := doc.Value.(map[string]any); fields["kind"] == "ConfigMap" {
					return &provisioner.InputError{File: name, Line: doc.Line, Object: provisioner.Describe(fields), Reason: "holds a bundle in its keys: " +
						"give each key as a file of its own, such as by a source of the kind configMap"}
				}
			}
		}
	}
	return &provisioner.InputError{Reason: "there is no ClusterServiceVersion in any YAML or JSON file, so it is no bundle of OLM: choose a class whose provisioner renders what the content is"}
}

// choose gives the bundle that is meant.
func (l *layout) choose(want choice) (root, error) {
	asked := "version"
	switch {
	case want.Channel != "" && want.Version != "":
		return root{}, refuse("config", "version and channel are both set: set one")
	case want.Version == "" && (want.Channel != "" || len(l.roots) > 1 && len(l.packages) > 0):
		head, err := l.head(want.Channel)
		if err != nil {
			return root{}, err
		}
		want.Version, asked = head.CSV, "channel "+head.Name
	case want.Version == "" && len(l.roots) == 1:
		return l.roots[0], nil
	case want.Version == "":
		return root{}, refuse("config", "the content holds %d bundles: set version to one of %s", len(l.roots), l.versions())
	}
	return l.named(want.Version, asked)
}

// named gives the bundle of a version, of a ClusterServiceVersion or in a folder of that name.
func (l *layout) named(version, asked string) (root, error) {
	var found []root
	for _, one := range l.roots {
		if version == one.version || version == one.name || version == path.Base(one.folder) {
			found = append(found, one)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return root{}, refuse("config", "%s: there is no bundle %q: there are %s", asked, version, l.versions())
	}
	return root{}, refuse("config", "%s: there are several bundles %q, in %s and %s: give the name of the ClusterServiceVersion, or remove one",
		asked, version, found[0].folder, found[1].folder)
}

func (l *layout) versions() string {
	var names []string
	for _, one := range l.roots {
		switch {
		case one.version != "":
			names = append(names, one.version)
		case one.name != "":
			names = append(names, one.name)
		default:
			names = append(names, path.Base(one.folder))
		}
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) < len(names) { // a version that several have names none of them
		names = names[:0]
		for _, one := range l.roots {
			names = append(names, path.Base(one.folder))
		}
		slices.Sort(names)
	}
	return listed(names)
}

// head is the channel that is meant, or the default one.
func (l *layout) head(name string) (channel, error) {
	switch len(l.packages) {
	case 0:
		return channel{}, refuse("config", "channel: the content has no package file (package.yaml), which would say what is in the channel: set version instead")
	case 1:
	default:
		return channel{}, refuse(l.packages[1].file, "there is a package file in %s already: keep one, or set version", l.packages[0].file)
	}
	pack := l.packages[0]
	if name == "" {
		name = pack.DefaultChannel
	}
	if name == "" && len(pack.Channels) == 1 {
		name = pack.Channels[0].Name
	}
	var names []string
	for _, one := range pack.Channels {
		if one.Name == name && one.CSV != "" {
			return one, nil
		}
		names = append(names, one.Name)
	}
	if name == "" {
		return channel{}, refuse(pack.file, "there is no defaultChannel: set one, or choose a channel (%s) in the configuration", listed(names))
	}
	return channel{}, refuse(pack.file, "there is no channel %q with a currentCSV: there are %s", name, listed(names))
}

// listed names the first ones and counts the others.
func listed(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
