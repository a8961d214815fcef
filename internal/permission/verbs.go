// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"math/bits"
	"slices"
)

// verbs is a set of verbs. It is small, since there are as many as there are things in all roles.
type verbs struct {
	known uint32   // a bit for each of knownVerbs
	other []string // sorted, never changed once it is there
}

// knownVerbs are those that are met often; the first is the wildcard.
var knownVerbs = []string{
	"*", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "bind", "escalate",
	"impersonate", "approve", "sign", "attest", "post", "put", "head", "options", "proxy",
}

const anyVerb = 1 // the bit of "*"

func verbsOf(verb string) verbs {
	if i := slices.Index(knownVerbs, verb); i >= 0 {
		return verbs{known: 1 << i}
	}
	return verbs{other: []string{verb}}
}

func (v verbs) empty() bool { return v.known == 0 && len(v.other) == 0 }

func (v verbs) any() bool { return v.known&anyVerb != 0 }

func (v verbs) union(o verbs) verbs {
	out := verbs{known: v.known | o.known, other: v.other}
	switch {
	case len(o.other) == 0:
	case len(v.other) == 0:
		out.other = o.other
	default:
		out.other = append(slices.Clone(v.other), o.other...)
		slices.Sort(out.other)
		out.other = slices.Compact(out.other)
	}
	return out
}

// minus leaves out what o allows.
func (v verbs) minus(o verbs) verbs {
	if o.any() {
		return verbs{}
	}
	out := verbs{known: v.known &^ o.known, other: v.other}
	if len(v.other) > 0 && len(o.other) > 0 {
		out.other = slices.DeleteFunc(slices.Clone(v.other), func(verb string) bool { return slices.Contains(o.other, verb) })
	}
	return out
}

// canonical leaves out what the wildcard says already.
func (v verbs) canonical() verbs {
	if v.any() {
		return verbs{known: anyVerb}
	}
	return v
}

func (v verbs) each(f func(string)) {
	for left := v.known; left != 0; left &= left - 1 {
		f(knownVerbs[bits.TrailingZeros32(left)])
	}
	for _, verb := range v.other {
		f(verb)
	}
}

func (v verbs) sorted() []string {
	all := make([]string, 0, bits.OnesCount32(v.known)+len(v.other))
	v.each(func(verb string) { all = append(all, verb) })
	slices.Sort(all)
	return all
}
