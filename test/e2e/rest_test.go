// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	"rukpak.io/rukpak/api/v1alpha1"
)

// writes counts the write requests for RukPak's kinds, Secrets, Events and
// ConfigMaps that the API server has answered.
func writes(t *testing.T) string {
	t.Helper()
	metrics, err := env.Cluster.Kubectl(t.Context(), "get", "--raw", "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(metrics) {
		// The deletion of namespaces of other tests writes in scope "namespace", and is refused ConfigMaps.
		if !strings.HasPrefix(line, "apiserver_request_total") || !strings.Contains(line, `scope="resource"`) || strings.Contains(line, `code="403"`) {
			continue
		}
		write := false
		for _, verb := range []string{"POST", "PUT", "PATCH", "APPLY", "DELETE"} {
			write = write || strings.Contains(line, `verb="`+verb+`"`)
		}
		for _, resource := range []string{"configmaps", "secrets", "events", "bundles", "bundleinstances", "instancerevisions", "approvals", "provisionerclasses"} {
			if write && strings.Contains(line, `resource="`+resource+`"`) {
				lines = append(lines, line)
			}
		}
	}
	return strings.Join(lines, "")
}

func TestAtRestNothingIsWritten(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.instance("app", a.push("v1", many("v1", 10)))
	a.ready("app")
	// What other tests left is removed meanwhile, so not the first window counts but the first quiet one.
	var before, after string
	for range 6 {
		before = writes(t)
		time.Sleep(10 * time.Second)
		if after = writes(t); after == before {
			return
		}
	}
	t.Errorf("no 10 s without a write; before the last:\n%s\nafter it:\n%s", before, after)
}
