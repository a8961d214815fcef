// SPDX-License-Identifier: Apache-2.0

package crdsafety

// Rule is the name of one kind of change.
type Rule string

// The rules about a whole definition.
const (
	// Scope: Namespaced becomes Cluster, or the other way round.
	Scope Rule = "scope"
	// StoredVersionRemoval: a version of status.storedVersions is not in the new definition.
	StoredVersionRemoval Rule = "storedVersionRemoval"
	// ExistingFieldRemoval: a field of a version is not in the same version of the new definition, or not in a newer
	// served version, which has no webhook to carry it over.
	ExistingFieldRemoval Rule = "existingFieldRemoval"
)

// The rules about one field, each for the same version of both definitions and from each served version of the new one to
// each newer served version of it. A limit that gets wider or goes away is no finding, but for Default, Pattern,
// Nullable and Unhandled.
const (
	// Type: the type changes.
	Type Rule = "type"
	// Required: a field becomes required.
	Required Rule = "required"
	// Enum: an enum is added where none was, or loses values.
	Enum Rule = "enum"
	// Default: a default is added, changed or removed.
	Default Rule = "default"
	// Maximum is added or decreases; likewise those below.
	Maximum       Rule = "maximum"
	MaxLength     Rule = "maxLength"
	MaxItems      Rule = "maxItems"
	MaxProperties Rule = "maxProperties"
	// Minimum is added or increases; likewise those below.
	Minimum       Rule = "minimum"
	MinLength     Rule = "minLength"
	MinItems      Rule = "minItems"
	MinProperties Rule = "minProperties"
	// Pattern is added, changed or removed.
	Pattern Rule = "pattern"
	// Nullable: a field becomes nullable, or is no longer.
	Nullable Rule = "nullable"
	// Description: text for people changes: description, title, example, external documents, the message of a CEL rule.
	Description Rule = "description"
	// Unhandled: any other difference of the schemas, such as a CEL rule, a format, a list type, anyOf.
	Unhandled Rule = "unhandled"
)

// The rules about live custom resources.
const (
	// LiveInvalid: a custom resource is not valid in the new definition, and was not invalid for that reason before.
	LiveInvalid Rule = "customResourceInvalid"
	// LivePruned: a custom resource has fields that the new definition does not know. They would be lost.
	LivePruned Rule = "customResourcePruned"
	// LiveUnread: custom resources cannot be read, be it for a dead conversion webhook, missing permissions or the time it
	// takes, so it is not known what becomes of them. It only warns by default: the new version may be the repair.
	LiveUnread Rule = "customResourceUnread"
)

// defaults are the actions of all rules, in the order in which they are listed to people.
var defaults = []struct {
	rule   Rule
	action Action
}{
	{Scope, Block}, {StoredVersionRemoval, Block}, {ExistingFieldRemoval, Block},
	{Type, Block}, {Required, Block}, {Enum, Block}, {Default, Block},
	{Maximum, Block}, {MaxLength, Block}, {MaxItems, Block}, {MaxProperties, Block},
	{Minimum, Block}, {MinLength, Block}, {MinItems, Block}, {MinProperties, Block},
	{Pattern, Block}, {Nullable, Block}, {Description, Allow}, {Unhandled, Block},
	{LiveInvalid, Block}, {LivePruned, Block}, {LiveUnread, Warn},
}

// Rules are all rules, in the order in which they are documented.
func Rules() []Rule {
	var all []Rule
	for _, entry := range defaults {
		all = append(all, entry.rule)
	}
	return all
}
