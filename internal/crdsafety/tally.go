// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The bounds of what is kept, however many custom resources there are.
const (
	mostTallies = 200 // different faults
	mostNames   = 3   // custom resources that are named for a fault
)

// versioned is a fault in one version.
type versioned struct {
	fault
	version string
}

// tally is how many custom resources have a fault, and some of them.
type tally struct {
	count int
	names []string
}

// check is a version against which objects are validated: by the new schema, and where that has something against one, by
// the old, to know what is new.
type check struct {
	version string
	new     *validator
	old     func() *validator // nil if the old definition does not have the version, or it cannot be used
}

// validators makes the schemas ready. One that cannot be used is a finding: the API server would not take it.
func (c *liveCheck) validators(of reading) []check {
	var checks []check
	for _, version := range of.against {
		made := check{version: version.Name}
		var err error
		if made.new, err = newValidator(c.after, version); err != nil {
			c.note(fault{LiveUnread, "", "custom resources cannot be validated, since the new schema cannot be used: " + err.Error()}, version.Name, nil)
			continue
		}
		made.old = sync.OnceValue(func() *validator {
			if before := versionOf(c.before, version.Name); before != nil {
				if old, err := newValidator(c.before, before); err == nil {
					return old
				}
			}
			return nil
		})
		checks = append(checks, made)
	}
	return checks
}

// object validates one custom resource against all versions.
func (c *liveCheck) object(ctx context.Context, object *unstructured.Unstructured, checks []check) {
	for _, against := range checks {
		faults := c.faults(ctx, against.new, object)
		if len(faults) == 0 {
			continue
		}
		if old := against.old(); old != nil {
			known := c.faults(ctx, old, object)
			faults = slices.DeleteFunc(faults, func(f fault) bool { return slices.Contains(known, f) })
		}
		for _, f := range compact(faults) {
			c.note(f, against.version, object)
		}
	}
}

func (c *liveCheck) faults(ctx context.Context, by *validator, object *unstructured.Unstructured) []fault {
	own, err := copied(object.Object)
	if err != nil {
		return []fault{{LiveInvalid, "", err.Error()}}
	}
	return by.faults(ctx, own)
}

// compact leaves each fault once: a list may have it at many places.
func compact(faults []fault) []fault {
	var once []fault
	for _, f := range faults {
		if !slices.Contains(once, f) {
			once = append(once, f)
		}
	}
	return once
}

// note counts a fault, of a custom resource if object is not nil.
func (c *liveCheck) note(f fault, version string, object *unstructured.Unstructured) {
	if c.policy.Action(f.rule) == Allow {
		return
	}
	key := versioned{f, version}
	found := c.tallies[key]
	if found == nil {
		if len(c.tallies) >= mostTallies {
			c.left[f.rule]++
			return
		}
		found = &tally{}
		c.tallies[key] = found
	}
	found.count++
	if object != nil && len(found.names) < mostNames {
		found.names = append(found.names, nameOf(object))
	}
}

func nameOf(object *unstructured.Unstructured) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace + "/" + object.GetName()
	}
	return object.GetName()
}

func (c *liveCheck) findings() []Finding {
	var findings []Finding
	add := func(rule Rule, version, path, message string) {
		findings = append(findings, Finding{
			Rule: rule, CRD: c.after.Name, Version: version, Path: path, Action: c.policy.Action(rule), Message: short(message, longestMessage),
		})
	}
	for key, counted := range c.tallies {
		add(key.rule, key.version, key.path, counted.prefix()+key.message)
	}
	for rule, count := range c.left {
		add(rule, "", "", fmt.Sprintf("%d further faults of custom resources are not told one by one", count))
	}
	return Sort(findings)
}

// prefix names who has the fault.
func (t *tally) prefix() string {
	switch {
	case len(t.names) == 0:
		return ""
	case t.count > len(t.names):
		return fmt.Sprintf("%d custom resources, such as %s: ", t.count, strings.Join(t.names, ", "))
	case t.count > 1:
		return fmt.Sprintf("custom resources %s: ", strings.Join(t.names, ", "))
	}
	return fmt.Sprintf("custom resource %s: ", t.names[0])
}
