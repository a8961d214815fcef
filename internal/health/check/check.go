// SPDX-License-Identifier: Apache-2.0

// Package check judges objects by what an instance says of them in CEL, in place of the rules of package health. It
// belongs to the last step of the flow: source -> unpack -> content store -> provisioner.Render -> plan -> approval ->
// activate -> watch.
//
// It is as pure as package health: an expression sees one object and nothing else, and what it may cost is bounded.
// Expressions have the functions that those of Kubernetes have.
package check

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/health"
)

// Checks are those of one instance, compiled. A nil *Checks has none.
type Checks struct{ all []*Check }

// Check judges some objects.
type Check struct {
	path        string // in the spec of the instance
	key         string
	kind        schema.GroupKind
	name        string
	namespace   string
	selector    labels.Selector
	expressions []expression // in the order in which they are asked
	fault       error        // why it cannot be used
}

// expression has an object a status, if it is true.
type expression struct {
	program
	field  string
	status health.Status
}

// Compile makes checks of what the spec of an instance says. The error names each field that is wrong; the checks can be
// used all the same, and say so of the objects that those with a fault are for.
func Compile(specs []v1alpha1.HealthCheck) (*Checks, error) {
	checks := &Checks{}
	var faults []error
	for i, spec := range specs {
		one := compile(fmt.Sprintf("spec.healthChecks[%d]", i), spec)
		checks.all = append(checks.all, one)
		faults = append(faults, one.fault)
	}
	return checks, errors.Join(faults...)
}

func compile(path string, spec v1alpha1.HealthCheck) *Check {
	one := &Check{path: path, key: keyOf(spec), name: spec.Name, namespace: spec.Namespace}
	var faults []error
	fault := func(field string, err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("%s.%s: %s", path, field, oneLine(err.Error())))
		}
	}
	version, err := schema.ParseGroupVersion(spec.APIVersion)
	fault("apiVersion", err)
	one.kind = version.WithKind(spec.Kind).GroupKind()
	if spec.Selector != nil {
		one.selector, err = metav1.LabelSelectorAsSelector(spec.Selector)
		fault("selector", err)
	}
	for _, field := range []struct {
		name, text string
		status     health.Status
	}{
		{"inProgress", spec.InProgress, health.InProgress},
		{"failed", spec.Failed, health.Failed},
		{"current", spec.Current, health.Current},
	} {
		if field.text == "" {
			continue
		}
		compiled, err := compileExpression(field.text)
		fault(field.name, err)
		one.expressions = append(one.expressions, expression{compiled, field.name, field.status})
	}
	one.fault = errors.Join(faults...)
	return one
}

// keyOf is the same for equal checks.
func keyOf(spec v1alpha1.HealthCheck) string {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return err.Error() // it has been read from JSON
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8])
}

// For gives the first check that is for an object of the content, nil if none is.
func (c *Checks) For(object *unstructured.Unstructured) *Check {
	if c == nil {
		return nil
	}
	for _, one := range c.all {
		if one.isFor(object) {
			return one
		}
	}
	return nil
}

func (c *Check) isFor(object *unstructured.Unstructured) bool {
	return c.kind == object.GroupVersionKind().GroupKind() &&
		(c.name == "" || c.name == object.GetName()) &&
		(c.namespace == "" || c.namespace == object.GetNamespace()) &&
		(c.selector == nil || c.selector.Matches(labels.Set(object.GetLabels())))
}

// Key tells checks that judge differently; that of a nil *Check is "".
func (c *Check) Key() string {
	if c == nil {
		return ""
	}
	return c.key
}

// Judge gives the health of a live object, nil for one that does not exist. A nil *Check judges as package health does.
func (c *Check) Judge(ctx context.Context, live *unstructured.Unstructured) health.Result {
	if c == nil {
		return health.Of(live)
	}
	if result := health.Unsettled(live); result != nil {
		return *result
	}
	if c.fault != nil {
		return health.Result{Status: health.Unknown, Message: oneLine(c.fault.Error())}
	}
	for _, one := range c.expressions {
		yes, err := one.ask(ctx, live)
		switch {
		case errors.Is(err, errAbsent):
			return health.Result{Status: health.InProgress, Message: fmt.Sprintf("%s.%s: %v", c.path, one.field, err)}
		case err != nil:
			return health.Result{Status: health.Unknown, Message: fmt.Sprintf("%s.%s: %v", c.path, one.field, err)}
		case yes && one.status == health.Current:
			return health.Result{Status: health.Current}
		case yes:
			return health.Result{Status: one.status, Message: fmt.Sprintf("%s.%s is true", c.path, one.field)}
		}
	}
	return health.Result{Status: health.InProgress, Message: c.path + ".current is not true"}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
