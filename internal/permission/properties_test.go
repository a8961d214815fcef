// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/component-helpers/auth/rbac/validation"
)

const rounds = 3000

// thrown calls f with random rules many times.
func thrown(t *testing.T, f func(d *dice)) {
	t.Helper()
	for seed := range uint64(rounds) {
		f(&dice{Rand: rand.New(rand.NewPCG(seed, 7)), namespaces: []string{"a", "b"}, prefix: "p-"})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func (d *dice) many() (rules []rbacv1.PolicyRule) {
	for range 1 + d.IntN(4) {
		rules = append(rules, d.rule(true))
	}
	return rules
}

func TestCoveringIsAnOrder(t *testing.T) {
	compared := 0
	thrown(t, func(d *dice) {
		a, b, c := NewRules(d.many()...), NewRules(d.many()...), NewRules(d.many()...)
		if d.IntN(2) == 0 { // few random sets cover one another
			b = a.Union(NewRules(d.rule(true)))
			c = b.Union(NewRules(d.rule(true)))
		}
		if !a.Covers(a) {
			t.Errorf("does not cover itself: %v", a.PolicyRules())
		}
		if c.Covers(b) && b.Covers(a) {
			if compared++; !c.Covers(a) {
				t.Errorf("not transitive: %v, %v, %v", a.PolicyRules(), b.PolicyRules(), c.PolicyRules())
			}
		}
		if both := a.Union(b); !both.Covers(a) || !both.Covers(b) {
			t.Errorf("the union of %v and %v lost something", a.PolicyRules(), b.PolicyRules())
		}
		if rest := a.Minus(b); !b.Union(rest).Covers(a) || !a.Covers(rest) {
			t.Errorf("%v without %v is %v", a.PolicyRules(), b.PolicyRules(), rest.PolicyRules())
		}
	})
	if compared < rounds/4 {
		t.Errorf("only %d chains were seen", compared)
	}
}

func TestCanonicalFormDependsOnWhatIsAllowedOnly(t *testing.T) {
	thrown(t, func(d *dice) {
		rules := d.many()
		a := NewRules(rules...)
		b := NewRules(d.rewritten(rules)...)
		if diff := cmp.Diff(a.PolicyRules(), b.PolicyRules()); diff != "" {
			t.Errorf("%v:\n%s", rules, diff)
		}
		written := NewRules(a.PolicyRules()...)
		if !written.Covers(a) || !a.Covers(written) {
			t.Errorf("%v is written as %v", rules, a.PolicyRules())
		}
	})
}

// rewritten says the same in other words: split, repeated, with what is covered anyway said again, in another order.
func (d *dice) rewritten(rules []rbacv1.PolicyRule) (other []rbacv1.PolicyRule) {
	for _, rule := range rules {
		if d.IntN(2) == 0 {
			other = append(other, rule)
		}
		other = append(other, validation.BreakdownRule(rule)...)
		for _, one := range validation.BreakdownRule(rule) {
			if d.IntN(3) == 0 && len(one.NonResourceURLs) == 0 {
				one.ResourceNames = append(one.ResourceNames, one.ResourceNames...)
				if len(one.ResourceNames) == 0 {
					one.ResourceNames = []string{"narrower"}
				}
				if one.Verbs[0] == "*" {
					one.Verbs = []string{"watch"}
				}
				other = append(other, one)
			}
		}
	}
	d.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
	return other
}

func TestCoveringAgreesWithTheLibraryOfKubernetes(t *testing.T) {
	yes := 0
	thrown(t, func(d *dice) {
		a, b := d.many(), d.many()
		if d.IntN(2) == 0 {
			b = validation.BreakdownRule(a[0])
			b[0].Verbs = []string{d.verb()}
		}
		want, _ := validation.Covers(a, b)
		if got := NewRules(a...).Covers(NewRules(b...)); got != want {
			t.Errorf("%v covers %v: %v, the library says %v", a, b, got, want)
		}
		if want {
			yes++
		}
	})
	if yes < rounds/10 {
		t.Errorf("only %d cover", yes)
	}
}

func TestExpansionOfEquivalentContentIsEmpty(t *testing.T) {
	grown := 0
	for seed := range uint64(150) {
		d := &dice{Rand: rand.New(rand.NewPCG(seed, 3)), namespaces: []string{"a", "b"}, prefix: "p-"}
		var live Live
		for i := range 5 {
			live.ClusterRoles = append(live.ClusterRoles, &rbacv1.ClusterRole{})
			live.ClusterRoles[i].Name, live.ClusterRoles[i].Rules = fmt.Sprintf("p-role-%d", 20+i), d.rules(true)
		}
		var old, same, more []*unstructured.Unstructured
		for _, object := range d.objects() {
			old = append(old, loose(t, object))
			switch o := object.(type) {
			case *rbacv1.Role:
				o.Rules = d.rewritten(o.Rules)
			case *rbacv1.ClusterRole:
				o.Rules = d.rewritten(o.Rules)
			case *rbacv1.RoleBinding:
				o.Subjects = append(o.Subjects, o.Subjects[0])
			}
			same = append(same, loose(t, object))
			if o, ok := object.(*rbacv1.ClusterRole); ok && o.AggregationRule == nil {
				o.Rules = append(o.Rules, rbacv1.PolicyRule{Verbs: []string{"new"}, APIGroups: []string{""}, Resources: []string{"pods"}})
			}
			more = append(more, loose(t, object))
		}
		slices.Reverse(same)
		powers, expansion, err := Between(old, same, NewSnapshot(live))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Expansion{}, *expansion); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		_, expansion, err = Between(same, more, NewSnapshot(live))
		if err != nil || !expansion.Lost.Empty() {
			t.Fatalf("seed %d: lost %+v, %v", seed, expansion.Lost, err)
		}
		if expansion.Grows() {
			grown++
		}
		stored(t, powers)
	}
	if grown < 50 {
		t.Errorf("only %d grew", grown)
	}
}

// stored checks that powers compare as before once they were kept.
func stored(t *testing.T, p *Powers) {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again Powers
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if !again.Covers(p) || !p.Covers(&again) {
		t.Error("powers that were stored are others")
	}
}
