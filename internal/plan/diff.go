// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/ownership"
)

const (
	// MaxFields bounds the fields that are told of one object.
	MaxFields = 200
	// MaxValue bounds a value that is told, in bytes of JSON. A longer one is cut and says so.
	MaxValue = 4096
)

// notOurs are fields that say nothing of what a revision wants: the API server and controllers write them.
var notOurs = [][]string{
	{"status"}, {"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "uid"},
	{"metadata", "creationTimestamp"}, {"metadata", "selfLink"}, {"metadata", "deletionTimestamp"}, {"metadata", "deletionGracePeriodSeconds"},
	{"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"}, // a copy of all, also of what is secret
	{"metadata", "annotations", "deployment.kubernetes.io/revision"},
	{"metadata", "labels", ownership.LabelInstanceUID}, {"metadata", "labels", ownership.LabelInstanceName},
	{"metadata", "labels", ownership.LabelInstanceNamespace},
}

// fieldsBetween are the differences of two states of an object, at most MaxFields, and how many more there are.
func fieldsBetween(live, after *unstructured.Unstructured) ([]Field, int) {
	d := &difference{secret: isSecret(after)}
	d.maps("", relevant(live), relevant(after))
	slices.SortFunc(d.fields, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
	if more := len(d.fields) - MaxFields; more > 0 {
		return d.fields[:MaxFields], more
	}
	return d.fields, 0
}

// relevant is a copy without the fields of notOurs. It shares values with object, as they are only read.
func relevant(object *unstructured.Unstructured) map[string]any {
	out := maps.Clone(object.Object)
	for _, path := range notOurs {
		drop(out, path)
	}
	return out
}

// drop removes a field, copying the maps on the way to it, and maps that are empty then.
func drop(from map[string]any, path []string) {
	value, has := from[path[0]]
	if !has || len(path) == 1 {
		delete(from, path[0])
		return
	}
	below, ok := value.(map[string]any)
	if !ok {
		return
	}
	below = maps.Clone(below)
	if drop(below, path[1:]); len(below) == 0 {
		delete(from, path[0])
		return
	}
	from[path[0]] = below
}

type difference struct {
	secret bool
	fields []Field
}

func (d *difference) maps(path string, old, new map[string]any) {
	keys := slices.Collect(maps.Keys(old))
	for key := range new {
		if _, both := old[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		before, had := old[key]
		after, has := new[key]
		d.values(join(path, key), before, had, after, has)
	}
}

func (d *difference) values(path string, old any, had bool, new any, has bool) {
	if d.secret && isSecretPath(path) {
		d.hidden(path, old, new)
		return
	}
	oldMap, isMap := old.(map[string]any)
	newMap, areMaps := new.(map[string]any)
	oldList, isList := old.([]any)
	newList, areLists := new.([]any)
	switch {
	case isMap && areMaps:
		d.maps(path, oldMap, newMap)
	case isList && areLists:
		d.lists(path, oldList, newList)
	case had && has && equal(old, new):
	default:
		d.tell(path, old, had, new, has)
	}
}

func (d *difference) tell(path string, old any, had bool, new any, has bool) {
	field := Field{Path: path}
	if had {
		field.Old = told(old)
	}
	if has {
		field.New = told(new)
	}
	d.fields = append(d.fields, field)
}

// lists compares lists of mappings item by item if these have a key, and others as a whole.
func (d *difference) lists(path string, old, new []any) {
	if equal(old, new) {
		return
	}
	key := keyOf(old, new)
	if key == nil {
		d.tell(path, old, true, new, true)
		return
	}
	before, after, known := byKey(old, key), byKey(new, key), len(d.fields)
	names := slices.Collect(maps.Keys(before))
	for name := range after {
		if _, both := before[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		was, had := before[name]
		is, has := after[name]
		d.values(path+"["+name+"]", was, had, is, has)
	}
	if len(d.fields) == known { // only the order differs
		d.tell(path, old, true, new, true)
	}
}

// listKeys are fields by which Kubernetes, and people, tell items of lists, the best first.
var listKeys = [][]string{
	{"name"}, {"containerPort", "protocol"}, {"containerPort"}, {"port", "protocol"}, {"port"}, {"mountPath"}, {"devicePath"}, {"topologyKey", "whenUnsatisfiable"},
	{"key"}, {"type"}, {"ip"}, {"uid"},
}

// keyOf finds fields that all items of both lists have, with another value in each of a list; nil if there are none.
func keyOf(lists ...[]any) []string {
	for _, key := range listKeys {
		fits := true
		for _, list := range lists {
			fits = fits && len(byKey(list, key)) == len(list)
		}
		if fits {
			return key
		}
	}
	return nil
}

// byKey are the items of a list that have the key, by it in words.
func byKey(list []any, key []string) map[string]any {
	out := make(map[string]any, len(list))
	for _, item := range list {
		fields, _ := item.(map[string]any)
		var words []string
		for _, field := range key {
			switch value := fields[field].(type) {
			case string:
				words = append(words, field+"="+value)
			case int64:
				words = append(words, field+"="+strconv.FormatInt(value, 10))
			}
		}
		if len(words) == len(key) {
			out[strings.Join(words, ",")] = item
		}
	}
	return out
}

// equal compares values of JSON. Empty and absent are not the same here, but numbers that are written alike are.
func equal(a, b any) bool {
	one, err := encode(a)
	if err != nil {
		return false
	}
	two, err := encode(b)
	return err == nil && bytes.Equal(one, two)
}

func encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// told is a value as JSON, cut if it is long.
func told(value any) json.RawMessage {
	encoded, err := encode(value)
	if err != nil {
		encoded, _ = encode(fmt.Sprint(value)) // text always encodes
	}
	if len(encoded) <= MaxValue {
		return encoded
	}
	text, isText := value.(string)
	if !isText {
		text = string(encoded)
	}
	length := len(text)
	for text = text[:min(length, MaxValue/2)]; !utf8.ValidString(text); {
		text = text[:len(text)-1]
	}
	encoded, _ = encode(fmt.Sprintf("%s ... (%d bytes)", text, length))
	return encoded
}

func join(path, name string) string {
	if strings.ContainsAny(name, ".[]") {
		return path + "[" + strconv.Quote(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}
