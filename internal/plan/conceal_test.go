// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/internal/identity"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/plan"
	"rukpak.io/rukpak/provisioner"
)

// counted is an account whose views are counted.
type counted struct {
	plan.Account
	asked atomic.Int64
}

func (c *counted) May(ctx context.Context, verb string, kind schema.GroupKind, namespace, name string) (bool, error) {
	c.asked.Add(1)
	return c.Account.May(ctx, verb, kind, namespace, name)
}

// concealed computes a plan as an administrator for an account that may do what the rules say.
func (s *stage) concealed(old, new objects, rules ...rbacv1.PolicyRule) (*plan.Plan, *counted) {
	s.Helper()
	weak := &counted{Account: plan.Account{
		Reviewer: identity.NewReviewer(s.admin), Mapper: s.admin.RESTMapper(), Namespace: s.namespace, Name: s.env.ServiceAccount(s.T, s.namespace, rules...),
	}}
	config := s.env.Config()
	config.Wrap(s.sent.wrap)
	p, err := plan.Compute(s.Context(), plan.Input{
		Client: newClient(s, config), Engine: s.engine, Owner: s.owner, Options: s.options, Prune: true, CRDs: s.crds,
		Phases: provisioner.ByKind(s.in(new)), Older: provisioner.ByKind(s.in(old)), Weaker: weak, Installer: "admins/strong",
	})
	if err != nil {
		s.Fatal(err)
	}
	if len(s.sent.writes) > 0 {
		s.Errorf("a plan has written: %v", s.sent.writes)
	}
	return p, weak
}

// text is all that can be read of a plan: what is stored, and what is shown.
func (s *stage) text(p *plan.Plan) string {
	s.Helper()
	encoded, err := p.Encode()
	if err != nil {
		s.Fatal(err)
	}
	var shown bytes.Buffer
	if err := plan.Render(&shown, p, plan.RenderOptions{}); err != nil {
		s.Fatal(err)
	}
	return string(encoded) + shown.String() + strings.Join(p.ProblemLines(), "\n")
}

func get(group, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"get"}}
}

func TestPlanAsTheInstallerTellsWhatTheAccountMayRead(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.activate(configMap(t, "a", "{k: old}"))
	p, _ := s.concealed(nil, objects{configMap(t, "a", "{k: new}")}, get("", "configmaps"))
	if got := told(s.change(p, "ConfigMap", "a")); len(got) != 1 || got[0] != `data.k: "old" -> "new"` {
		t.Errorf("fields %q", got)
	}
	if p.Installer != "admins/strong" {
		t.Errorf("the installer is %q", p.Installer)
	}
	want := fmt.Sprintf("create,delete,patch configmaps in namespace %q", s.namespace)
	if len(p.MissingForHealing) != 1 || p.MissingForHealing[0] != want {
		t.Errorf("missing for healing: %q, want %q", p.MissingForHealing, want)
	}
}

