// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// object reads fields of an object whose form nobody has checked. The first field that is not of the form that it
// should have is noted in malformed; reading goes on with its zero value.
type object struct {
	content   map[string]any
	malformed string
}

func (o *object) bad(path []string, want string) {
	if o.malformed == "" {
		o.malformed = strings.Join(path, ".") + " is not " + want
	}
}

// field returns a value that is there and not null.
func (o *object) field(path ...string) (any, bool) {
	value, found, err := unstructured.NestedFieldNoCopy(o.content, path...)
	if err != nil {
		o.bad(path[:len(path)-1], "an object")
	}
	return value, found && err == nil && value != nil
}

// number returns an integer, or what stands for one that is not there.
func (o *object) number(absent int64, path ...string) int64 {
	value, found := o.field(path...)
	if !found {
		return absent
	}
	switch n := value.(type) {
	case int64:
		return n
	case int:
		return int64(n)
	case float64:
		return int64(n)
	}
	o.bad(path, "a number")
	return absent
}

// text returns a string, "" if it is not there.
func (o *object) text(path ...string) string {
	value, found := o.field(path...)
	if !found {
		return ""
	}
	text, ok := value.(string)
	if !ok {
		o.bad(path, "a string")
	}
	return text
}

func (o *object) flag(path ...string) bool {
	value, found := o.field(path...)
	if !found {
		return false
	}
	flag, ok := value.(bool)
	if !ok {
		o.bad(path, "true or false")
	}
	return flag
}

// items returns the elements of a list of objects.
func (o *object) items(path ...string) []map[string]any {
	value, found := o.field(path...)
	if !found {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		o.bad(path, "a list")
		return nil
	}
	out := make([]map[string]any, 0, len(list))
	for _, element := range list {
		item, ok := element.(map[string]any)
		if !ok {
			o.bad(path, "a list of objects")
			return nil
		}
		out = append(out, item)
	}
	return out
}

// condition is one of status.conditions. A condition that is not there has no status.
type condition struct {
	status, reason, message string
	observed                int64 // generation that it speaks of, -1 if it does not say
}

func (c condition) isTrue() bool  { return c.status == "True" }
func (c condition) isFalse() bool { return c.status == "False" }

// condition returns the condition of a type. Some custom resources have conditions of another form: these are
// passed over.
func (o *object) condition(conditionType string) condition {
	value, _, _ := unstructured.NestedFieldNoCopy(o.content, "status", "conditions")
	list, _ := value.([]any)
	for _, element := range list {
		item, _ := element.(map[string]any)
		if item["type"] != conditionType {
			continue
		}
		c := &object{content: item}
		return condition{
			status: c.text("status"), reason: c.text("reason"), message: line(c.text("message")),
			observed: c.number(-1, "observedGeneration"),
		}
	}
	return condition{observed: -1}
}

func (o *object) generation() int64 { return o.number(0, "metadata", "generation") }

// stale is the result for an object whose status speaks of an older generation, nil for all others. Where a status says
// nothing of generations, it is taken at its word.
func (o *object) stale() *Result {
	generation := o.generation()
	value, _, _ := unstructured.NestedFieldNoCopy(o.content, "status", "observedGeneration")
	switch value.(type) {
	case int64, int, float64:
	default: // absent, or of a custom resource that means something else by it
		return nil
	}
	if generation == 0 || o.number(0, "status", "observedGeneration") == generation {
		return nil
	}
	return &Result{InProgress, fmt.Sprintf("generation %d is not observed yet", generation)}
}

// unobserved is the result for an object of a kind that always says which generation it observed, and has not.
func (o *object) unobserved() *Result {
	if _, found := o.field("status", "observedGeneration"); found || o.generation() == 0 {
		return nil
	}
	return &Result{InProgress, fmt.Sprintf("generation %d is not observed yet", o.generation())}
}

// line makes one line of bounded length of what others wrote.
func line(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
