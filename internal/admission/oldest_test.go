// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// oldest is the first supported version of Kubernetes: what its CEL does not know must not be used.
var oldest = version.MajorMinor(1, 31)

func TestPoliciesUseOnlyWhatTheOldestKubernetesKnows(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(mustDir(t, "admission"), "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(file) //nolint:gosec // a file of this repository
		if err != nil {
			t.Fatal(err)
		}
		var policy admissionv1.ValidatingAdmissionPolicy
		first, _, _ := strings.Cut(string(text), "\n---\n")
		if err := yaml.UnmarshalStrict([]byte(first), &policy); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		checked += compilePolicy(t, &policy)
	}
	if checked < 20 {
		t.Errorf("only %d expressions were found: has the form of the policies changed?", checked)
	}
}

// compilePolicy compiles all expressions of a policy as an API server of the oldest version does with new ones, and
// says how many there are.
func compilePolicy(t *testing.T, policy *admissionv1.ValidatingAdmissionPolicy) (compiled int) {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(oldest))
	if err != nil {
		t.Fatal(err)
	}
	declared := cel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}
	check := func(what, text string, result cel.CompilationResult) {
		compiled++
		if result.Error != nil {
			t.Errorf("%s: %s: %v in\n%s", policy.Name, what, result.Error, text)
		}
	}
	for _, variable := range policy.Spec.Variables {
		check("variable "+variable.Name, variable.Expression,
			compiler.CompileAndStoreVariable(expression{variable.Name, variable.Expression, celgo.AnyType}, declared, environment.NewExpressions))
	}
	for _, condition := range policy.Spec.MatchConditions {
		check("match condition "+condition.Name, condition.Expression,
			compiler.CompileCELExpression(expression{condition.Name, condition.Expression, celgo.BoolType}, declared, environment.NewExpressions))
	}
	for _, validation := range policy.Spec.Validations {
		check("validation", validation.Expression,
			compiler.CompileCELExpression(expression{"", validation.Expression, celgo.BoolType}, declared, environment.NewExpressions))
		if validation.MessageExpression != "" {
			// Messages may not ask the authorizer.
			said := cel.OptionalVariableDeclarations{HasParams: declared.HasParams}
			check("message", validation.MessageExpression,
				compiler.CompileCELExpression(expression{"", validation.MessageExpression, celgo.StringType}, said, environment.NewExpressions))
		}
	}
	return compiled
}

func TestSchemasUseOnlyWhatTheOldestKubernetesKnows(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(mustDir(t, "crd", "bases"), "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // a file of this repository
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &definition); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var internal apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil); err != nil {
			t.Fatal(err)
		}
		structural, err := structuralschema.NewStructural(&internal)
		if err != nil {
			t.Fatal(err)
		}
		rules += compileSchema(t, definition.Spec.Names.Kind, structural, true)
	}
	if rules < 8 {
		t.Errorf("only %d rules were found: has the form of the definitions changed?", rules)
	}
}

func compileSchema(t *testing.T, path string, schema *structuralschema.Structural, root bool) (rules int) {
	t.Helper()
	results, err := schemacel.Compile(schema, model.SchemaDeclType(schema, root), apiservercel.PerCallLimit, environment.MustBaseEnvSet(oldest), schemacel.NewExpressionsEnvLoader())
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	for i, result := range results {
		if result.Error != nil {
			t.Errorf("%s: %v in\n%s", path, result.Error, schema.XValidations[i].Rule)
		}
	}
	rules = len(results)
	for name := range schema.Properties {
		property := schema.Properties[name]
		rules += compileSchema(t, path+"."+name, &property, false)
	}
	if schema.Items != nil {
		rules += compileSchema(t, path+"[]", schema.Items, false)
	}
	return rules
}

// expression is one of a policy, with the type that it must have.
type expression struct {
	name, text string
	result     *celgo.Type
}

func (e expression) GetName() string            { return e.name }
func (e expression) GetExpression() string      { return e.text }
func (e expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{e.result} }
