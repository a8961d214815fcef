// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxPhaseName is the longest name of a phase, in bytes. It stands in events, and in the status of each task.
const maxPhaseName = 63

// maxBreaks is how many faults of a result one error lists.
const maxBreaks = 20

var moments = []Moment{OnInstall, OnUpgrade, OnRollback, OnTest, OnTeardown, OnTeardownFinish}

// Check says in which ways a result breaks the contract, one each line, or nil: what plan and activation rely on. The
// conformance suite asks for it, and RukPak of every result that comes from outside of its own process.
func (r Result) Check() error {
	c := resultCheck{seen: map[resultID]bool{}, phases: map[string]bool{}}
	for _, phase := range r.Phases {
		c.phase(phase)
	}
	if !slices.IsSorted(r.Varies) {
		c.breaks("Varies is not sorted: %q", r.Varies)
	}
	if r.ConfigSchema != nil && !json.Valid(r.ConfigSchema) {
		c.breaks("ConfigSchema is no JSON")
	}
	if r.Nothing != (c.objects == 0) {
		c.breaks("there are %d objects, and Nothing is %t; to have none is an error unless it is meant", c.objects, r.Nothing)
	}
	return errors.Join(c.faults...)
}

type resultID struct {
	kind            schema.GroupKind
	namespace, name string
}

type resultCheck struct {
	seen    map[resultID]bool // whether it may be there again: a task may, in another phase
	phases  map[string]bool
	objects int
	faults  []error
}

func (c *resultCheck) breaks(format string, args ...any) {
	switch len(c.faults) {
	case maxBreaks:
		c.faults = append(c.faults, errors.New("and more"))
	case maxBreaks + 1:
	default:
		c.faults = append(c.faults, fmt.Errorf(format, args...))
	}
}

func (c *resultCheck) phase(p Phase) {
	if p.Name == "" || c.phases[p.Name] || len(p.Objects) == 0 {
		c.breaks("phase %q: the name is empty or there twice, or the phase has no objects", p.Name)
	}
	c.phases[p.Name] = true
	if len(p.Name) > maxPhaseName || strings.ContainsFunc(p.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		c.breaks("phase %.70q: the name has more than %d bytes, or something in it that cannot be printed", p.Name, maxPhaseName)
	}
	for i, moment := range p.On {
		if !slices.Contains(moments, moment) || slices.Contains(p.On[:i], moment) {
			c.breaks("phase %q: %q is no moment, or is there twice", p.Name, moment)
		}
	}
	here := map[resultID]bool{}
	for i, object := range p.Objects {
		c.objects++
		if object == nil || object.Object == nil {
			c.breaks("phase %q: object %d of it is nil", p.Name, i)
			continue
		}
		c.object(p, object, here)
	}
}

// object checks one object. here are those before it in its phase.
func (c *resultCheck) object(p Phase, object *unstructured.Unstructured, here map[resultID]bool) {
	if err := plainJSON(object.Object); err != nil {
		c.breaks("phase %q: %s: %w", p.Name, Describe(object.Object), err)
		return
	}
	if fault := Check(object.Object); fault != "" {
		c.breaks("phase %q: %s: %s", p.Name, Describe(object.Object), fault)
		return
	}
	id := idOf(object)
	isTask := len(p.On) > 0
	wasTask, twice := c.seen[id]
	if here[id] || twice && !(wasTask && isTask) {
		c.breaks("phase %q: %s is there twice", p.Name, Describe(object.Object))
	}
	here[id], c.seen[id] = true, isTask
}

func idOf(object *unstructured.Unstructured) resultID {
	return resultID{kind: object.GroupVersionKind().GroupKind(), namespace: object.GetNamespace(), name: object.GetName()}
}

// plainJSON finds values that unstructured objects cannot hold: DeepCopy panics on them.
func plainJSON(value any) error {
	switch value := value.(type) {
	case nil, string, bool, int64, float64:
		return nil
	case map[string]any:
		for key, field := range value {
			if err := plainJSON(field); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		return nil
	case []any:
		for _, item := range value {
			if err := plainJSON(item); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("is a %T, which is no value of JSON as encoding/json gives it to unstructured", value)
}
