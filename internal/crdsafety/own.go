// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// own applies the rules that look at one field by itself, but for limits.
func (c *comparison) own(at *path, old, new *schema) {
	if old.Type != new.Type {
		c.add(at, Type, "type changes from %s to %s", quoted(old.Type), quoted(new.Type))
	}
	c.addEach(at, Required, "fields become required", missingFrom(old.Required, new.Required))
	c.enum(at, old.Enum, new.Enum)
	c.initial(at, old.Default, new.Default)
	c.pattern(at, old.Pattern, new.Pattern)
	switch {
	case !old.Nullable && new.Nullable:
		c.add(at, Nullable, "becomes nullable: readers may meet a null")
	case old.Nullable && !new.Nullable:
		c.add(at, Nullable, "is no longer nullable")
	}
	if textsDiffer(old, new) {
		c.add(at, Description, "text for people changes")
	}
}

func (c *comparison) enum(at *path, old, new []apiextensionsv1.JSON) {
	switch {
	case len(new) == 0: // it accepts every value
	case len(old) == 0:
		c.add(at, Enum, "an enum is added: %s", joined(jsonTexts(new)))
	default:
		c.addEach(at, Enum, "enum loses values", missingFrom(jsonTexts(new), jsonTexts(old)))
	}
}

func (c *comparison) initial(at *path, old, new *apiextensionsv1.JSON) {
	switch {
	case old == nil && new == nil:
	case old == nil:
		c.add(at, Default, "default %s is added", jsonText(*new))
	case new == nil:
		c.add(at, Default, "default %s is removed", jsonText(*old))
	case canonical(old.Raw) != canonical(new.Raw):
		c.add(at, Default, "default changes from %s to %s", jsonText(*old), jsonText(*new))
	}
}

func (c *comparison) pattern(at *path, old, new string) {
	switch {
	case old == new:
	case old == "":
		c.add(at, Pattern, "pattern %s is added", quoted(new))
	case new == "":
		c.add(at, Pattern, "pattern %s is removed", quoted(old))
	default:
		c.add(at, Pattern, "pattern changes from %s to %s", quoted(old), quoted(new))
	}
}

func textsDiffer(old, new *schema) bool {
	return old.Description != new.Description || old.Title != new.Title ||
		!same(old.Example, new.Example) || !same(old.ExternalDocs, new.ExternalDocs)
}

// missingFrom are those of wanted that are not in there.
func missingFrom(there, wanted []string) []string {
	var missing []string
	for _, name := range wanted {
		if !slices.Contains(there, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

func quoted(text string) string {
	if text == "" {
		return "none"
	}
	return strconv.Quote(short(text, longestValue))
}

// joined is a list of values, each cut, which ends where a message would be cut anyway.
func joined(texts []string) string {
	var out strings.Builder
	for i, text := range texts {
		if i > 0 {
			out.WriteString(", ")
		}
		out.WriteString(short(text, longestValue))
		if out.Len() > longestMessage {
			break
		}
	}
	return out.String()
}

func jsonText(of apiextensionsv1.JSON) string { return short(canonical(of.Raw), longestValue) }

func jsonTexts(of []apiextensionsv1.JSON) []string {
	var texts []string
	for _, value := range of {
		texts = append(texts, canonical(value.Raw))
	}
	return texts
}

// canonical is a JSON value written in one way, whatever its spaces and the order of its keys. What is not JSON stays
// as it is: the API server refuses it.
func canonical(raw []byte) string {
	if len(raw) == 0 {
		return "null"
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return string(raw)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return string(raw)
	}
	return string(encoded)
}
