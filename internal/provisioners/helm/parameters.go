// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	kjson "sigs.k8s.io/json"

	parser "rukpak.io/rukpak/internal/parse"
)

// What becomes of the files in the folder crds/ of a chart.
const (
	crdsCreateReplace = "CreateReplace" // they are kept as they are in the chart
	crdsCreate        = "Create"        // only those that the cluster has not got are made
	crdsSkip          = "Skip"          // they are left out
)

// Which hooks of a chart are run.
const (
	hooksAll     = "All"
	hooksNoTests = "WithoutTests"
	hooksNone    = "None"
)

// parameters are those of a class.
type parameters struct {
	// Chart is the folder of the content that holds Chart.yaml, or an archive of a chart in the content; "" looks for it.
	Chart string `json:"chart,omitempty"`
	// ReleaseName is what templates see as .Release.Name; "" is the instance's name.
	ReleaseName string `json:"releaseName,omitempty"`
	// CRDs says what becomes of the folder crds/: CreateReplace (default), Create or Skip.
	CRDs string `json:"crds,omitempty"`
	// Hooks says which hooks become tasks: All (default), WithoutTests or None.
	Hooks string `json:"hooks,omitempty"`
	// KubeVersion is what templates see instead of the cluster's version.
	KubeVersion string `json:"kubeVersion,omitempty"`
	// APIVersions are added to those that the cluster serves, such as "monitoring.coreos.com/v1".
	APIVersions []string `json:"apiVersions,omitempty"`
	// DisableSchemaValidation does not check the values against the chart's values.schema.json.
	DisableSchemaValidation bool `json:"disableSchemaValidation,omitempty"`
}

func parseParameters(raw json.RawMessage) (parameters, error) {
	parsed := parameters{CRDs: crdsCreateReplace, Hooks: hooksAll}
	if len(bytes.TrimSpace(raw)) > 0 {
		strict, err := kjson.UnmarshalStrict(raw, &parsed)
		switch {
		case err != nil:
			return parsed, refuse("parameters", "%s", parser.WrongType(err, &parsed))
		case len(strict) > 0:
			var faults []string
			for _, one := range strict {
				faults = append(faults, one.Error())
			}
			slices.Sort(faults)
			return parsed, refuse("parameters", "%s: there are chart, releaseName, crds, hooks, kubeVersion, apiVersions and disableSchemaValidation; "+
				"values stand in the configuration of the instance", strings.Join(faults[:min(len(faults), 5)], ", "))
		}
	}
	return parsed, parsed.check()
}

func (p *parameters) check() error {
	if p.Chart != "" && !fs.ValidPath(p.Chart) {
		return refuse("parameters", "chart is %q: name a folder or an archive of the content by its path from the root, such as charts/web", p.Chart)
	}
	for _, one := range []struct {
		field string
		value string
		known []string
	}{
		{"crds", p.CRDs, []string{crdsCreateReplace, crdsCreate, crdsSkip}},
		{"hooks", p.Hooks, []string{hooksAll, hooksNoTests, hooksNone}},
	} {
		if !slices.Contains(one.known, one.value) {
			return refuse("parameters", "%s is %q: it may be %s", one.field, one.value, strings.Join(one.known, ", "))
		}
	}
	if p.ReleaseName != "" && chartutil.ValidateReleaseName(p.ReleaseName) != nil {
		return refuse("parameters", "releaseName is %q: Helm takes lower case letters, digits, - and ., at most 53 characters", p.ReleaseName)
	}
	if p.KubeVersion != "" {
		if _, err := common.ParseKubeVersion(p.KubeVersion); err != nil {
			return refuse("parameters", "kubeVersion is %q: it is a version such as v1.34.2", p.KubeVersion)
		}
	}
	for i, version := range p.APIVersions {
		if version == "" || strings.ContainsAny(version, " \t\n") {
			return refuse("parameters", "apiVersions[%d] is %q: it is a version such as monitoring.coreos.com/v1", i, version)
		}
	}
	return nil
}

// parseConfig reads the values. They are numbers as in a file of values, whose numbers have no types: Helm reads them the same way.
func parseConfig(raw json.RawMessage) (map[string]any, error) {
	values := map[string]any{}
	if len(bytes.TrimSpace(raw)) == 0 {
		return values, nil
	}
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, refuse("config", "is no JSON object of values: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if values == nil { // null
		values = map[string]any{}
	}
	return values, nil
}
