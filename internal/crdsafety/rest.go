// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// facets are the parts of a schema that have no rule of their own and are one value each.
var facets = []struct {
	name  string
	value func(*schema) any
}{
	{"format", func(s *schema) any { return s.Format }},
	{"multipleOf", func(s *schema) any { return s.MultipleOf }},
	{"uniqueItems", func(s *schema) any { return s.UniqueItems }},
	{"exclusiveMaximum", func(s *schema) any { return s.ExclusiveMaximum }},
	{"exclusiveMinimum", func(s *schema) any { return s.ExclusiveMinimum }},
	{"x-kubernetes-preserve-unknown-fields", func(s *schema) any { return s.XPreserveUnknownFields }},
	{"x-kubernetes-embedded-resource", func(s *schema) any { return s.XEmbeddedResource }},
	{"x-kubernetes-int-or-string", func(s *schema) any { return s.XIntOrString }},
	{"x-kubernetes-list-type", func(s *schema) any { return orDefault(s.XListType, "atomic") }},
	{"x-kubernetes-list-map-keys", func(s *schema) any { return s.XListMapKeys }},
	{"x-kubernetes-map-type", func(s *schema) any { return orDefault(s.XMapType, "granular") }},
}

// rest applies the rule for every difference that no other rule is about, so that nothing goes unseen.
func (c *comparison) rest(at *path, old, new *schema) {
	for _, facet := range facets {
		if was, is := plainText(facet.value(old)), plainText(facet.value(new)); was != is {
			c.add(at, Unhandled, "%s changes from %s to %s", facet.name, was, is)
		}
	}
	c.celRules(at, old.XValidations, new.XValidations)
	for _, junctor := range []struct {
		name     string
		old, new []schema
	}{{"allOf", old.AllOf, new.AllOf}, {"anyOf", old.AnyOf, new.AnyOf}, {"oneOf", old.OneOf, new.OneOf}, {"not", one(old.Not), one(new.Not)}} {
		c.junctor(at, junctor.name, junctor.old, junctor.new)
	}
	if a, b := unknown(old), unknown(new); !same(a, b) {
		c.add(at, Unhandled, "parts of the schema differ that no rule is about: %s becomes %s", short(encoded(a), longestValue), short(encoded(b), longestValue))
	}
}

// celRules compares rules by what they demand. Their messages are text for people.
func (c *comparison) celRules(at *path, old, new apiextensionsv1.ValidationRules) {
	if len(old) == 0 && len(new) == 0 {
		return
	}
	was, is := celTexts(old), celTexts(new)
	c.addEach(at, Unhandled, "x-kubernetes-validations gets rules, so it may accept less", missingFrom(was, is))
	c.addEach(at, Unhandled, "x-kubernetes-validations loses rules, so it may accept more", missingFrom(is, was))
	if slices.Equal(was, is) && !same(old, new) {
		c.add(at, Description, "the message of a rule in x-kubernetes-validations changes")
	}
}

// celTexts are the rules in the order in which they stand.
func celTexts(of apiextensionsv1.ValidationRules) []string {
	var texts []string
	for _, rule := range of {
		text := strings.Join(strings.Fields(rule.Rule), " ")
		if rule.OptionalOldSelf != nil && *rule.OptionalOldSelf {
			text += " (optionalOldSelf)"
		}
		texts = append(texts, text)
	}
	return texts
}

// junctor compares alternatives as sets. Which direction is safe depends on all of them together, so it is said what
// changes and not which way it goes.
func (c *comparison) junctor(at *path, name string, old, new []schema) {
	if len(old) == 0 && len(new) == 0 || same(old, new) {
		return
	}
	was, is := alternatives(old), alternatives(new)
	c.addEach(at, Unhandled, name+" gets", missingFrom(was, is))
	c.addEach(at, Unhandled, name+" loses", missingFrom(is, was))
}

func alternatives(of []schema) []string {
	var texts []string
	for i := range of {
		bare := of[i].DeepCopy()
		dropTexts(bare, 0)
		texts = append(texts, encoded(bare))
	}
	return texts
}

// dropTexts leaves out what is for people only.
func dropTexts(of *schema, depth int) {
	if of == nil || depth > deepest {
		return
	}
	of.Description, of.Title, of.Example, of.ExternalDocs = "", "", nil, nil
	for name, property := range of.Properties {
		dropTexts(&property, depth+1)
		of.Properties[name] = property
	}
	for _, nested := range [][]schema{of.AllOf, of.AnyOf, of.OneOf} {
		for i := range nested {
			dropTexts(&nested[i], depth+1)
		}
	}
	dropTexts(of.Not, depth+1)
	if of.Items != nil {
		dropTexts(of.Items.Schema, depth+1)
	}
	if of.AdditionalProperties != nil {
		dropTexts(of.AdditionalProperties.Schema, depth+1)
	}
}

// unknown is what is left of a schema without all that the rules look at. In definitions that an API server takes it is
// empty; a later version of the API may have more.
func unknown(of *schema) schema {
	left := *of
	left.Type, left.Format, left.Pattern, left.Nullable, left.Default, left.Enum, left.Required = "", "", "", false, nil, nil, nil
	left.Description, left.Title, left.Example, left.ExternalDocs = "", "", nil, nil
	left.Maximum, left.MaxLength, left.MaxItems, left.MaxProperties = nil, nil, nil, nil
	left.Minimum, left.MinLength, left.MinItems, left.MinProperties = nil, nil, nil, nil
	left.MultipleOf, left.UniqueItems, left.ExclusiveMaximum, left.ExclusiveMinimum = nil, false, false, false
	left.Properties, left.Items, left.AdditionalProperties = nil, nil, nil
	left.AllOf, left.AnyOf, left.OneOf, left.Not = nil, nil, nil, nil
	left.XPreserveUnknownFields, left.XEmbeddedResource, left.XIntOrString = nil, false, false
	left.XListType, left.XListMapKeys, left.XMapType, left.XValidations = nil, nil, nil, nil
	return left
}

// orDefault is what the API server takes a type of a list or map to be. To name it changes nothing.
func orDefault(of *string, usual string) string {
	if of == nil || *of == "" {
		return usual
	}
	return *of
}

// same compares values in which nothing and an empty list are one thing.
func same(a, b any) bool { return reflect.DeepEqual(a, b) || equality.Semantic.DeepEqual(a, b) }

func one(of *schema) []schema {
	if of == nil {
		return nil
	}
	return []schema{*of}
}

func encoded(of any) string {
	text, err := json.Marshal(of)
	if err != nil {
		return fmt.Sprintf("%T that is no JSON", of) // a default or example that the API server refuses
	}
	return string(text)
}

// plainText is a facet in words, be it a pointer or not.
func plainText(of any) string {
	value := reflect.ValueOf(of)
	if value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return "none"
		}
		value = value.Elem()
	}
	switch value.Kind() {
	case reflect.String:
		return quoted(value.String())
	case reflect.Slice:
		if value.Len() == 0 {
			return "none"
		}
		return short(encoded(value.Interface()), longestValue)
	default:
		return fmt.Sprint(value.Interface())
	}
}
