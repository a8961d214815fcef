// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/configuration"
)

// Case is facts with the verdict that they must have.
type Case struct {
	Name  string         `json:"name"`
	Facts map[string]any `json:"facts"`
	Want  Want           `json:"want"`
}

// Want is the verdict that a case expects. Empty fields are not compared, but for rule: "" is no rule.
type Want struct {
	Effect    v1alpha1.RuleEffect `json:"effect"`
	Rule      string              `json:"rule"`
	Approvals int32               `json:"approvals,omitempty"`
	// Fails, if true, expects that a rule fails, which is a mistake otherwise.
	Fails bool `json:"fails,omitempty"`
}

// Result is what became of a case.
type Result struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Problem is what differs, one line; "" if the verdict is as expected.
	Problem string `json:"problem,omitempty"`
}

// caseFile is a file of cases.
type caseFile struct {
	// Facts are common to all cases; those of a case are merged into them.
	Facts map[string]any `json:"facts,omitempty"`
	Cases []Case         `json:"cases"`
}

// ReadRules reads the rules of a ProvisionerClass, a list of rules, or a mapping with rules, in YAML or JSON.
func ReadRules(text []byte) ([]v1alpha1.ApprovalRule, error) {
	var tree any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, lineOf(err)
	}
	if _, ok := tree.([]any); ok {
		var rules []v1alpha1.ApprovalRule
		err := strict(text, &rules)
		return rules, err
	}
	top, _ := tree.(map[string]any)
	if _, ok := top["rules"]; ok {
		var only struct {
			Rules []v1alpha1.ApprovalRule `json:"rules"`
		}
		err := strict(text, &only)
		return only.Rules, err
	}
	if top["kind"] != "ProvisionerClass" {
		return nil, errors.New("it is no policy: that is a ProvisionerClass, or a list of rules with name, when and then")
	}
	var class v1alpha1.ProvisionerClass
	if err := strict(text, &class); err != nil {
		return nil, err
	}
	if class.Spec.Approval.Mode != v1alpha1.ApprovalByPolicy {
		return nil, fmt.Errorf("class %q has no rules: its spec.approval.mode is not Policy", class.Name)
	}
	return class.Spec.Approval.Rules, nil
}

// IsCases reports whether a file has cases.
func IsCases(text []byte) bool {
	var file map[string]any
	return yaml.Unmarshal(text, &file) == nil && file["cases"] != nil
}

// ReadCases reads a file of cases.
func ReadCases(text []byte) ([]Case, error) {
	var file caseFile
	if err := strict(text, &file); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i := range file.Cases {
		one := &file.Cases[i]
		switch {
		case one.Name == "" || names[one.Name]:
			return nil, fmt.Errorf("cases[%d]: name is %q; each case needs one of its own", i, one.Name)
		case one.Want.Effect != v1alpha1.RuleApproves && one.Want.Effect != v1alpha1.RuleDenies && one.Want.Effect != v1alpha1.RuleRequires:
			return nil, fmt.Errorf("cases[%d] %q: want.effect is %q; it may be Approve, Deny or Require", i, one.Name, one.Want.Effect)
		}
		names[one.Name] = true
		merged := copyOf(file.Facts)
		configuration.Merge(merged, copyOf(one.Facts))
		one.Facts = merged
		if _, err := factsOf(merged); err != nil {
			return nil, fmt.Errorf("cases[%d] %q: facts: %w", i, one.Name, err)
		}
	}
	if len(file.Cases) == 0 {
		return nil, errors.New("there are no cases")
	}
	return file.Cases, nil
}

// ReadFacts reads facts by themselves.
func ReadFacts(text []byte) (*Facts, error) {
	var facts Facts
	if err := strict(text, &facts); err != nil {
		return nil, err
	}
	return &facts, nil
}

// Try judges a case.
func (p *Policy) Try(one Case) Result {
	facts, err := factsOf(one.Facts)
	if err != nil {
		return Result{Name: one.Name, Problem: err.Error()}
	}
	result := Result{Name: one.Name, Verdict: p.Judge(facts)}
	result.Problem = one.Want.differs(result.Verdict)
	return result
}

func (w Want) differs(got Verdict) string {
	var wrong []string
	compare := func(what string, want, got any) {
		if want != got {
			wrong = append(wrong, fmt.Sprintf("%s is %v, not %v", what, got, want))
		}
	}
	compare("the effect", w.Effect, got.Effect)
	compare("the rule", fmt.Sprintf("%q", w.Rule), fmt.Sprintf("%q", got.Rule))
	if w.Approvals != 0 {
		compare("the number of approvals", w.Approvals, got.Approvals)
	}
	failed := false
	for _, step := range got.Trace {
		if step.Outcome != Faulty {
			continue
		}
		failed = true
		if !w.Fails {
			wrong = append(wrong, fmt.Sprintf("rule %q failed: %s", step.Rule, step.Error))
		}
	}
	if w.Fails && !failed {
		wrong = append(wrong, "no rule failed")
	}
	return strings.Join(wrong, "; ")
}

func factsOf(tree map[string]any) (*Facts, error) {
	text, err := yaml.Marshal(tree)
	if err != nil {
		return nil, lineOf(err)
	}
	return ReadFacts(text)
}

// strict refuses what nobody would read, with its path.
func strict(text []byte, into any) error {
	encoded, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return lineOf(err)
	}
	unread, err := kjson.UnmarshalStrict(encoded, into)
	if err == nil && len(unread) > 0 {
		err = unread[0]
	}
	return lineOf(err)
}

// copyOf is deep, since cases share what they have in common.
func copyOf(tree map[string]any) map[string]any {
	out := make(map[string]any, len(tree))
	for key, value := range tree {
		if inner, ok := value.(map[string]any); ok {
			value = copyOf(inner)
		}
		out[key] = value
	}
	return out
}

// lineOf has what the library says in one line, without the words that tell of its insides.
func lineOf(err error) error {
	if err == nil {
		return nil
	}
	text := strings.NewReplacer("error unmarshaling JSON: ", "", "error converting YAML to JSON: ", "", "while decoding JSON: ", "", "json: ", "").Replace(err.Error())
	return errors.New(oneLine(text))
}