// The attack: a tenant has content planned that has objects of others in it, and reads the plan.
func TestPlanAsTheInstallerLeaksNothingThatTheAccountMayNotRead(t *testing.T) {
	t.Parallel()
	for _, adoption := range []ownership.Adoption{ownership.AdoptNever, ownership.AdoptUnowned, ownership.AdoptForce} {
		t.Run(string(adoption), func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.options.Adoption = adoption
			other := s.env.NewNamespace(t)
			live := set(configMap(t, "theirs", "{token: c4n4ry, guess: right, c4n4ry: x}"), other, "metadata", "namespace")
			selector := set(deployment(t, "theirs", "example.com/c4n4ry:1"), other, "metadata", "namespace")
			selector = set(selector, map[string]any{"app": "c4n4ry"}, "spec", "selector", "matchLabels")
			selector = set(selector, map[string]any{"app": "c4n4ry"}, "spec", "template", "metadata", "labels")
			for _, object := range []*unstructured.Unstructured{live, selector} {
				if err := s.admin.Create(t.Context(), object.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			guess := func(value string) string {
				mine := set(configMap(t, "theirs", "{guess: "+value+"}"), other, "metadata", "namespace")
				p, _ := s.concealed(nil, objects{mine, set(deployment(t, "theirs", "example.com/mine:1"), other, "metadata", "namespace")}, get("", "configmaps"), get("apps", "deployments"))
				text := s.text(p)
				if strings.Contains(text, "c4n4ry") {
					t.Errorf("the plan tells what is live: %s", text)
				}
				change := s.change(p, "ConfigMap", "theirs")
				return fmt.Sprintf("%s %v %d", change.Action, told(change), change.MoreFields)
			}
			if right, wrong := guess("right"), guess("wrong"); right != wrong {
				t.Errorf("the plan tells a right guess from a wrong one: %s, %s", right, wrong)
			}
		})
	}
}

func TestPlanNamesFieldsOfWhatTheInstanceOwnsWithoutTheirValues(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.activate(configMap(t, "a", "{k: c4n4ry, c4n4ry: x}"))
	p, _ := s.concealed(objects{configMap(t, "a", "{k: c4n4ry, c4n4ry: x}")}, objects{configMap(t, "a", "{k: new}")})
	change := s.change(p, "ConfigMap", "a")
	if got := told(change); len(got) != 1 || got[0] != `data.k: "(redacted)" -> "(redacted)"` || !change.Fields[0].Redacted {
		t.Errorf("fields %q", got)
	}
	if text := s.text(p); strings.Contains(text, "c4n4ry") || !strings.Contains(text, "what is live is not told") {
		t.Errorf("the plan is %s", text)
	}
}

func TestRefusalsOfTheInstallerDoNotQuoteWhatTheAccountMayNotRead(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"c4n4ry.example.com"}, Resources: []string{"x"}, Verbs: []string{"get"}}}}
	if err := s.admin.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.admin.Delete(context.Background(), role) })
	binding := parse(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: `+s.namespace+`}, subjects: []}`)
	strong := s.env.ServiceAccount(t, s.namespace, rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"*"}})
	config := s.env.Config()
	config.Impersonate.UserName = identity.User(s.namespace, strong)
	config.Impersonate.Groups = []string{"system:authenticated"}
	for name, see := range map[string]bool{"weak": false, "seeing": true} {
		weak := plan.Account{Reviewer: identity.NewReviewer(s.admin), Mapper: s.admin.RESTMapper(), Namespace: s.namespace}
		if rules := []rbacv1.PolicyRule{get(rbacv1.GroupName, "rolebindings"), get(rbacv1.GroupName, "clusterroles")}; see {
			weak.Name = s.env.ClusterServiceAccount(t, s.namespace, rules...)
		} else {
			weak.Name = s.env.ServiceAccount(t, s.namespace, rules...)
		}
		p, err := plan.Compute(t.Context(), plan.Input{
			Client: newClient(s, config), Engine: s.engine, Owner: s.owner, Options: s.options, Phases: provisioner.ByKind(s.in(objects{binding})), Weaker: weak,
		})
		if err != nil {
			t.Fatal(err)
		}
		change := s.change(p, "RoleBinding", "b")
		if change.Problem == nil || strings.Contains(change.Problem.Message, "c4n4ry") != see {
			t.Errorf("%s: the problem is %+v", name, change.Problem)
		}
	}
}

func TestFindingsAboutDefinitionsDoNotQuoteCustomResourcesThatTheAccountMayNotList(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	crd := widgets(t, s.namespace)
	s.activate(crd)
	t.Cleanup(func() { _ = s.admin.Delete(context.Background(), crd) })
	other := s.env.NewNamespace(t)
	s.activate(crd, set(widget(t, s.namespace, "c4n4ry"), other, "metadata", "namespace")) // the engine waits for the definition
	changed := crd.DeepCopy()
	versions, _, _ := unstructured.NestedSlice(changed.Object, "spec", "versions")
	size := versions[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)["spec"].(map[string]any)["properties"].(map[string]any)["size"].(map[string]any)
	size["minimum"] = int64(5)
	changed = set(changed, versions, "spec", "versions")

	open := s.plan(objects{crd}, objects{changed})
	if !strings.Contains(s.text(open), "c4n4ry") {
		t.Fatalf("the plan names no custom resource, so this test says nothing: %s", s.text(open))
	}
	p, _ := s.concealed(objects{crd}, objects{changed})
	if text := s.text(p); strings.Contains(text, "c4n4ry") {
		t.Errorf("the plan is %s", text)
	}
	if len(p.CRDs) == 0 || s.change(p, "CustomResourceDefinition", crd.GetName()).Problem == nil {
		t.Error("what blocks is not in the plan any more")
	}
}

func TestTellingIsAskedForByKindsAndNotByObjects(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var old, new objects
	for i := range 600 {
		name := fmt.Sprintf("m%d", i)
		old, new = append(old, configMap(t, name, "{k: old}")), append(new, configMap(t, name, "{k: new}"))
	}
	s.activate(old...)
	_, seeing := s.concealed(old, new, get("", "configmaps"))
	if n := seeing.asked.Load(); n > 2 {
		t.Errorf("%d reviews for a kind that the account may read", n)
	}
	p, blind := s.concealed(old, new, get("", "configmaps", "m7"))
	if n := blind.asked.Load(); n > 260 {
		t.Errorf("%d reviews for a kind that it may not read", n)
	}
	if got := s.change(p, "ConfigMap", "m9").Fields; len(got) != 1 || !got[0].Redacted {
		t.Errorf("fields of what it may not read: %+v", got)
	}
}

func TestOneObjectThatTheAccountMayReadIsTold(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.activate(configMap(t, "a", "{k: old}"), configMap(t, "b", "{k: old}"))
	p, _ := s.concealed(nil, objects{configMap(t, "a", "{k: new}"), configMap(t, "b", "{k: new}")}, get("", "configmaps", "a"))
	if a, b := s.change(p, "ConfigMap", "a").Fields, s.change(p, "ConfigMap", "b").Fields; a[0].Redacted || !b[0].Redacted {
		t.Errorf("a %+v, b %+v", a, b)
	}
}
