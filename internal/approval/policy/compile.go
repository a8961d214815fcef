// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // rules name time zones, also where the image of the manager has no list of them

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/spelling"
)

// Bounds of a policy, as the schema of ProvisionerClass has them; rules from a file are checked here.
const (
	MaxRules     = 32
	maxWhen      = 4096
	maxApprovals = 10
)

// Policy is the rules of a class, compiled. It never changes, and may be used from many goroutines. A nil Policy has no rules.
type Policy struct {
	rules []rule
	timed bool
}

type rule struct {
	v1alpha1.ApprovalRule
	program cel.Program
}

// RuleError says what is wrong with one rule.
type RuleError struct {
	Index        int    // of the rule, from 0
	Name         string // of the rule
	Line, Column int    // in its expression, from 1; 0 for what is wrong with another field
	Message      string // one line
}

// Error names the rule as it is in the spec of a class.
func (e *RuleError) Error() string {
	where := fmt.Sprintf("spec.approval.rules[%d] %q: ", e.Index, e.Name)
	if e.Line > 0 {
		where += fmt.Sprintf("line %d, column %d: ", e.Line, e.Column)
	}
	return where + e.Message
}

// env is made once: it takes some milliseconds.
var env = sync.OnceValues(func() (*cel.Env, error) {
	base, err := cel.NewEnv(language()...)
	if err != nil {
		return nil, err
	}
	options := []cel.EnvOption{cel.CustomTypeProvider(provider{base.CELTypeProvider()}), cel.ASTValidators(zones{})}
	for _, variable := range root.fields {
		options = append(options, cel.Variable(variable.name, variable.cel))
	}
	return base.Extend(options...)
})

// language has what expressions of Kubernetes have. It is put together here, since the environment that Kubernetes makes of it
// brings the tracker of costs along: see exhausted.
func language() []cel.EnvOption {
	return []cel.EnvOption{
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), cel.CostEstimatorOptions(checker.PresenceTestHasCost(false)),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals(), cel.ValidateHomogeneousAggregateLiterals()),
		ext.Strings(ext.StringsVersion(2)), ext.Sets(), ext.TwoVarComprehensions(), ext.Lists(ext.ListsVersion(3)),
		library.URLs(), library.Regex(), library.Lists(library.ListsVersion(1)), library.Quantity(), library.IP(), library.CIDR(), library.Format(),
		library.SemverLib(library.SemverVersion(1)),
	}
}

// Compile checks rules and makes a policy of them. The error joins a *RuleError for each mistake; then there is no policy.
func Compile(rules []v1alpha1.ApprovalRule) (*Policy, error) {
	known, err := env()
	if err != nil {
		return nil, fmt.Errorf("the language of rules cannot be set up: %w", err)
	}
	var faults []error
	if len(rules) > MaxRules {
		faults = append(faults, fmt.Errorf("spec.approval.rules: there are %d rules; at most %d are allowed", len(rules), MaxRules))
	}
	p := &Policy{}
	names := map[string]bool{}
	for i, one := range rules[:min(len(rules), MaxRules)] {
		found := form(one, names[one.Name])
		names[one.Name] = true
		made, more := expression(known, one, &p.timed)
		for _, fault := range append(found, more...) {
			fault.Index, fault.Name = i, one.Name
			faults = append(faults, fault)
		}
		p.rules = append(p.rules, made)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return p, nil
}

// Timed reports whether a rule asks what time it is: then the verdict may become another one by itself.
func (p *Policy) Timed() bool { return p != nil && p.timed }

var nameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// form checks what else a rule has.
func form(one v1alpha1.ApprovalRule, twice bool) (faults []*RuleError) {
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, &RuleError{Message: fmt.Sprintf(format, args...)})
		}
	}
	effects := []v1alpha1.RuleEffect{v1alpha1.RuleApproves, v1alpha1.RuleDenies, v1alpha1.RuleRequires}
	fault(!nameForm.MatchString(one.Name), "name must be at most 63 lower-case letters, digits and hyphens, such as no-growth")
	fault(twice, "another rule has this name")
	fault(!slices.Contains(effects, one.Then), "then is %q; it may be Approve, Deny or Require", one.Then)
	fault(one.Then != v1alpha1.RuleRequires && (one.Approvals != 0 || len(one.Groups) > 0), "approvals and groups are only for a rule that says Require")
	fault(one.Approvals < 0 || one.Approvals > maxApprovals, "approvals is %d; it may be 1 to %d", one.Approvals, maxApprovals)
	return faults
}

