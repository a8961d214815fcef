// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// The bounds of a schema that is compared. No definition that an API server takes, at most 1.5 MiB, comes near the first.
const (
	mostFields = 100_000
	deepest    = 200
)

// comparison goes through two schemas side by side. What only the new one has is not looked at: a field that is new
// breaks nobody, unless it is required, which the object around it says.
type comparison struct {
	version  string
	fields   int
	problems []problem
}

func compare(version string, old, new *schema) []problem {
	c := &comparison{version: version}
	switch {
	case reflect.DeepEqual(old, new): // mostly so, and then there is nothing to say, however big it is
	case old == nil:
		c.add(nil, Unhandled, "a schema is added where none was")
	case new == nil:
		c.add(nil, Unhandled, "the schema is removed")
	default:
		c.node(nil, 0, old, new)
	}
	return c.problems
}

func (c *comparison) add(at *path, rule Rule, format string, args ...any) {
	c.problems = append(c.problems, problem{rule: rule, version: c.version, path: at.String(), what: fmt.Sprintf(format, args...)})
}

// addEach adds a problem that consists of several values, of which another definition may have some.
func (c *comparison) addEach(at *path, rule Rule, what string, values []string) {
	if len(values) > 0 {
		c.problems = append(c.problems, problem{rule: rule, version: c.version, path: at.String(), what: what, values: values})
	}
}

func (c *comparison) node(at *path, depth int, old, new *schema) {
	c.fields++
	if depth > deepest || c.fields > mostFields {
		if depth > deepest || c.fields == mostFields+1 {
			c.add(at, Unhandled, "the schema has more than %d levels or %d fields: what is further in is not compared", deepest, mostFields)
		}
		return
	}
	c.own(at, old, new)
	c.bounds(at, old, new)
	c.rest(at, old, new)
	c.properties(at, depth, old, new)
	c.items(at, depth, old, new)
	c.values(at, depth, old, new)
}

func (c *comparison) properties(at *path, depth int, old, new *schema) {
	for _, name := range slices.Sorted(maps.Keys(old.Properties)) {
		was := old.Properties[name]
		is, stays := new.Properties[name]
		if !stays {
			c.removed(at.field(name), &was)
			continue
		}
		c.node(at.field(name), depth+1, &was, &is)
	}
}

// removed says once that a field is gone with all that is below it.
func (c *comparison) removed(at *path, old *schema) {
	what := "the field is removed"
	if below := len(old.Properties); below == 1 {
		what += ", with 1 field below it"
	} else if below > 1 {
		what += fmt.Sprintf(", with %d fields below it", below)
	}
	c.add(at, ExistingFieldRemoval, "%s", what)
}

func (c *comparison) items(at *path, depth int, old, new *schema) {
	if old.Items == nil {
		if new.Items != nil {
			c.add(at, Unhandled, "items are described where they were not: it may accept less")
		}
		return
	}
	if new.Items == nil {
		c.add(at.items(), ExistingFieldRemoval, "the description of the items is removed")
		return
	}
	if old.Items.Schema != nil && new.Items.Schema != nil {
		c.node(at.items(), depth+1, old.Items.Schema, new.Items.Schema)
	}
	if (old.Items.Schema == nil) != (new.Items.Schema == nil) || len(old.Items.JSONSchemas) != len(new.Items.JSONSchemas) {
		c.add(at, Unhandled, "items change between one schema and several")
		return
	}
	for i := range old.Items.JSONSchemas { // no API server takes them
		c.node(at.items(), depth+1, &old.Items.JSONSchemas[i], &new.Items.JSONSchemas[i])
	}
}

// values compares what is said of the keys that are not named.
func (c *comparison) values(at *path, depth int, old, new *schema) {
	was, is := old.AdditionalProperties, new.AdditionalProperties
	switch {
	case was == nil && is == nil:
	case was == nil && is.Schema != nil:
		c.add(at, Unhandled, "additionalProperties is added")
	case was == nil:
		c.add(at, Unhandled, "additionalProperties: %v is added", is.Allows)
	case is == nil && was.Schema != nil:
		c.add(at.values(), ExistingFieldRemoval, "additionalProperties is removed: the values of the map are no longer known")
	case is == nil:
		c.add(at, Unhandled, "additionalProperties: %v is removed", was.Allows)
	case was.Schema != nil && is.Schema != nil:
		c.node(at.values(), depth+1, was.Schema, is.Schema)
	case was.Schema != nil || is.Schema != nil:
		c.add(at, Unhandled, "additionalProperties changes between a schema and %v", was.Allows && is.Allows)
	case was.Allows != is.Allows:
		c.add(at, Unhandled, "additionalProperties changes from %v to %v", was.Allows, is.Allows)
	}
}
