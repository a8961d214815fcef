// SPDX-License-Identifier: Apache-2.0

package imgpkg

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/internal/parse"
	"rukpak.io/rukpak/provisioner"
)

// rewriter puts images into objects, as kbld does.
type rewriter struct {
	rules   []searchRule
	known   map[string]string // reference in full -> what it becomes
	exact   map[string]string // overrides of kbld, which compare texts
	used    map[string]bool   // what references have become
	locked  []string          // images of the lock
	unknown []string          // sorted
	kapp    []string          // sorted
	faults  []*provisioner.InputError
}

func newRewriter(t *tools) *rewriter {
	r := &rewriter{rules: slices.Clone(t.rules), known: map[string]string{}, exact: map[string]string{}, used: map[string]bool{}}
	image := searchRule{} // the rule that kbld has of its own, after all others
	image.KeyMatcher = &struct {
		Name string `json:"name"`
		Path []any  `json:"path"`
	}{Name: "image"}
	r.rules = append(r.rules, image)
	for _, one := range t.images.images {
		r.locked = append(r.locked, one.image.Name())
		for _, id := range one.ids {
			r.known[id] = one.image.Name()
		}
	}
	for _, one := range t.overrides {
		r.exact[one.Image] = one.NewImage
	}
	return r
}

func (r *rewriter) rewrite(one parse.Placed) {
	for key := range one.Object.GetAnnotations() {
		if strings.HasPrefix(key, "kapp.k14s.io/") && !slices.Contains(r.kapp, key) {
			r.kapp = append(r.kapp, key)
		}
	}
	slices.Sort(r.kapp)
	r.walk(one, one.Object.Object, nil, r.rules)
	slices.Sort(r.unknown)
}

// walk goes through a value and gives what it becomes. path has names of fields, and indices of lists.
func (r *rewriter) walk(at parse.Placed, value any, path []any, rules []searchRule) any {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			value[key] = r.walk(at, value[key], append(slices.Clip(path), key), rules)
		}
	case []any:
		for i := range value {
			value[i] = r.walk(at, value[i], append(slices.Clip(path), i), rules)
		}
	case string:
		return r.text(at, value, path, rules)
	}
	return value
}

// text applies the first rule that fits.
func (r *rewriter) text(at parse.Placed, text string, path []any, rules []searchRule) any {
	for _, rule := range rules {
		if !rule.fits(text, path) {
			continue
		}
		switch how := rule.UpdateStrategy; {
		case how == nil || how.EntireValue != nil:
			return r.image(text)
		case how.None != nil:
			return text
		case how.JSON != nil:
			return r.nested(at, text, path, how.JSON.SearchRules, json.Marshal)
		case how.YAML != nil:
			return r.nested(at, text, path, how.YAML.SearchRules, yaml.Marshal)
		default:
			return r.image(text)
		}
	}
	return text
}

// nested rewrites what stands as YAML or JSON in a text.
func (r *rewriter) nested(at parse.Placed, text string, path []any, rules []searchRule, encode func(any) ([]byte, error)) string {
	var value any
	var asJSON []byte
	err := parse.Expands([]byte(text))
	if err == nil {
		asJSON, err = yaml.YAMLToJSON([]byte(text))
	}
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(asJSON, &value)
	}
	if err != nil {
		r.faults = append(r.faults, &provisioner.InputError{
			File: at.Place.File, Line: at.Place.Line, Object: provisioner.Describe(at.Object.Object),
			Reason: fmt.Sprintf("a rule of kbld says that there is YAML or JSON at %v, and it is not: %s", path, strings.Join(strings.Fields(err.Error()), " ")),
		})
		return text
	}
	before, _ := json.Marshal(value)
	value = r.walk(at, value, nil, rules)
	if after, _ := json.Marshal(value); string(after) == string(before) {
		return text
	}
	encoded, err := encode(value)
	if err != nil {
		return text
	}
	return string(encoded)
}

// image gives what a reference becomes.
func (r *rewriter) image(text string) string {
	if overridden, is := r.exact[text]; is {
		text = overridden
	}
	reference := full(text)
	if reference == "" {
		return text // it is called image and is none
	}
	if becomes, is := r.known[reference]; is {
		r.used[becomes] = true
		return becomes
	}
	if _, err := name.NewDigest(text); err != nil && !slices.Contains(r.unknown, text) {
		r.unknown = append(r.unknown, text)
	}
	return text
}

// unused are the images of the lock that nothing became. An image may be meant for others, such as a nested bundle.
func (r *rewriter) unused() (images []string) {
	for _, image := range r.locked {
		if !r.used[image] {
			images = append(images, image)
		}
	}
	return images
}

func (s searchRule) fits(text string, path []any) bool {
	if s.KeyMatcher == nil && s.ValueMatcher == nil {
		return false
	}
	if s.KeyMatcher != nil && !s.fitsKey(path) {
		return false
	}
	if s.ValueMatcher == nil {
		return true
	}
	if s.ValueMatcher.Image != "" {
		return text == s.ValueMatcher.Image
	}
	parsed, err := name.ParseReference(text)
	wanted, wrong := name.NewRepository(s.ValueMatcher.ImageRepo)
	return err == nil && wrong == nil && parsed.Context().Name() == wanted.Name()
}

func (s searchRule) fitsKey(path []any) bool {
	if s.KeyMatcher.Name != "" {
		last := ""
		for _, element := range slices.Backward(path) {
			if text, is := element.(string); is {
				last = text
				break
			}
		}
		_, inList := lastOf(path).(int)
		return last == s.KeyMatcher.Name && !inList
	}
	if len(s.KeyMatcher.Path) != len(path) {
		return false
	}
	for i, want := range s.KeyMatcher.Path {
		switch want := want.(type) {
		case string:
			if path[i] != any(want) {
				return false
			}
		case map[string]any:
			index, inList := path[i].(int)
			if all, _ := want["allIndexes"].(bool); !inList || !all && !same(want["index"], index) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// same compares an index of a rule, which may have been decoded as any number.
func same(value any, index int) bool {
	switch value := value.(type) {
	case int64:
		return int(value) == index
	case float64:
		return int(value) == index
	}
	return false
}

func lastOf(path []any) any {
	if len(path) == 0 {
		return nil
	}
	return path[len(path)-1]
}
