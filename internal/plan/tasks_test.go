// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/plan"
	"rukpak.io/rukpak/provisioner"
)

func (s *stage) task(name, moment string, all ...string) provisioner.Phase {
	s.Helper()
	phase := provisioner.Phase{Name: name, On: []provisioner.Moment{provisioner.Moment(moment)}}
	for _, text := range all {
		phase.Objects = append(phase.Objects, s.in(objects{parse(s, text)})...)
	}
	return phase
}

func TestTasksThatWouldRunAreToldAndCountedApart(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.account = s.env.ServiceAccount(t, s.namespace, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"},
	})
	pod := func(name, image string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: " + name + "}, spec: {containers: [{name: main, image: \"" + image + "\"}]}}"
	}
	// The earlier run left one object; another has its name from somebody else.
	s.moment = provisioner.OnUpgrade
	earlier := s.options
	earlier.Tasks = activate.Tasks{Moment: provisioner.OnInstall, Run: "earlier"}
	left := s.task("p", "Install", "{apiVersion: v1, kind: ConfigMap, metadata: {name: left}}")
	if result := s.engine.Apply(t.Context(), s.admin, s.owner, []provisioner.Phase{left}, earlier); !result.Complete {
		t.Fatal(result)
	}
	other := earlier
	if result := s.engine.Apply(t.Context(), s.admin, ownership.Owner{UID: "uid-other", Namespace: s.namespace, Name: "other"},
		[]provisioner.Phase{s.task("p", "Install", "{apiVersion: v1, kind: ConfigMap, metadata: {name: taken}}")}, other); !result.Complete {
		t.Fatal(result)
	}
	s.tasks = []provisioner.Phase{
		s.task("before", "Upgrade", pod("migrate", "example.com/migrate:1"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: left}}"),
		s.task("after", "Upgrade",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: taken}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: wrong, annotations: {rukpak.io/delete-task: Never}}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: left}}"),
		s.task("test", "Test", pod("try", "example.com/try:1")),
		s.task("goodbye", "Teardown", "{apiVersion: v1, kind: Service, metadata: {name: goodbye}}"),
	}
	p := s.plan(nil, objects{configMap(t, "state", "{a: b}")})
	if diff := cmp.Diff(plan.Counts{Add: 1, Run: 4, Conflict: 1, Problems: 2}, p.Counts); diff != "" {
		t.Errorf("(-want +got):\n%s\n%+v", diff, p.Changes)
	}
	for _, change := range p.Changes {
		task := change.Phase == "before" || change.Phase == "after"
		if got := strings.Join(change.On, " "); task && got != "Upgrade" || !task && got != "" {
			t.Errorf("%s %s of phase %q is run at %q", change.Action, change.ID(), change.Phase, got)
		}
	}
	if got := p.Summary(); got != "1 to add, 0 to change, 0 to remove, 0 unchanged, 4 tasks to run, 1 conflict, 2 problems" {
		t.Errorf("the summary is %q", got)
	}
	if diff := cmp.Diff([]string{"example.com/migrate:1", "example.com/try:1"}, p.Images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	missing := strings.Join(p.Missing, "\n")
	if !strings.Contains(missing, "pods") || !strings.Contains(missing, "services") || len(p.Missing) != 2 {
		t.Errorf("the account lacks, by the plan: %v", p.Missing)
	}
	var text bytes.Buffer
	if err := plan.Render(&text, p, plan.RenderOptions{Width: 200}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"> ConfigMap " + s.namespace + "/left (task of phase before; the one of an earlier run is deleted first)",
		"> Pod " + s.namespace + "/migrate (task of phase before)",
		"! ConfigMap " + s.namespace + "/taken", "belongs to BundleInstance " + s.namespace + "/other; a task never takes",
		`annotation rukpak.io/delete-task: "Never" is none of BeforeRun, Succeeded and Failed`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}

	s.moment = provisioner.OnInstall
	if p := s.plan(nil, objects{configMap(t, "state", "{a: b}")}); p.Counts.Run != 0 || p.Counts.Add != 1 {
		t.Errorf("at another moment: %s", p.Summary())
	}
}

func TestWhatATaskIsNowIsNotPruned(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.activate(configMap(t, "x", "{a: b}"))
	s.moment = provisioner.OnUpgrade
	s.tasks = []provisioner.Phase{s.task("later", "Test", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")}
	if p := s.plan(objects{configMap(t, "x", "{a: b}")}, objects{configMap(t, "y", "{a: b}")}); p.Counts.Remove != 0 {
		t.Errorf("%s: %+v", p.Summary(), p.Changes)
	}
}
