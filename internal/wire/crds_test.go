// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/plan"
)

func TestTheAPIKnowsTheRulesAndActionsOfThePackage(t *testing.T) {
	content, err := os.ReadFile("../../config/crd/bases/rukpak.io_provisionerclasses.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatal(err)
	}
	policy := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["crdUpgrade"]
	item := policy.Properties["rules"].Items.Schema.Properties
	texts := func(of []apiextensionsv1.JSON) (out []string) {
		for _, value := range of {
			out = append(out, strings.Trim(string(value.Raw), `"`))
		}
		return out
	}
	var rules []string
	for _, rule := range crdsafety.Rules() {
		rules = append(rules, string(rule))
	}
	if diff := cmp.Diff(rules, texts(item["rule"].Enum)); diff != "" {
		t.Errorf("rules (-package +API):\n%s", diff)
	}
	for _, enum := range [][]apiextensionsv1.JSON{item["action"].Enum, policy.Properties["default"].Enum} {
		if diff := cmp.Diff([]string{"Block", "Warn", "Allow"}, texts(enum)); diff != "" {
			t.Errorf("actions (-package +API):\n%s", diff)
		}
	}
}

func TestPolicyOfAClass(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	class := func(name string, policy *v1alpha1.CRDUpgradePolicy) *v1alpha1.ProvisionerClass {
		return &v1alpha1.ProvisionerClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ProvisionerClassSpec{CRDUpgrade: policy}}
	}
	over := func(others, rule, action string) *v1alpha1.CRDUpgradePolicy {
		policy := &v1alpha1.CRDUpgradePolicy{Default: v1alpha1.CRDAction(others)}
		if rule != "" {
			policy.Rules = []v1alpha1.CRDRulePolicy{{Rule: v1alpha1.CRDRule(rule), Action: v1alpha1.CRDAction(action)}}
		}
		return policy
	}
	p := &planner{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		class("plain", nil),
		class("lenient", &v1alpha1.CRDUpgradePolicy{Default: v1alpha1.CRDWarn, Rules: []v1alpha1.CRDRulePolicy{{Rule: "type", Action: v1alpha1.CRDBlock}}}),
		class("older", &v1alpha1.CRDUpgradePolicy{Rules: []v1alpha1.CRDRulePolicy{{Rule: "later", Action: v1alpha1.CRDWarn}}}),
	).Build()}
	for _, test := range []struct {
		class, want string
		broken      string
		rollback    bool
		over        *v1alpha1.CRDUpgradePolicy
	}{
		{"plain", "Block Block", "", false, nil}, {"gone", "Block Block", "", false, nil}, {"lenient", "Block Warn", "", false, nil},
		{"plain", "Warn Warn", "", true, nil}, {"gone", "Warn Warn", "", true, nil}, {"lenient", "Block Warn", "", true, nil},
		{"older", "", `ProvisionerClass "older": spec.crdUpgrade: unknown rule "later": known are scope,`, false, nil},
		{"plain", "Warn Block", "", false, over("", "type", "Warn")}, {"lenient", "Allow Warn", "", false, over("", "type", "Allow")},
		{"lenient", "Allow Allow", "", false, over("Allow", "", "")}, {"plain", "Warn Block", "", true, over("", "enum", "Block")},
	} {
		of := &v1alpha1.InstanceRevision{Spec: v1alpha1.InstanceRevisionSpec{ProvisionerClassName: test.class}}
		if test.over != nil {
			of.Spec.CRDUpgrade = test.over
		}
		if test.rollback {
			of.Spec.RollbackOf = new(int64(1))
		}
		policy, err := p.crdPolicy(t.Context(), of)
		if err != nil || test.broken != "" {
			if err == nil || !strings.HasPrefix(err.Error(), test.broken) || test.broken == "" {
				t.Errorf("%s: %v, want %q", test.class, err, test.broken)
			}
			continue
		}
		if got := fmt.Sprint(policy.Action(crdsafety.Type), " ", policy.Action(crdsafety.Enum)); got != test.want {
			t.Errorf("%s: %s, want %s", test.class, got, test.want)
		}
	}
}

func TestFindingsThatBlockAreInTheSummaryHoweverManyOnlyWarn(t *testing.T) {
	of := &plan.Plan{}
	for i := range 200 {
		of.CRDs = append(of.CRDs, crdsafety.Finding{Action: crdsafety.Warn, CRD: "a.example.com", Rule: crdsafety.Type, Path: fmt.Sprintf("%03d%s", i, strings.Repeat("x", 3000)), Message: "m"})
	}
	of.CRDs = append(of.CRDs, crdsafety.Finding{Action: crdsafety.Block, CRD: "z.example.com", Rule: crdsafety.Enum, Message: strings.Repeat("y", 5000)})
	got := summary(of)
	if len(got.CRDs) < 10 || len(got.CRDs) > 50 || got.CRDs[0].CRD != "z.example.com" || !got.Truncated {
		t.Errorf("%d findings, truncated %v, want the one that blocks first", len(got.CRDs), got.Truncated)
	}
	if message := plan.Blocked(got); !strings.HasPrefix(message, "nothing is applied, since the plan has 1 finding ") {
		t.Errorf("blocked: %.200q", message)
	}
	if len(got.CRDs[1].Path) > maxCRDPath || len(got.CRDs[0].Message) > maxLine {
		t.Error("a text is longer than its schema takes")
	}
}
