// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"math"
	"strconv"
)

// bounds applies the rules about limits. One that gets wider, or goes away, is no problem.
func (c *comparison) bounds(at *path, old, new *schema) {
	c.upper(at, Maximum, old.Maximum, new.Maximum)
	c.upper(at, MaxLength, number(old.MaxLength), number(new.MaxLength))
	c.upper(at, MaxItems, number(old.MaxItems), number(new.MaxItems))
	c.upper(at, MaxProperties, number(old.MaxProperties), number(new.MaxProperties))
	c.lower(at, Minimum, old.Minimum, new.Minimum)
	c.lower(at, MinLength, number(old.MinLength), number(new.MinLength))
	c.lower(at, MinItems, number(old.MinItems), number(new.MinItems))
	c.lower(at, MinProperties, number(old.MinProperties), number(new.MinProperties))
}

func (c *comparison) upper(at *path, rule Rule, old, new *float64) {
	switch {
	case new == nil:
	case old == nil:
		c.limit(at, rule, string(rule)+" "+digits(*new)+" is added", -*new, true)
	case *new < *old:
		c.limit(at, rule, string(rule)+" decreases from "+digits(*old)+" to "+digits(*new), *old-*new, false)
	}
}

func (c *comparison) lower(at *path, rule Rule, old, new *float64) {
	switch {
	case new == nil:
	case old == nil:
		c.limit(at, rule, string(rule)+" "+digits(*new)+" is added", *new, true)
	case *new > *old:
		c.limit(at, rule, string(rule)+" increases from "+digits(*old)+" to "+digits(*new), *new-*old, false)
	}
}

// limit adds a problem with its degree, so that a limit which was worse in the old definition is not held against the new.
// A limit where none was is graded by itself: it has another key than one that moved.
func (c *comparison) limit(at *path, rule Rule, what string, degree float64, added bool) {
	p := problem{rule: rule, version: c.version, path: at.String(), what: what, degree: degree, graded: true, added: added}
	c.problems = append(c.problems, p)
}

func number(of *int64) *float64 {
	if of == nil {
		return nil
	}
	value := float64(*of)
	return &value
}

func digits(of float64) string {
	if of == math.Trunc(of) && math.Abs(of) < 1e15 {
		return strconv.FormatInt(int64(of), 10)
	}
	return strconv.FormatFloat(of, 'g', -1, 64)
}
