// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"strings"
	"testing"

	"rukpak.io/rukpak/internal/testenv/rendered"
	"rukpak.io/rukpak/provisioner"
)

func TestRealChartsRenderAsHelmDoes(t *testing.T) {
	for name, sets := range map[string][]string{
		"podinfo/6.5.4":  {"{}", "replicaCount: 3\ningress: {enabled: true}\nhpa: {enabled: true, maxReplicas: 5}\nredis: {enabled: true}\n"},
		"podinfo/6.7.1":  {"{}", "serviceMonitor: {enabled: true}\ncertificate: {create: true}\nlinkerd: {profile: {enabled: true}}\n"},
		"podinfo/6.11.2": {"{}", "serviceAccount: {enabled: true}\nui: {message: \"it's: {{ a }}\"}\nresources: {limits: {cpu: 2, memory: 1Gi}}\n"},
		"ingress-nginx/4.14.5": {
			"{}", "controller:\n  kind: DaemonSet\n  metrics: {enabled: true, serviceMonitor: {enabled: true}}\n  replicaCount: 2\n  config: {use-gzip: true, worker-processes: 10000000}\n",
			"controller: {kind: Both, autoscaling: {enabled: true}, admissionWebhooks: {certManager: {enabled: true}}}\ndefaultBackend: {enabled: true}\ntcp: {8080: 'a/b:80'}\n",
		},
		"ingress-nginx/4.15.1":  {"{}", "controller: {admissionWebhooks: {enabled: false}, service: {internal: {enabled: true, annotations: {a: b}}}}\n"},
		"alertmanager/head":     {"{}", "replicaCount: 3\nconfig: {route: {receiver: x}}\nconfigmapReload: {enabled: true}\npodDisruptionBudget: {maxUnavailable: 1}\ntestFramework: {enabled: true}\n"},
		"metrics-server/3.12.2": {"{}", "tls: {type: helm}\nreplicas: 2\n"},
		"metrics-server/3.13.1": {"{}", "apiService: {insecureSkipTLSVerify: false}\naddonResizer: {enabled: true}\n"},
		"crds-dir/v1":           {"{}"},
		"crds-dir/v2":           {"{}"},
	} {
		for _, set := range sets {
			t.Run(name+"/"+strings.SplitN(set, "\n", 2)[0], func(t *testing.T) {
				dir, values := sharedChart(t, name), valuesOf(t, set)
				want, err := templated(dir, values, false)
				if err != nil {
					t.Fatal(err)
				}
				result, err := New().Render(t.Context(), request(t, dir, values))
				if err != nil {
					t.Fatal(err)
				}
				objects := objectsOf(t, want)
				if len(objects) == 0 {
					t.Fatal("helm renders nothing, so that nothing is compared")
				}
				if diff := rendered.Differences(objects, ours(t, result)); diff != "" {
					t.Error(diff)
				}
				if !strings.HasPrefix(strings.TrimSpace(want.Info.Notes), strings.TrimSuffix(result.Notes, "\n...")) {
					t.Errorf("notes are %q, those of helm %q", result.Notes, want.Info.Notes)
				}
			})
		}
	}
}

// TestEdgesRenderAsHelmDoesOrAreRefused has the charts that Helm's own tests are made of.
func TestEdgesRenderAsHelmDoesOrAreRefused(t *testing.T) {
	for _, tc := range []struct{ name, values, refused string }{
		{"chart-missing-deps", "", "Chart.yaml: the dependencies reqsubchart2 are declared but not in the folder charts/"},
		{"chart-with-lib-dep", "", ""},
		{"chart-with-only-crds", "", ""},
		{"chart-with-schema-and-subchart", "", "config: subchart-with-schema: chart subchart-with-schema: missing property 'age'"},
		{"chart-with-schema-and-subchart", "{firstname: a, lastname: b, subchart-with-schema: {age: 3}}", "Chart.yaml: the chart renders no object"},
		{"chart-with-subchart-update", "", "Chart.yaml: the chart renders no object"},
		{"chart-with-template-with-invalid-yaml", "", "templates/alpine-pod.yaml: renders to invalid YAML: yaml: line 11: could not find expected ':'"},
		{"frobnitz_backslash_archive", "", "frobnitz_backslash-1.2.3.tgz/templates/template.tpl: renders to text, which is no object"},
		{"frobnitz_with_bom", "", "templates/template.tpl: renders to text, which is no object"},
		{"frobnitz_with_symlink", "", "templates/template.tpl: renders to text, which is no object"},
		{"issue-7233", "", "Chart.yaml: the dependencies alpine are declared but not in the folder charts/"},
		{"issue-9027", "", "charts/subchart/templates/values.yaml: renders to an object that is not complete: there is no apiVersion"},
		{"object-order", "", ""},
		{"subchart", "", ""},
		{"subchart", "{tags: {front-end: false}}", ""},
		{"subchart", "{subcharta: {enabled: false}}", ""},
	} {
		t.Run(tc.name+"/"+tc.values, func(t *testing.T) {
			dir, values := sharedChart(t, "edge/"+tc.name), valuesOf(t, tc.values)
			result, err := New().Render(t.Context(), request(t, dir, values))
			want, helmErr := templated(dir, values, false)
			t.Logf("ours %v\nhelm: %v", err, helmErr)
			if tc.refused != "" {
				if !provisioner.IsInputError(err) || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("got %v, want %q", err, tc.refused)
				}
				return
			}
			if err != nil || helmErr != nil {
				t.Fatalf("ours %v, helm %v", err, helmErr)
			}
			if diff := rendered.Differences(objectsOf(t, want), ours(t, result)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
