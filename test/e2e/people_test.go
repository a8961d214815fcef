// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/wire"
)

// person is a tenant whose requests are those of somebody else, who may do everything.
func (a *tenant) person(name string, groups ...string) *tenant {
	a.t.Helper()
	config := env.Cluster.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: append(groups, "system:masters", "system:authenticated")}
	c, err := client.New(config, client.Options{Scheme: wire.Scheme()})
	if err != nil {
		a.t.Fatal(err)
	}
	as := *a
	as.client = c
	return &as
}

// votes approves a revision in a person's own name, and gives what became of that.
func (a *tenant) votes(name string, about string, groups ...string) string {
	a.t.Helper()
	made := a.approval(about, v1alpha1.DecisionApprove, name, groups...)
	a.create(made)
	var counted *metav1.Condition
	a.eventually("the approval by "+name+" is counted or not", func(ctx context.Context) error {
		if err := a.client.Get(ctx, client.ObjectKeyFromObject(made), made); err != nil {
			return err
		}
		if counted = meta.FindStatusCondition(made.Status.Conditions, v1alpha1.ConditionCounted); counted == nil {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	return counted.Reason
}

// noting waits until the API server notes who changes instances.
func (a *tenant) noting() {
	a.t.Helper()
	a.eventually("who changes an instance is noted", func(ctx context.Context) error {
		made := &v1alpha1.BundleInstance{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "try"},
			Spec:       v1alpha1.BundleInstanceSpec{Bundle: a.bundle("registry.example/any:v1"), ServiceAccountName: account},
		}
		if err := a.client.Create(ctx, made, client.DryRunAll); err != nil {
			return err
		}
		if made.Annotations[v1alpha1.AnnotationChangedBy] == "" {
			return fmt.Errorf("it is not")
		}
		return nil
	})
}

func TestNobodyApprovesAnOwnChangeAndAsManyMustAsTheClassAsks(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.changeClass(func(p *v1alpha1.ApprovalPolicy) { p.RequiredApprovals, p.AllowSelfApproval = 2, new(bool) })
	a.noting()
	ann, bob, carol := a.person("ann"), a.person("bob"), a.person("carol")
	ann.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}))
	a.planned("app-1")
	if got := a.revision("app-1").Spec.ChangedBy; !slices.Equal(got, []string{"ann"}) {
		t.Errorf("changed by %q", got)
	}
	for _, test := range []struct{ by, reason, says string }{
		{"ann", v1alpha1.ReasonSelfApproval, "0 of 2 approvals"},
		{"bob", v1alpha1.ReasonCounted, "1 of 2 approvals, by bob"},
		{"bob", v1alpha1.ReasonCounted, "1 of 2 approvals, by bob"},
	} {
		if got := a.person(test.by).votes(test.by, "app-1"); got != test.reason {
			t.Errorf("the approval by %s: %s, want %s", test.by, got, test.reason)
		}
		a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
		a.eventually("it says why it waits", func(context.Context) error {
			if got := a.message("app", v1alpha1.ConditionApproved); !strings.Contains(got, test.says) || !strings.Contains(got, "not by who changed the instance: ann") {
				return fmt.Errorf("it says %q", got)
			}
			return nil
		})
	}
	a.gone(a.configMap("one"))
	if got := carol.votes("carol", "app-1"); got != v1alpha1.ReasonCounted {
		t.Errorf("the approval by carol: %s", got)
	}
	a.ready("app")

	// Two edits: what waits then is the work of both, whoever came last.
	bad := a.push("v2", map[string]string{"a.yaml": configMap("one", "2")})
	bob.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(bad) })
	a.planned("app-2")
	more := a.push("v3", map[string]string{"a.yaml": configMap("one", "2"), "b.yaml": configMap("two", "2")})
	carol.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(more) })
	a.planned("app-3")
	if got := a.revision("app-3").Spec.ChangedBy; !slices.Equal(got, []string{"bob", "carol"}) {
		t.Errorf("changed by %q", got)
	}
	for _, name := range []string{"bob", "carol"} {
		if got := a.person(name).votes(name, "app-3"); got != v1alpha1.ReasonSelfApproval {
			t.Errorf("the approval by %s: %s", name, got)
		}
	}
	if got := ann.votes("ann", "app-3"); got != v1alpha1.ReasonCounted {
		t.Errorf("the approval by ann: %s", got)
	}
	// Fewer are asked for: that counts for what waits.
	a.changeClass(func(p *v1alpha1.ApprovalPolicy) { p.RequiredApprovals = 1 })
	a.ready("app")
	a.value("one", "2")
}

