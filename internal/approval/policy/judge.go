// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"rukpak.io/rukpak/api/v1alpha1"
)

// Verdict is what the rules say of a revision.
type Verdict struct {
	// Rule that decides, "" if none matches: then people decide as the class says.
	Rule string `json:"rule,omitempty"`
	// Effect is Require also where no rule matches, and where one fails that might have approved or denied.
	Effect v1alpha1.RuleEffect `json:"effect"`
	// Approvals by how many different people it takes, with Require. 0 is what the class says otherwise.
	Approvals int32 `json:"approvals,omitempty"`
	// Groups in one of which each of them must be; none is anybody who may approve.
	Groups []string `json:"groups,omitempty"`
	// Message says why, in one line: that of the rule, and what failed.
	Message string `json:"message,omitempty"`
	// Trace has each rule in order, as far as they were asked.
	Trace []Step `json:"trace,omitempty"`
}

// Outcome of one rule.
type Outcome string

// Outcomes of a rule.
const (
	Matched  Outcome = "Matched"
	NotSo    Outcome = "NotMatched"
	Faulty   Outcome = "Error"    // it failed: see Error
	NotAsked Outcome = "NotAsked" // one before it decided
)

// Step is what became of one rule.
type Step struct {
	Rule    string  `json:"rule"`
	Outcome Outcome `json:"outcome"`
	Error   string  `json:"error,omitempty"`
}

// Judge asks the rules in order; the first that matches decides.
//
// A rule that fails approves nothing and does not hide those after it, since content could see to it that a rule fails.
// The verdict is then the strictest that might have been meant: a rule after it that denies denies; one that requires
// people requires them; anything else becomes Require of one person. If the rule that failed requires people itself, as
// many are required at least.
func (p *Policy) Judge(facts *Facts) Verdict {
	j := judgement{vars: facts.variables(), oversized: oversized(root, reflectOf(facts), "")}
	if p != nil {
		for i := range p.rules {
			j.ask(&p.rules[i])
		}
	}
	return j.conclude()
}

// Unusable is the verdict by rules that do not compile: people decide.
func Unusable(fault error) Verdict {
	return Verdict{Effect: v1alpha1.RuleRequires, Approvals: 1, Message: "the rules of the class cannot be used: " + oneLine(fault.Error())}
}

// variables are the facts as CEL takes them.
func (f *Facts) variables() interpreter.Activation {
	all := reflectOf(f)
	vars := make(map[string]any, len(root.fields))
	for _, one := range root.fields {
		vars[one.name] = one.get(all)
	}
	activation, err := interpreter.NewActivation(vars)
	if err != nil {
		return interpreter.EmptyActivation() // a map is always taken
	}
	return activation
}

type judgement struct {
	vars      interpreter.Activation
	oversized error
	trace     []Step
	matched   *rule
	failed    []*rule
	faults    []string
}

func (j *judgement) ask(one *rule) {
	step := Step{Rule: one.Name, Outcome: NotAsked}
	if j.matched == nil {
		switch yes, err := j.evaluate(one); {
		case err != nil:
			step.Outcome, step.Error = Faulty, err.Error()
			j.failed = append(j.failed, one)
			j.faults = append(j.faults, fmt.Sprintf("rule %q failed: %s", one.Name, step.Error))
		case yes:
			step.Outcome, j.matched = Matched, one
		default:
			step.Outcome = NotSo
		}
	}
	j.trace = append(j.trace, step)
}

// evaluate gives an error in words.
func (j *judgement) evaluate(one *rule) (bool, error) {
	if j.oversized != nil {
		return false, j.oversized
	}
	out, _, err := one.program.ContextEval(exhausted, j.vars)
	if err != nil {
		return false, fmt.Errorf("%s", oneLine(err.Error()))
	}
	return truth(out)
}

func truth(out ref.Val) (bool, error) {
	yes, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("gives a %s, not true or false", out.Type().TypeName())
	}
	return yes, nil
}

func (j *judgement) conclude() Verdict {
	v := Verdict{Effect: v1alpha1.RuleRequires, Trace: j.trace}
	if one := j.matched; one != nil {
		v.Rule, v.Effect, v.Groups, v.Message = one.Name, one.Then, one.Groups, oneLine(one.Message)
		if v.Effect == v1alpha1.RuleRequires {
			v.Approvals = max(one.Approvals, 1)
		}
	}
	if len(j.failed) > 0 && v.Effect != v1alpha1.RuleDenies {
		j.require(&v)
	}
	for _, fault := range j.faults {
		if v.Message != "" {
			v.Message += "; "
		}
		v.Message += fault
	}
	return v
}

// require has people decide because of rules that failed.
func (j *judgement) require(v *Verdict) {
	if v.Effect == v1alpha1.RuleApproves || v.Rule == "" {
		v.Rule, v.Message = j.failed[0].Name, ""
	}
	v.Effect, v.Approvals = v1alpha1.RuleRequires, max(v.Approvals, 1)
	for _, one := range j.failed {
		v.Approvals = max(v.Approvals, one.Approvals)
		if len(v.Groups) == 0 {
			v.Groups = one.Groups
		}
	}
}
