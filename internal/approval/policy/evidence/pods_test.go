// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/internal/approval/policy"
)

func objects(t *testing.T, texts ...string) (out []*unstructured.Unstructured) {
	t.Helper()
	for _, text := range texts {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, object)
	}
	return out
}

func TestPodSecurityIsTheLevelOfTheLeastStrictPod(t *testing.T) {
	const (
		none       = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`
		restricted = `{apiVersion: v1, kind: Pod, metadata: {name: r}, spec: {securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}},
			containers: [{name: a, image: b, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}`
		privileged = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: p}, spec: {template: {spec: {hostNetwork: true, securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}},
			containers: [{name: a, image: b, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}}}`
	)
	for name, test := range map[string]struct {
		before, after []string
		want          *policy.PodSecurity
	}{
		"no Pods":      {nil, []string{none}, &policy.PodSecurity{}},
		"strict Pods":  {nil, []string{none, restricted}, &policy.PodSecurity{After: "restricted"}},
		"one is worse": {[]string{restricted}, []string{privileged, restricted}, &policy.PodSecurity{Before: "restricted", After: "privileged", Reasons: []string{"DaemonSet p: host namespaces (hostNetwork=true)"}}},
		"it is better": {[]string{privileged}, []string{restricted}, &policy.PodSecurity{Before: "privileged", After: "restricted"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, PodSecurity(objects(t, test.before...), objects(t, test.after...))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
