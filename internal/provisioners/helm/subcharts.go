// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"rukpak.io/rukpak/provisioner"
)

// inner makes the charts in the folder charts/ of a chart, always in the same order.
func (l *chartReader) inner(files []file, shown string, level int) ([]*chart.Chart, error) {
	byChart := map[string][]file{}
	var names []string
	for _, one := range files {
		one.name = strings.TrimPrefix(one.name, "charts/")
		name, _, _ := strings.Cut(one.name, "/")
		if strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") {
			continue // as Helm has it
		}
		if byChart[name] == nil {
			names = append(names, name)
		}
		byChart[name] = append(byChart[name], one)
	}
	slices.Sort(names)
	var made []*chart.Chart
	for _, name := range names {
		at := path.Join(shown, "charts", name)
		if l.charts--; l.charts < 0 || level > maxLevels {
			return nil, refuse(at, "there are more than %d charts in the chart, or more than %d one inside another", maxCharts, maxLevels)
		}
		one, err := l.subchart(byChart[name], name, at, level)
		if err != nil {
			return nil, err
		}
		made = append(made, one)
	}
	slices.SortStableFunc(made, func(a, b *chart.Chart) int {
		return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Metadata.Version, b.Metadata.Version))
	})
	return made, nil
}

func (l *chartReader) subchart(files []file, name, shown string, level int) (*chart.Chart, error) {
	if err := l.ctx.Err(); err != nil {
		return nil, err
	}
	if path.Ext(name) == archiveEnding && len(files) == 1 && files[0].name == name {
		unpacked, err := l.unpack(files[0].data, shown)
		if err != nil {
			return nil, err
		}
		return l.chart(unpacked, shown, level)
	}
	var own []file
	for _, one := range files {
		if rest, found := strings.CutPrefix(one.name, name+"/"); found {
			one.name = rest
			own = append(own, one)
		}
	}
	if len(own) == 0 {
		return nil, refuse(shown, "is no chart, but in the folder of charts: remove it, or name it in .helmignore")
	}
	return l.chart(own, shown, level)
}

// unpack reads an archive of a chart.
func (l *chartReader) unpack(data []byte, shown string) ([]file, error) {
	size, err := unpackedSize(data, l.bytes)
	if err != nil {
		return nil, refuse(shown, "is no archive of a chart: %s", oneLine(err.Error()))
	}
	l.bytes -= size
	if err := l.within(shown); err != nil {
		return nil, err
	}
	unpacked, err := archive.LoadArchiveFiles(bytes.NewReader(data))
	if err != nil {
		return nil, refuse(shown, "is no archive of a chart: %s", oneLine(err.Error()))
	}
	l.files -= len(unpacked)
	files := make([]file, 0, len(unpacked))
	for _, one := range unpacked {
		files = append(files, file{name: one.Name, shown: path.Join(shown, one.Name), data: one.Data})
	}
	return files, l.within(shown)
}

// unpackedSize is the size of what is compressed, or more than most if it is that large.
func unpackedSize(data []byte, most int64) (int64, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	return io.Copy(io.Discard, io.LimitReader(unzipped, most+1))
}

// loadFiles never panics, whatever the library does with what it reads.
func loadFiles(files []*archive.BufferedFile) (made *chart.Chart, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("cannot be read")
		}
	}()
	made, err = loader.LoadFiles(files)
	if err == nil && slices.Contains(made.Metadata.Dependencies, nil) {
		err = errors.New("cannot load Chart.yaml: a dependency is empty")
	}
	return made, err
}

// blame says which file of a chart an error of the library is about; without a better one it is Chart.yaml.
func blame(err error, shown string, files []file) error {
	text := oneLine(err.Error())
	for _, one := range files {
		if rest, found := strings.CutPrefix(text, "cannot load "+one.name+": "); found {
			return &provisioner.InputError{File: one.shown, Line: lineIn(rest), Reason: rest}
		}
	}
	if text == "Chart.yaml file is missing" {
		return refuse(shown, "there is no such file, so that its folder is no chart")
	}
	return &provisioner.InputError{File: shown, Line: lineIn(text), Reason: text}
}

// checkDependencies finds charts that are declared and not there. Nothing is fetched.
func checkDependencies(made *chart.Chart, shown string) error {
	var missing []string
	for _, declared := range made.Metadata.Dependencies {
		if !slices.ContainsFunc(made.Dependencies(), func(c *chart.Chart) bool { return c.Name() == declared.Name }) {
			missing = append(missing, declared.Name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return refuse(path.Join(shown, chartFile), "the dependencies %s are declared but not in the folder charts/: "+
		"put them there by `helm dependency build`, since nothing is fetched", strings.Join(missing, ", "))
}

// checkEnabled finds charts that are declared, switched on and not there, or there in another version only, which Helm leaves
// out without a word. It is asked after conditions and tags were looked at.
func (c *loaded) checkEnabled(made *chart.Chart, faults []*provisioner.InputError) []*provisioner.InputError {
	for _, declared := range made.Metadata.Dependencies {
		// The name of a dependency with an alias is the alias by now, and so is that of its chart.
		if !slices.ContainsFunc(made.Dependencies(), func(c *chart.Chart) bool { return c.Name() == declared.Name }) {
			faults = append(faults, refuse(path.Join(c.root, chartFile), "chart %s: the dependency %s %s is declared and enabled, but not in its folder charts/ in such a version: "+
				"put it there by `helm dependency build`, or disable it", made.ChartFullPath(), declared.Name, declared.Version))
		}
	}
	for _, one := range made.Dependencies() {
		faults = c.checkEnabled(one, faults)
	}
	return faults
}

// checkKubeVersion holds the chart to the versions of Kubernetes that it says it is for.
func (c *loaded) checkKubeVersion(version string) error {
	if wanted := c.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, version) {
		return refuse(path.Join(c.root, chartFile), "kubeVersion: the chart is for Kubernetes %s, and the cluster's version is %s", wanted, version)
	}
	return nil
}
