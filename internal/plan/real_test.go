// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/provisioners/plain"
	"rukpak.io/rukpak/internal/testenv/realinput"
	"rukpak.io/rukpak/provisioner"
)

// rendered are the objects of a folder, ready to be encoded and activated.
func (s *stage) rendered(name string) objects {
	s.Helper()
	result, err := plain.New().Render(s.Context(), provisioner.Request{
		Instance: types.NamespacedName{Namespace: s.namespace, Name: "shop"}, Content: os.DirFS(realinput.Path(s, name)),
	})
	if err != nil {
		s.Fatal(err)
	}
	return manifest.Set{Phases: result.Phases}.Objects()
}

func (s *stage) deleteAll(all objects) {
	for _, object := range s.in(all) {
		_ = s.admin.Delete(context.Background(), object) // to leave nothing behind; most is gone with the namespace
	}
}

func TestPlanOfRealInput(t *testing.T) {
	for _, versions := range [][]string{
		{"plain/prometheus-operator-bundle/v0.55.0"},
		{"plain/gateway-api-experimental/v1.0.0", "plain/gateway-api-experimental/v1.1.1", "plain/gateway-api-experimental/v1.0.0"},
		{"kops/addons"},
	} {
		t.Run(strings.ReplaceAll(versions[0], "/", "_"), func(t *testing.T) {
			s := newStage(t)
			s.crds, _ = crdsafety.ParsePolicy("Warn", nil) // its releases add rules in CEL
			var old objects
			for _, version := range versions {
				next := s.rendered(version)
				t.Cleanup(func() { s.deleteAll(next) })
				s.options.Earlier = nil
				started := time.Now()
				p := s.plan(old, next)
				t.Logf("%s: %s, in %s", version, p.Summary(), time.Since(started).Round(time.Millisecond))
				// A new version of one definition drops a version that the API server has stored objects in: it cannot be
				// changed to that, only made anew.
				if problems := p.ProblemLines(); len(problems) == 1 && strings.Contains(problems[0], "backendtlspolicies") && strings.Contains(problems[0], "storedVersions") {
					s.options.RecreateImmutable = true
					p = s.plan(old, next)
				}
				if problems := p.ProblemLines(); len(problems) > 0 {
					t.Errorf("problems: %s", strings.Join(problems, "\n"))
				}
				s.activate(next...)
				if again := s.plan(nil, next); len(again.Changes) > 0 {
					t.Errorf("after activation: %s: %+v", again.Summary(), told(again.Changes[0]))
				}
				old = next
			}
		})
	}
}
