// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"reflect"
)

// scale measures values that are to be written as text. Values of templates may contain themselves, and one value a thousand
// times, so that they are far larger as text than in memory.
type scale struct {
	size, parts int
	deep        bool
}

// weigh says how many bytes a value has at least as text, or ends the templates if that is too large.
func (w *watch) weigh(values ...reflect.Value) (int, error) {
	var s scale
	for _, value := range values {
		s.add(value, 0)
	}
	return w.judge(s)
}

func (w *watch) weighAny(values ...any) (int, error) {
	var s scale
	for _, value := range values {
		s.any(value, 0)
	}
	return w.judge(s)
}

func (w *watch) judge(s scale) (int, error) {
	switch {
	case s.deep:
		return 0, w.tooMuch("a value is too deep to be written: it contains itself, or more than %d values one inside another", maxInside)
	case s.parts > maxParts || s.size > maxText:
		return 0, w.tooMuch("a value is too large to be written: it has more than %d parts or %d MiB", maxParts, maxText>>20)
	}
	return s.size, nil
}

func (s *scale) over(depth int) bool {
	s.parts++
	s.deep = s.deep || depth > maxInside
	return s.deep || s.parts > maxParts || s.size > maxText
}

// any is add for the types that are frequent.
func (s *scale) any(value any, depth int) {
	switch value := value.(type) {
	case nil, bool, int, int64, float64:
		s.size += 8
	case string:
		s.size += len(value)
	case map[string]any:
		if s.over(depth) {
			return
		}
		for key, inner := range value {
			s.size += len(key)
			s.any(inner, depth+1)
		}
	case []any:
		if s.over(depth) {
			return
		}
		for _, inner := range value {
			s.any(inner, depth+1)
		}
	default:
		s.add(reflect.ValueOf(value), depth)
	}
}

func (s *scale) add(value reflect.Value, depth int) {
	switch value.Kind() {
	case reflect.String:
		s.size += value.Len()
	case reflect.Interface, reflect.Pointer:
		if !value.IsNil() && !s.over(depth) {
			s.add(value.Elem(), depth+1)
		}
	case reflect.Map:
		if s.over(depth) {
			return
		}
		for each := value.MapRange(); each.Next(); {
			s.add(each.Key(), depth+1)
			s.add(each.Value(), depth+1)
		}
	case reflect.Slice, reflect.Array:
		s.list(value, depth)
	case reflect.Struct:
		if s.over(depth) {
			return
		}
		for i := range value.NumField() {
			s.add(value.Field(i), depth+1)
		}
	default:
		s.size += 8
	}
}

func (s *scale) list(value reflect.Value, depth int) {
	if s.over(depth) {
		return
	}
	switch value.Type().Elem().Kind() {
	case reflect.Uint8:
		s.size += value.Len()
		return
	case reflect.Int, reflect.Int64, reflect.Float64, reflect.Bool:
		s.size += 8 * value.Len()
		return
	}
	for i := range value.Len() {
		if s.parts > maxParts || s.size > maxText {
			return
		}
		s.add(value.Index(i), depth+1)
	}
}
