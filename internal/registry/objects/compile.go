// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/registry/rules"
)

// DefaultNamespace is where what the objects name stands.
const DefaultNamespace = "rukpak-system"

// Problem says what is wrong with a rule of an object.
type Problem struct {
	Reason string // of the condition Ready
	Text   string // names rule and field
}

// Verdict is what became of one object.
type Verdict struct {
	InForce  int // rules
	Problems []Problem
}

// Compiled is what the objects give.
type Compiled struct {
	Rules    []rules.Rule
	Verdicts map[string]*Verdict // by name of the object
}

// Compile makes rules of objects. Of two rules with the same prefix that of the
// older object counts, then that of the first by name; both objects have a
// problem then. A rule that cannot be used stays: what is under its prefix is
// refused rather than fetched without it.
//
// The error is one of reading, other than that something does not exist.
func Compile(ctx context.Context, list []v1alpha1.RegistryConfig, read Reader) (*Compiled, error) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b v1alpha1.RegistryConfig) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	c := &compiler{ctx: ctx, read: read, found: &Compiled{Verdicts: map[string]*Verdict{}}, owners: map[string]string{}}
	for i := range list {
		if list[i].DeletionTimestamp == nil {
			c.object(&list[i])
		}
	}
	return c.found, errors.Join(c.failures...)
}

type compiler struct {
	ctx      context.Context
	read     Reader
	found    *Compiled
	owners   map[string]string // names of objects, by prefix
	failures []error
}

func (c *compiler) object(config *v1alpha1.RegistryConfig) {
	verdict := &Verdict{}
	c.found.Verdicts[config.Name] = verdict
	for i := range config.Spec.Rules {
		spec := &config.Spec.Rules[i]
		prefix := rules.Normal(spec.Prefix)
		if owner, taken := c.owners[prefix]; taken {
			c.conflict(config.Name, owner, spec.Prefix)
			continue
		}
		c.owners[prefix] = config.Name
		r := &ruleReader{compiler: c, from: fmt.Sprintf("rule %q of RegistryConfig %s", spec.Prefix, config.Name), prefix: spec.Prefix}
		rule := r.rule(spec)
		c.found.Rules = append(c.found.Rules, rule)
		verdict.Problems = append(verdict.Problems, r.problems...)
		if len(r.problems) == 0 {
			verdict.InForce++
		}
	}
}

func (c *compiler) conflict(name, owner, prefix string) {
	add := func(to, text string) {
		verdict := c.found.Verdicts[to]
		verdict.Problems = append(verdict.Problems, Problem{Reason: v1alpha1.ReasonPrefixConflict, Text: text})
	}
	if name == owner {
		add(name, fmt.Sprintf("rule %q stands twice: the first is in force", prefix))
		return
	}
	add(name, fmt.Sprintf("rule %q is not in force: RegistryConfig %s is older and has one with the same prefix", prefix, owner))
	add(owner, fmt.Sprintf("rule %q is in force, but RegistryConfig %s has one with the same prefix, which is not", prefix, name))
}

// ruleReader reads one rule.
type ruleReader struct {
	*compiler
	from     string
	prefix   string
	problems []Problem
}

// fail notes a problem of a field, and gives it as an error.
func (r *ruleReader) fail(field string, err error) error {
	text := fmt.Sprintf("%s: %v", field, err)
	r.problems = append(r.problems, Problem{Reason: v1alpha1.ReasonInvalidRule, Text: fmt.Sprintf("rule %q: %s", r.prefix, text)})
	return errors.New(text)
}

func (r *ruleReader) rule(spec *v1alpha1.RegistryRule) rules.Rule {
	rule := rules.Rule{
		Prefix: spec.Prefix, From: r.from, Rewrite: string(spec.Rewrite), Blocked: spec.Blocked, MirrorOnly: spec.MirrorOnly,
	}
	place := cmp.Or(rule.Rewrite, spec.Prefix)
	rule.Primary = r.access("", place, &spec.RegistryAccess)
	for i := range spec.Mirrors {
		m := &spec.Mirrors[i]
		field := fmt.Sprintf("mirrors[%d]", i)
		rule.Mirrors = append(rule.Mirrors, rules.Mirror{
			Location: string(m.Location), APIPath: apiPath(m.APIPath), For: scopes[m.Pull],
			From: field + " of " + r.from, Access: r.access(field+".", string(m.Location), &m.RegistryAccess),
		})
	}
	return rule
}

var scopes = map[v1alpha1.RegistryScope]rules.Scope{
	v1alpha1.RegistryScopeAll: rules.All, v1alpha1.RegistryScopeDigest: rules.Digests, v1alpha1.RegistryScopeTag: rules.Tags,
}

func apiPath(path string) string {
	if path = strings.TrimRight(path, "/"); path == "/v2" {
		return ""
	}
	return path
}
