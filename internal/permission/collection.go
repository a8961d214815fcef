// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
)

// collection gathers values once each, with the objects that they come from beside them.
type collection[T any] struct {
	objects func(*T) *[]string
	found   map[string]*T // by their encoding without objects, which is their order, too
}

func newCollection[T any](objects func(*T) *[]string) *collection[T] {
	return &collection[T]{objects: objects, found: map[string]*T{}}
}

// add takes a value without objects.
func (c *collection[T]) add(value T, object string) {
	key := encoded(value)
	if c.found[key] == nil {
		c.found[key] = &value
	}
	into := c.objects(c.found[key])
	*into = append(*into, object)
}

func (c *collection[T]) sorted() []T {
	var all []T
	for _, key := range slices.Sorted(maps.Keys(c.found)) {
		value := *c.found[key]
		objects := c.objects(&value)
		slices.Sort(*objects)
		*objects = slices.Compact(*objects)
		all = append(all, value)
	}
	return all
}

// encoded writes a value that holds nothing but texts.
func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // cannot be, with texts only
	}
	return string(text)
}

func digestOf(value any) string {
	sum := sha256.Sum256([]byte(encoded(value)))
	return hex.EncodeToString(sum[:16])
}
