// SPDX-License-Identifier: Apache-2.0

package class

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/provisioners/remote"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/provisioner"
)

var cluster = testenv.Shared{CRDs: true}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

// judge is the only provisioner, and says of parameters what the test wants.
type judge struct {
	provisioner.Provisioner
	says error
}

func (j *judge) Find(string) provisioner.Provisioner { return j }

func (*judge) OnChange(func(string)) {}

func (j *judge) Validate(context.Context, fs.FS, json.RawMessage) error { return j.says }

// stage is the cluster, and a client that knows classes.
func stage(t *testing.T) (*testenv.Env, client.Client) {
	t.Helper()
	env := cluster.Env(t)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := env.NewClient(scheme)
	if err != nil {
		t.Fatal(err)
	}
	return env, c
}

// A class says what its provisioner says. What is not known yet, or could not be asked, takes nothing back.
func TestAClassSaysWhatItsProvisionerSays(t *testing.T) {
	env, c := stage(t)
	class := &v1alpha1.ProvisionerClass{
		ObjectMeta: metav1.ObjectMeta{Name: env.NewNamespace(t)}, Spec: v1alpha1.ProvisionerClassSpec{Provisioner: "jsonnet.example.com"},
	}
	if err := c.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	says := &judge{}
	control := &Controller{Client: c, Provisioners: says}
	transient := errors.New("the process ended")
	pending, nobody := &remote.PendingError{ID: "jsonnet.example.com"}, &remote.NobodyError{ID: "jsonnet.example.com", Own: []string{"plain.rukpak.io"}}
	for _, step := range []struct {
		says   error
		status metav1.ConditionStatus
		reason string
		text   string
		fails  bool // so that it is tried again
	}{
		{pending, metav1.ConditionUnknown, v1alpha1.ReasonRendering, "has not answered", false},
		{transient, metav1.ConditionUnknown, v1alpha1.ReasonRendering, "has not answered", true},
		{nobody, metav1.ConditionFalse, v1alpha1.ReasonProvisionerNotFound, "nobody serves", false},
		{pending, metav1.ConditionFalse, v1alpha1.ReasonProvisionerNotFound, "nobody serves", false},
		{nil, metav1.ConditionTrue, v1alpha1.ReasonServed, "is served", false},
		{pending, metav1.ConditionTrue, v1alpha1.ReasonServed, "is served", false},
		{transient, metav1.ConditionTrue, v1alpha1.ReasonServed, "is served", true},
		{&provisioner.InputError{File: "parameters", Reason: "unknown field"}, metav1.ConditionFalse, v1alpha1.ReasonInvalidParameters, "parameters: unknown field", false},
	} {
		says.says = step.says
		before := class.ResourceVersion
		was := meta.FindStatusCondition(class.Status.Conditions, v1alpha1.ConditionReady).DeepCopy()
		if _, err := control.Reconcile(t.Context(), class); (err != nil) != step.fails {
			t.Errorf("%v: got %v", step.says, err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
			t.Fatal(err)
		}
		ready := meta.FindStatusCondition(class.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != step.status || ready.Reason != step.reason || !strings.Contains(ready.Message, step.text) {
			t.Fatalf("%v: the class says %+v, want %s, %s", step.says, ready, step.status, step.reason)
		}
		if was != nil && was.Message == ready.Message && class.ResourceVersion != before {
			t.Errorf("%v: it is written though nothing changed", step.says)
		}
	}
}

// A mistake in a rule is told when the class is written, with the rule and the place in it, and is gone when it is put right.
func TestAClassTellsWhatIsWrongWithItsPolicy(t *testing.T) {
	env, c := stage(t)
	rule := func(name, when string) v1alpha1.ApprovalRule {
		return v1alpha1.ApprovalRule{Name: name, When: when, Then: v1alpha1.RuleApproves}
	}
	class := &v1alpha1.ProvisionerClass{
		ObjectMeta: metav1.ObjectMeta{Name: env.NewNamespace(t)}, Spec: v1alpha1.ProvisionerClassSpec{Provisioner: "jsonnet.example.com"},
	}
	class.Spec.Approval.Mode = v1alpha1.ApprovalByPolicy
	class.Spec.Approval.Rules = []v1alpha1.ApprovalRule{
		rule("fine", "bundle.verified"), rule("no-growth", "has(plan.permissions) &&\nplan.permissions.gaind.size() == 0"), rule("number", "plan.added"),
	}
	if err := c.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	control := &Controller{Client: c, Provisioners: &judge{}}
	ready := func() *metav1.Condition {
		t.Helper()
		if _, err := control.Reconcile(t.Context(), class); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
			t.Fatal(err)
		}
		return meta.FindStatusCondition(class.Status.Conditions, v1alpha1.ConditionReady)
	}
	got := ready()
	want := `spec.approval.rules[1] "no-growth": line 2, column 17: undefined field 'gaind' (is gained meant?); ` +
		`spec.approval.rules[2] "number": line 1, column 1: gives int, not true or false`
	if got == nil || got.Status != metav1.ConditionFalse || got.Reason != v1alpha1.ReasonInvalidApprovalPolicy || got.Message != want {
		t.Errorf("got %+v, want %s", got, want)
	}
	before := class.ResourceVersion
	if ready(); class.ResourceVersion != before {
		t.Error("it is written though nothing changed")
	}
	class.Spec.Approval.Rules = class.Spec.Approval.Rules[:1]
	if err := c.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if got := ready(); got == nil || got.Status != metav1.ConditionTrue {
		t.Errorf("put right: %+v", got)
	}
}
