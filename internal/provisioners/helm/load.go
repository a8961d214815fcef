// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/ignore"

	"rukpak.io/rukpak/provisioner"
)

const valuesFile = "values.yaml"

var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}

// file is one of a chart: its path in the chart and in the content, of which the latter is for people. What comes from an
// archive has the archive's path before its own.
type file struct {
	name, shown string
	data        []byte
}

// loaded is a chart in memory.
type loaded struct {
	*chart.Chart
	root string                  // of the chart in the content, for people
	from map[*common.File]string // where templates and files are in the content, for people
}

// chartReader reads one chart within limits.
type chartReader struct {
	ctx     context.Context //nolint:containedctx // it lives as long as one call
	content fs.FS
	rules   *ignore.Rules
	files   int   // that may yet be read
	bytes   int64 // that may yet be read
	charts  int   // that may yet be found in charts
	from    map[*common.File]string
}

// load reads the chart that the content holds or the parameters name, with all charts in it.
func load(ctx context.Context, content fs.FS, parameters parameters) (*loaded, error) {
	where, err := find(ctx, content, parameters.Chart)
	if err != nil {
		return nil, err
	}
	l := &chartReader{ctx: ctx, content: content, files: maxFiles, bytes: maxBytes, charts: maxCharts, from: map[*common.File]string{}}
	files, err := l.read(where)
	if err != nil {
		return nil, err
	}
	made, err := l.chart(files, where, 0)
	if err != nil {
		return nil, err
	}
	if made.Metadata.Type == "library" {
		return nil, refuse(path.Join(where, chartFile), "the chart is a library, which others use and which renders nothing")
	}
	if err := checkDependencies(made, where); err != nil {
		return nil, err
	}
	return &loaded{Chart: made, root: where, from: l.from}, nil
}

// read gives the files of a folder or an archive.
func (l *chartReader) read(where string) ([]file, error) {
	info, err := fs.Stat(l.content, where)
	if err != nil {
		return nil, fmt.Errorf("read the content: %w", err)
	}
	if !info.IsDir() {
		data, err := l.readFile(where, info.Size())
		if err != nil {
			return nil, err
		}
		return l.unpack(data, where)
	}
	if err := l.readRules(where); err != nil {
		return nil, err
	}
	var files []file
	err = l.walk(where, "", 0, func(name string, info fs.FileInfo) error {
		shown := path.Join(where, name)
		data, err := l.readFile(shown, info.Size())
		files = append(files, file{name: name, shown: shown, data: bytes.TrimPrefix(data, byteOrderMark)})
		return err
	})
	return files, err
}

// readRules reads what the chart wants left out. Only the file at the top counts, as Helm has it.
func (l *chartReader) readRules(where string) error {
	l.rules = ignore.Empty()
	name := path.Join(where, ignore.HelmIgnore)
	info, err := fs.Stat(l.content, name)
	switch {
	case err == nil && info.Mode().IsRegular():
		data, err := l.readFile(name, info.Size())
		if err != nil {
			return err
		}
		if l.rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return refuse(name, "%s", oneLine(err.Error()))
		}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read the content: %w", err)
	}
	l.rules.AddDefaults()
	return nil
}

// walk visits the files below a folder in the order of their names. Links are followed, as far as the content lets them.
func (l *chartReader) walk(root, dir string, depth int, visit func(name string, info fs.FileInfo) error) error {
	at := path.Join(root, dir)
	if depth > maxDepth {
		return refuse(at, "folders are more than %d deep, or a link leads to a folder around it", maxDepth)
	}
	entries, err := fs.ReadDir(l.content, at)
	if err != nil {
		return fmt.Errorf("list the content: %w", err)
	}
	for _, entry := range entries {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		name := path.Join(dir, entry.Name())
		info, err := l.info(path.Join(root, name), entry)
		if err != nil {
			return err
		}
		switch {
		case l.rules.Ignore(name, info):
		case info.IsDir():
			err = l.walk(root, name, depth+1, visit)
		case info.Mode().IsRegular():
			err = visit(name, info)
		default:
			err = refuse(path.Join(root, name), "is neither file nor folder: remove it, or name it in .helmignore")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *chartReader) info(shown string, entry fs.DirEntry) (fs.FileInfo, error) {
	if entry.Type()&fs.ModeSymlink == 0 {
		info, err := entry.Info()
		if err != nil {
			return nil, fmt.Errorf("list the content: %w", err)
		}
		return info, nil
	}
	info, err := fs.Stat(l.content, shown)
	if err != nil {
		return nil, refuse(shown, "is a link that leads nowhere or out of the content: remove it, or put there what it should lead to")
	}
	return info, nil
}

func (l *chartReader) readFile(shown string, size int64) ([]byte, error) {
	l.files--
	l.bytes -= size
	if err := l.within(shown); err != nil {
		return nil, err
	}
	data, err := fs.ReadFile(l.content, shown)
	if err != nil {
		return nil, fmt.Errorf("read the content: %w", err)
	}
	if over := int64(len(data)) - size; over > 0 {
		l.bytes -= over
	}
	return data, l.within(shown)
}

func (l *chartReader) within(shown string) error {
	switch {
	case l.files < 0:
		return refuse(shown, "the chart has more than %d files: name those that it does not need in .helmignore", maxFiles)
	case l.bytes < 0:
		return refuse(shown, "the files of the chart are larger than %d MiB: name those that it does not need in .helmignore", maxBytes>>20)
	}
	return nil
}

// chart makes a chart of its files, and of those in its folder charts/ likewise. shown is its folder or archive.
func (l *chartReader) chart(files []file, shown string, level int) (*chart.Chart, error) {
	var own []*archive.BufferedFile
	var inner []file
	var values *file
	at := path.Join(shown, chartFile)
	for _, one := range files {
		if strings.HasPrefix(one.name, "charts/") && path.Ext(one.name) != ".prov" {
			inner = append(inner, one)
			continue
		}
		switch {
		case one.name == chartFile:
			at = one.shown
		case one.name == valuesFile && !bytes.Contains(one.data, []byte("---")):
			values = &one // which the library reads by a detour
			continue
		}
		own = append(own, &archive.BufferedFile{Name: one.name, Data: one.data})
	}
	made, err := loadFiles(own)
	if err != nil {
		return nil, blame(err, at, files)
	}
	if values != nil {
		if made.Values, err = parseValues(values.data); err != nil {
			text := oneLine(err.Error())
			return nil, &provisioner.InputError{File: values.shown, Line: lineIn(text), Reason: text}
		}
	}
	l.remember(made, files)
	subcharts, err := l.inner(inner, shown, level+1)
	if err != nil {
		return nil, err
	}
	made.SetDependencies(subcharts...)
	return made, nil
}

// remember keeps where the files of a chart are, to name them in errors.
func (l *chartReader) remember(made *chart.Chart, files []file) {
	shown := make(map[string]string, len(files))
	for _, one := range files {
		shown[one.name] = one.shown
	}
	for _, list := range [][]*common.File{made.Templates, made.Files} {
		for _, one := range list {
			l.from[one] = shown[one.Name]
		}
	}
}
