// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	limits "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// self is what expressions know the object by.
const self = "self"

// errAbsent is wrapped by the error of an expression that asked for a field or an item that is not there.
var errAbsent = errors.New("absent")

// program is a compiled expression.
type program struct{ compiled cel.Program }

// env is made once: it takes some milliseconds.
var env = sync.OnceValues(func() (*cel.Env, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()
	return base.Extend(cel.Variable(self, cel.DynType))
})

func compileExpression(text string) (program, error) {
	known, err := env()
	if err != nil {
		return program{}, err
	}
	checked, issues := known.Compile(text)
	if issues.Err() != nil {
		return program{}, fmt.Errorf("is no expression of CEL: %s", told(issues))
	}
	if out := checked.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return program{}, fmt.Errorf("gives %s, not true or false", out)
	}
	compiled, err := known.Program(checked, cel.CostLimit(limits.PerCallLimit), cel.CostTracking(&library.CostEstimator{}),
		cel.InterruptCheckFrequency(limits.CheckFrequency), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return program{}, fmt.Errorf("is no expression of CEL: %w", err)
	}
	return program{compiled}, nil
}

// told puts what is wrong with an expression into one line.
func told(issues *cel.Issues) string {
	const shown = 3
	var lines []string
	for _, issue := range issues.Errors()[:min(shown, len(issues.Errors()))] {
		lines = append(lines, fmt.Sprintf("line %d, column %d: %s", issue.Location.Line(), issue.Location.Column()+1, issue.Message))
	}
	return strings.Join(lines, "; ")
}

// ask evaluates the expression for an object.
func (p program) ask(ctx context.Context, live *unstructured.Unstructured) (bool, error) {
	out, _, err := p.compiled.ContextEval(ctx, map[string]any{self: live.Object})
	switch {
	case err != nil && isAbsent(err):
		return false, fmt.Errorf("%w: %s", errAbsent, oneLine(err.Error()))
	case err != nil:
		return false, errors.New(oneLine(err.Error()))
	}
	yes, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("gives a %s, not true or false", out.Type().TypeName())
	}
	return yes, nil
}

// isAbsent goes by the words: the library has no kinds of errors.
func isAbsent(err error) bool {
	text := err.Error()
	return strings.Contains(text, "no such key") || strings.Contains(text, "index out of bounds")
}
