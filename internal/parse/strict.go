// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"rukpak.io/rukpak/provisioner"
)

// Strict reads parameters or a configuration, which may be absent. It is strict, also about upper and lower case, so that a
// mistyped option is not taken for none. what is "parameters" or "config", and known lists the fields that there are.
func Strict(raw json.RawMessage, into any, what, known string) error {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || string(trimmed) == "null" {
		return nil
	}
	strict, err := kjson.UnmarshalStrict(raw, into)
	switch {
	case err != nil:
		return &provisioner.InputError{File: what, Reason: WrongType(err, into)}
	case len(strict) > 0:
		return &provisioner.InputError{File: what, Reason: UnknownField(strict[0], into, known)}
	}
	return nil
}

var (
	wrongType = regexp.MustCompile(`^cannot unmarshal (\w+)(?: \S+)? into Go (?:struct field \w+\.(\S+)|value) of type (\S+)$`)
	unknown   = regexp.MustCompile(`^(?:unknown|duplicate) field "(?:(.*)\.)?[^."]*"$`)
	index     = regexp.MustCompile(`\[\d+\]`)
)

// WrongType says in words of YAML what a decoder of JSON says in those of Go: "images.newTag is a number, and has to be a text:
// put it in quotes".
func WrongType(err error, into any) string {
	text := strings.TrimPrefix(err.Error(), "json: ")
	found := wrongType.FindStringSubmatch(text)
	if found == nil {
		return text
	}
	field, is, want := found[2], kindOf(found[1]), kindOf(found[3])
	if first, rest, below := strings.Cut(field, "."); below && !slices.Contains(fieldsAt(reflect.TypeOf(into), nil), first) {
		field = rest // a struct that is embedded has a name in Go only
	}
	if field == "" {
		field = "it"
	}
	said := fmt.Sprintf("%s is %s, and has to be %s", field, is, want)
	if want == "a text" && (is == "a number" || is == "true or false") {
		said += ": put it in quotes"
	}
	return said
}

// kindOf names a kind of JSON or a type of Go.
func kindOf(word string) string {
	switch {
	case word == "string":
		return "a text"
	case word == "bool":
		return "true or false"
	case word == "array", strings.HasPrefix(word, "[]"):
		return "a list"
	case word == "number", strings.HasPrefix(word, "int"), strings.HasPrefix(word, "uint"), strings.HasPrefix(word, "float"):
		return "a number"
	default:
		return "a mapping"
	}
}

// UnknownField adds to what a strict decoder says of a field which ones there are: known at the top, and those of the type
// further down.
func UnknownField(err error, into any, known string) string {
	text := err.Error()
	found := unknown.FindStringSubmatch(text)
	if found == nil || strings.HasPrefix(text, "duplicate") {
		return text
	}
	if found[1] == "" {
		return text + ": there are " + known
	}
	if fields := fieldsAt(reflect.TypeOf(into), strings.Split(index.ReplaceAllString(found[1], ""), ".")); len(fields) > 0 {
		return text + ": there are " + strings.Join(fields, ", ")
	}
	return text
}

// fieldsAt are the fields of JSON that the type has at a path; none if it is no struct there.
func fieldsAt(of reflect.Type, path []string) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	switch {
	case of.Kind() == reflect.Map && len(path) > 0:
		return fieldsAt(of.Elem(), path[1:])
	case of.Kind() != reflect.Struct:
		return nil
	case len(path) == 0:
		return fieldsOf(of)
	}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == path[0] {
			return fieldsAt(field.Type, path[1:])
		}
		if !field.Anonymous || name != "" {
			continue
		}
		if below := fieldsAt(field.Type, path); len(below) > 0 {
			return below
		}
	}
	return nil
}

// fieldsOf are those of a struct, with those of the structs that it embeds.
func fieldsOf(of reflect.Type) (names []string) {
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			names = append(names, fieldsAt(field.Type, nil)...)
		case name != "" && name != "-":
			names = append(names, name)
		}
	}
	return names
}
