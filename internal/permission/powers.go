// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Powers are what content may do, and lets others do, once it is active. Equal powers are equal values: all lists are
// sorted, and nothing in them depends on how the content says it.
type Powers struct {
	// Grants are RBAC rules by who holds them. Of the accounts that content has or runs as it is all that they hold, but for
	// what every account in the cluster holds anyway. Of others it is what they would not hold without the content.
	Grants []Grant `json:"grants,omitempty"`
	// MayGain are ways to more than what the grants say, of which it cannot be known what they lead to.
	MayGain []Gain `json:"mayGain,omitempty"`
	// Accounts are the service accounts that content has, runs as, or has tokens of.
	Accounts []Account `json:"accounts,omitempty"`
	// Pods are powers on nodes, and over other Pods, by namespace.
	Pods []PodPower `json:"pods,omitempty"`
	// Intercepts are the requests and objects of others that content sees, refuses or changes.
	Intercepts []Intercept `json:"intercepts,omitempty"`
	// Owns are the namespaces and the other objects without a namespace that content brings.
	Owns []Owned `json:"owns,omitempty"`
	// Namespaces are those that content has objects in.
	Namespaces []string `json:"namespaces,omitempty"`
	// Registries are those that images come from.
	Registries []Registry `json:"registries,omitempty"`
}

// Grant is what a subject may do in a namespace, "" for the whole cluster.
type Grant struct {
	Subject   Subject             `json:"subject"`
	Namespace string              `json:"namespace,omitempty"`
	Rules     []rbacv1.PolicyRule `json:"rules"`
}

// Account is a service account that matters to the content.
type Account struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Owned is true if the content brings the account. The rights of any other were not made for this content.
	Owned bool `json:"owned"`
	// Tokens are the objects of the content that have tokens of the account, as "Kind.group namespace/name".
	Tokens []string `json:"tokens,omitempty"`
}

// Of gives the powers of content in a cluster. Live must not have what earlier revisions of the same content brought: see
// Snapshot.Without, and Between. Objects have their namespace, as manifest.Namespaced gives it. An error names an object that no
// API server would take.
func Of(objects []*unstructured.Unstructured, live *Snapshot) (*Powers, error) {
	p, _, err := of(objects, live)
	return p, err
}

// TooLargeError says that the rules that matter to content are too many to be looked through: it could be allowed anything.
type TooLargeError struct{}

// Error says how many are too many.
func (*TooLargeError) Error() string {
	return fmt.Sprintf("the rules that its accounts hold have more than %d combinations of API group, resource and name: write them with fewer, or with \"*\"", maxTargets)
}

// of gives the rules of the grants besides, as they are needed to compare.
func of(objects []*unstructured.Unstructured, live *Snapshot) (*Powers, map[Subject]scoped, error) {
	c, err := read(objects, live)
	if err != nil {
		return nil, nil, err
	}
	p := &Powers{
		Accounts: c.accountList(), Pods: c.podPowers(), Intercepts: c.intercepts(), Owns: c.owns(),
		Namespaces: c.namespaces(), Registries: registriesOf(objects),
	}
	held := c.grants()
	p.MayGain = c.gains(held)
	if c.world.spent > maxTargets || c.before.spent > maxTargets {
		return nil, nil, &TooLargeError{}
	}
	p.Grants = grantList(held)
	return p, held, nil
}

// Between compares what content may do with what an older revision of it may do. Live is the whole cluster, with or
// without what the older revision brought.
func Between(old, new []*unstructured.Unstructured, live *Snapshot) (*Powers, *Expansion, error) {
	base := live.Without(old)
	before, heldBefore, err := of(old, base)
	if err != nil {
		return nil, nil, err
	}
	after, heldAfter, err := of(new, base)
	if err != nil {
		return nil, nil, err
	}
	return after, expand(before, after, heldBefore, heldAfter), nil
}

// scoped are rules by namespace.
type scoped map[string]*Rules

// minus is what no other allows in the same namespace or in the whole cluster.
func (s scoped) minus(others ...scoped) scoped {
	rest := scoped{}
	for namespace, rules := range s {
		var against []*Rules
		for _, o := range others {
			against = append(against, o[""])
			if namespace != "" {
				against = append(against, o[namespace])
			}
		}
		if left := rules.Minus(against...); !left.Empty() {
			rest[namespace] = left
		}
	}
	return rest
}

// canonical drops from namespaces what is allowed in the whole cluster.
func (s scoped) canonical() scoped {
	out := scoped{}
	for namespace, rules := range s {
		if namespace != "" && !s[""].Empty() {
			rules = rules.Minus(s[""])
		}
		if !rules.Empty() {
			out[namespace] = rules
		}
	}
	return out
}

// grants gives what each subject that matters holds.
func (c *content) grants() map[Subject]scoped {
	held := map[Subject]scoped{}
	everybody := scoped(c.before.held([]Subject{GroupSubject(Authenticated), GroupSubject(AllAccounts)}))
	for id := range c.accounts {
		s := AccountSubject(id.namespace, id.name)
		held[s] = scoped(c.world.held(s.subjects())).minus(everybody)
	}
	for s := range c.affected() {
		if held[s] != nil {
			continue
		}
		one := []Subject{s}
		held[s] = scoped(c.world.held(one)).minus(scoped(c.before.held(one)))
	}
	for s := range held {
		if held[s] = held[s].canonical(); len(held[s]) == 0 {
			delete(held, s)
		}
	}
	return held
}

// affected are the subjects whose rights the content has a hand in.
func (c *content) affected() map[Subject]bool {
	subjects := map[Subject]bool{}
	for _, b := range c.world.bindings {
		for _, s := range b.subjects {
			subjects[s] = true
		}
	}
	touched := c.world.touched()
	if len(touched) == 0 {
		return subjects
	}
	c.world.eachBinding(func(b *binding) {
		if touched[b.role] {
			for _, s := range b.subjects {
				subjects[s] = true
			}
		}
	})
	return subjects
}

func grantList(held map[Subject]scoped) []Grant {
	var all []Grant
	for _, s := range slices.SortedFunc(maps.Keys(held), Subject.compare) {
		for _, namespace := range slices.Sorted(maps.Keys(held[s])) {
			all = append(all, Grant{Subject: s, Namespace: namespace, Rules: held[s][namespace].PolicyRules()})
		}
	}
	return all
}

// scopedOf reads what grantList wrote.
func scopedOf(grants []Grant) map[Subject]scoped {
	held := map[Subject]scoped{}
	for _, g := range grants {
		if held[g.Subject] == nil {
			held[g.Subject] = scoped{}
		}
		held[g.Subject][g.Namespace] = held[g.Subject][g.Namespace].Union(NewRules(g.Rules...))
	}
	return held
}
