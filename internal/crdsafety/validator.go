// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"context"
	"fmt"
	"regexp"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// validator does with a custom resource what the API server does with one that it reads from its store and that is
// then written again as it is: drop what the schema does not know, fill in defaults, validate. It is safe for one
// goroutine at a time.
type validator struct {
	apiVersion string
	keeps      bool // spec.preserveUnknownFields, which only old definitions have
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	cel        *cel.Validator
}

// fault is what a validator has against a custom resource.
type fault struct {
	rule    Rule
	path    string // without the places in lists, so that the same fault of many objects is one
	message string // it never quotes a value of the object
}

// newValidator makes ready the schema of a version. Without a schema everything is valid.
func newValidator(of *definition, version *served) (*validator, error) {
	v := &validator{apiVersion: of.Spec.Group + "/" + version.Name, keeps: of.Spec.PreserveUnknownFields}
	props := schemaOf(version)
	if props == nil {
		return v, nil
	}
	// The converted schema shares memory with the given one, and pruning of defaults writes.
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props.DeepCopy(), &internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	if !v.keeps {
		structural = structural.DeepCopy()
		if err := defaulting.PruneDefaults(structural); err != nil {
			return nil, err
		}
	}
	if v.schema, _, err = validation.NewSchemaValidator(&internal); err != nil {
		return nil, err
	}
	v.structural, v.cel = structural, cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return v, nil
}

// faults takes the object for itself and changes it.
func (v *validator) faults(ctx context.Context, object map[string]any) []fault {
	if v.structural == nil {
		return nil
	}
	object["apiVersion"] = v.apiVersion
	var faults []fault
	if !v.keeps {
		options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
		for _, lost := range pruning.PruneWithOptions(object, v.structural, true, options) {
			faults = append(faults, fault{LivePruned, generalised(lost), "has the field, which the schema does not know: it would be lost"})
		}
		defaulting.PruneNonNullableNullsWithoutDefaults(object, v.structural)
	}
	defaulting.Default(object, v.structural)
	for _, err := range v.invalid(ctx, object) {
		faults = append(faults, fault{LiveInvalid, generalised(err.Field), messageOf(err)})
	}
	return faults
}

// invalid validates as the API server does when an object is created: then no rule about the old value is looked at.
func (v *validator) invalid(ctx context.Context, object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, v.schema)
	errs = append(errs, objectmeta.Validate(ctx, nil, object, v.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	if v.cel == nil || hinderRules(errs) {
		return errs
	}
	broken, _ := v.cel.Validate(ctx, nil, v.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

// hinderRules reports whether rules in CEL could fail for an error that is told already. The API server does not look at
// them then either.
func hinderRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

// messageOf leaves out the value: whoever reads a plan need not be allowed to read every custom resource.
func messageOf(err *field.Error) string {
	text := err.Type.String()
	if err.Detail != "" {
		text += ": " + indexes.ReplaceAllString(err.Detail, items)
	}
	return short(text, longestMessage/2)
}

var indexes = regexp.MustCompile(`\[\d+\]`)

// generalised is the path of a field in any object.
func generalised(path string) string {
	if path == "<nil>" {
		return ""
	}
	return short(indexes.ReplaceAllString(path, items), longestMessage/2)
}

// copied is a custom resource of its own to work on. What is no JSON cannot come from an API server.
func copied(object map[string]any) (out map[string]any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the object is no JSON: %v", r)
		}
	}()
	return runtime.DeepCopyJSON(object), nil
}