// expression compiles what a rule has in when.
func expression(known *cel.Env, one v1alpha1.ApprovalRule, timed *bool) (rule, []*RuleError) {
	switch {
	case strings.TrimSpace(one.When) == "":
		return rule{}, []*RuleError{{Message: "when is empty; true matches always"}}
	case len(one.When) > maxWhen:
		return rule{}, []*RuleError{{Message: fmt.Sprintf("when has %d bytes; at most %d are allowed", len(one.When), maxWhen)}}
	}
	checked, issues := known.Compile(one.When)
	if issues.Err() != nil {
		return rule{}, told(issues)
	}
	if out := checked.OutputType(); !out.IsExactType(cel.BoolType) {
		return rule{}, []*RuleError{{Line: 1, Column: 1, Message: fmt.Sprintf("gives %s, not true or false", out)}}
	}
	if fault := tooCostly(known, checked); fault != "" {
		return rule{}, []*RuleError{{Line: 1, Column: 1, Message: fault}}
	}
	for _, reference := range checked.NativeRep().ReferenceMap() {
		*timed = *timed || reference.Name == "now"
	}
	program, err := known.Program(checked, cel.InterruptCheckFrequency(StepLimit), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return rule{}, []*RuleError{{Line: 1, Column: 1, Message: oneLine(err.Error())}}
	}
	return rule{ApprovalRule: one, program: program}, nil
}

func tooCostly(known *cel.Env, checked *cel.Ast) string {
	estimate, err := known.EstimateCost(checked, &library.CostEstimator{SizeEstimator: sizes{}})
	switch {
	case err != nil:
		return "what it costs cannot be estimated: " + oneLine(err.Error())
	case estimate.Max > EstimateLimit:
		return fmt.Sprintf("it may cost %.1e for a large plan, more than the %.1e that a rule may: do not look at a list for each item of another",
			float64(estimate.Max), float64(EstimateLimit))
	}
	return ""
}

// told gives the first mistakes that CEL finds.
func told(issues *cel.Issues) (faults []*RuleError) {
	const shown = 3
	for _, issue := range issues.Errors()[:min(shown, len(issues.Errors()))] {
		faults = append(faults, &RuleError{
			Line: issue.Location.Line(), Column: issue.Location.Column() + 1, Message: oneLine(issue.Message) + meant(issue.Message),
		})
	}
	return faults
}

var unknownField = regexp.MustCompile(`^undefined field '([^']+)'|^undeclared reference to '([^']+)'`)

// meant names the field that is spelt nearly so.
func meant(message string) string {
	found := unknownField.FindStringSubmatch(message)
	if found == nil {
		return ""
	}
	var names []string
	for _, one := range shapes {
		for _, f := range one.fields {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	if near := spelling.Nearest(found[1]+found[2], slices.Compact(names)); near != "" {
		return fmt.Sprintf(" (is %s meant?)", near)
	}
	return ""
}

// zones finds time zones that do not exist when a rule is compiled.
type zones struct{}

// Name is that of the validator.
func (zones) Name() string { return "rukpak.io/zones" }

// Validate looks at what is asked of timestamps.
func (zones) Validate(_ *cel.Env, _ cel.ValidatorConfig, checked *ast.AST, issues *cel.Issues) {
	calls := ast.MatchDescendants(ast.NavigateAST(checked), func(e ast.NavigableExpr) bool {
		return e.Kind() == ast.CallKind && e.AsCall().IsMemberFunction() && strings.HasPrefix(e.AsCall().FunctionName(), "get") &&
			checked.GetType(e.AsCall().Target().ID()) == types.TimestampType
	})
	for _, call := range calls {
		for _, arg := range call.AsCall().Args() {
			if arg.Kind() != ast.LiteralKind {
				continue
			}
			if zone, ok := arg.AsLiteral().Value().(string); ok && !isZone(zone) {
				issues.ReportErrorAtID(arg.ID(), "there is no time zone %q; they are called such as Europe/Berlin, UTC or +02:00", zone)
			}
		}
	}
}

var offset = regexp.MustCompile(`^[+-]?\d\d:\d\d$`)

func isZone(name string) bool {
	if offset.MatchString(name) {
		return true
	}
	_, err := time.LoadLocation(name)
	return err == nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