// changeClass changes how the tenant's class decides.
func (a *tenant) changeClass(change func(*v1alpha1.ApprovalPolicy)) {
	a.t.Helper()
	a.eventually("change of the class", func(ctx context.Context) error {
		class := &v1alpha1.ProvisionerClass{}
		if err := a.client.Get(ctx, client.ObjectKey{Name: a.class}, class); err != nil {
			return err
		}
		change(&class.Spec.Approval)
		return a.client.Update(ctx, class)
	})
}

func TestRulesOfTheClassDecideAndArePartOfTheRecord(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.changeClass(func(p *v1alpha1.ApprovalPolicy) {
		p.Mode = v1alpha1.ApprovalByPolicy
		p.Rules = []v1alpha1.ApprovalRule{
			{Name: "no-secrets", When: "plan.objects.exists(o, o.kind == 'Secret') || plan.podSecurity.after == 'privileged'", Then: v1alpha1.RuleDenies, Message: "secrets come from the vault"},
			{Name: "removal", When: "plan.removed > 0", Then: v1alpha1.RuleRequires, Approvals: 2, Groups: []string{"leads"}},
			{Name: "faulty", When: "plan.changed == 1 && plan.images[0].registry == 'quay.io'", Then: v1alpha1.RuleApproves},
			{Name: "small", When: "plan.added + plan.changed <= 2", Then: v1alpha1.RuleApproves, Message: "it is small"},
		}
	})
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1"), "b.yaml": configMap("two", "1")}))
	a.ready("app")
	approved := func(name, says string, by ...string) {
		t.Helper()
		revision := a.revision(name)
		found := meta.FindStatusCondition(revision.Status.Conditions, v1alpha1.ConditionApproved)
		var approvers []string
		for _, made := range revision.Status.Decisions {
			approvers = append(approvers, made.Approver)
		}
		slices.Sort(approvers) // those of the same second have no order
		if found == nil || !strings.Contains(found.Message, says) || !slices.Equal(approvers, by) {
			t.Errorf("%s: %+v, decided by %q", name, found, approvers)
		}
	}
	approved("app-1", `approves by rule "small": it is small`, "class/"+a.class)

	push := func(tag string, files map[string]string, wait func()) {
		t.Helper()
		ref := a.push(tag, files)
		a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(ref) })
		wait()
	}
	waits := func() {
		a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	}

	// A rule that fails approves nothing, and hides none after it.
	push("v2", map[string]string{"a.yaml": configMap("one", "2"), "b.yaml": configMap("two", "1")}, waits)
	a.eventually("the fault is told", func(context.Context) error {
		if got := a.message("app", v1alpha1.ConditionApproved); !strings.Contains(got, `rule "faulty"`) || !strings.Contains(got, "index out of bounds") {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	a.value("one", "1")

	push("v3", map[string]string{"a.yaml": configMap("one", "2")}, waits)
	if got := a.person("ann").votes("ann", "app-3"); got != v1alpha1.ReasonGroupMissing {
		t.Errorf("ann is in no group, but: %s", got)
	}
	for _, lead := range []string{"bob", "carol"} {
		if got := a.person(lead, "leads").votes(lead, "app-3", "leads"); got != v1alpha1.ReasonCounted {
			t.Errorf("%s: %s", lead, got)
		}
	}
	a.ready("app")
	approved("app-3", "approved by ", "bob", "carol")
	a.gone(a.configMap("two"))

	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n"
	push("v4", map[string]string{"a.yaml": configMap("one", "2"), "s.yaml": secret}, func() {
		a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDenied)
	})
	approved("app-4", `rule "no-secrets": secrets come from the vault`, "class/"+a.class)
	// The class denies only as long as its rules do.
	a.changeClass(func(p *v1alpha1.ApprovalPolicy) { p.Rules = p.Rules[1:2]; p.Rules[0].When = "false" })
	waits()
	if got := a.person("ann").votes("ann", "app-4"); got != v1alpha1.ReasonCounted {
		t.Errorf("ann: %s", got)
	}
	a.ready("app")
}
