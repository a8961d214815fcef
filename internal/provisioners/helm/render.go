// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"

	"rukpak.io/rukpak/provisioner"
)

const notesFile = "NOTES.txt"

// render runs the chart's templates with the values and makes objects of what they write.
func render(ctx context.Context, req provisioner.Request, parameters parameters, c *loaded, values map[string]any) (provisioner.Result, error) {
	schema := c.Schema // of the chart as it is, before its name or its dependencies change
	if err := chartutil.ProcessDependencies(c.Chart, values); err != nil {
		return provisioner.Result{}, refuse("config", "the dependencies of the chart cannot be chosen: %s", oneLine(err.Error()))
	}
	if faults := c.checkEnabled(c.Chart, nil); len(faults) > 0 {
		return provisioner.Result{}, provisioner.Join(faults[:min(len(faults), maxFaults)])
	}
	capabilities, err := parameters.capabilities(req.Cluster)
	if err != nil {
		return provisioner.Result{}, err
	}
	if err := c.checkKubeVersion(capabilities.KubeVersion.String()); err != nil {
		return provisioner.Result{}, err
	}
	release, err := parameters.release(req)
	if err != nil {
		return provisioner.Result{}, err
	}
	top, err := util.ToRenderValuesWithSchemaValidation(c.Chart, values, release, capabilities, true)
	if err != nil {
		return provisioner.Result{}, refuse("config", "%s", oneLine(err.Error()))
	}
	if !parameters.DisableSchemaValidation {
		if err := c.checkValues(top); err != nil {
			return provisioner.Result{}, err
		}
	}
	w := newWatch(ctx)
	written, err := c.run(w, req, top)
	if err != nil {
		return provisioner.Result{}, err
	}
	result, err := c.result(w, req, parameters, written, release.Namespace)
	if err == nil && json.Valid(schema) {
		result.ConfigSchema = schema
	}
	return result, err
}

// capabilities are what templates see of the cluster; without one, what `helm template` sees.
func (p *parameters) capabilities(cluster provisioner.Cluster) (*common.Capabilities, error) {
	capabilities := common.DefaultCapabilities.Copy()
	if version := cmp.Or(p.KubeVersion, cluster.Version); version != "" {
		parsed, err := common.ParseKubeVersion(version)
		if err != nil {
			return nil, fmt.Errorf("the cluster's version is %q: %w", version, err)
		}
		capabilities.KubeVersion = *parsed
	}
	if len(cluster.APIs) > 0 {
		capabilities.APIVersions = cluster.APIs
	}
	capabilities.APIVersions = slices.Concat(capabilities.APIVersions, p.APIVersions)
	return capabilities, nil
}

func (p *parameters) release(req provisioner.Request) (common.ReleaseOptions, error) {
	name := cmp.Or(p.ReleaseName, req.Instance.Name)
	if chartutil.ValidateReleaseName(name) != nil {
		return common.ReleaseOptions{}, refuse("parameters", "the release would be called %q after the instance, but Helm takes lower case letters, digits, - and ., "+
			"at most 53 characters: name it by the parameter releaseName of the class, or call the instance otherwise", name)
	}
	return common.ReleaseOptions{
		Name: name, Namespace: req.Instance.Namespace, Revision: int(max(req.Revision, 1)), IsInstall: !req.Upgrade, IsUpgrade: req.Upgrade,
	}, nil
}

// run gives what templates write, by the names that the engine has for them.
func (c *loaded) run(w *watch, req provisioner.Request, top common.Values) (map[string]string, error) {
	if err := c.watch(w, c.Chart, map[*common.File]bool{}); err != nil {
		return nil, err
	}
	functions := w.functions()
	functions["lookup"] = w.lookup(req.Reader)
	written, err := engine.Engine{CustomTemplateFuncs: functions}.RenderWithContext(w.ctx, c.Chart, top)
	if err != nil {
		return nil, w.fault(w.ctx, err)
	}
	total := 0
	for name, text := range written {
		if total += len(text); len(text) > maxText || total > maxOutput {
			return nil, refuse(w.shown[name], "the templates render more than %d MiB, or one of them more than %d MiB", maxOutput>>20, maxText>>20)
		}
	}
	return written, w.ctx.Err()
}

// watch puts calls into the templates of a chart and of those in it.
func (c *loaded) watch(w *watch, one *chart.Chart, done map[*common.File]bool) error {
	for _, file := range one.Templates {
		shown := cmp.Or(c.from[file], file.Name)
		w.shown[path.Join(one.ChartFullPath(), file.Name)] = shown
		if done[file] { // it is there under an alias as well
			continue
		}
		done[file] = true
		woven, ok := watched(string(file.Data), len(w.files))
		if !ok {
			return refuse(shown, "has more than %d blocks one inside another", maxNesting)
		}
		w.files = append(w.files, shown)
		file.Data = []byte(woven)
	}
	for _, inner := range one.Dependencies() {
		if err := c.watch(w, inner, done); err != nil {
			return err
		}
	}
	return nil
}

// takeNotes takes the notes out of what was written, as Helm does: those of the chart itself are shown, others are not.
func (c *loaded) takeNotes(written map[string]string) string {
	notes := strings.TrimSpace(written[path.Join(c.Name(), "templates", notesFile)])
	for name := range written {
		if strings.HasSuffix(name, notesFile) {
			delete(written, name)
		}
	}
	return notes
}
