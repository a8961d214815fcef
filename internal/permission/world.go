// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"maps"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/internal/ownership"
)

type (
	roleID    struct{ namespace, name string } // no namespace: a ClusterRole
	accountID struct{ namespace, name string }
)

type role struct {
	id          roleID
	rules       []rbacv1.PolicyRule
	labels      map[string]string
	aggregation *rbacv1.AggregationRule
}

type binding struct {
	id       ownership.ID
	role     roleID
	subjects []Subject
}

func newBinding(id ownership.ID, ref rbacv1.RoleRef, subjects []rbacv1.Subject) *binding {
	b := &binding{id: id, role: roleID{"", ref.Name}}
	if ref.Kind == "Role" {
		b.role.namespace = id.Namespace
	}
	for _, s := range subjects {
		b.subjects = append(b.subjects, subjectOf(s, id.Namespace))
	}
	return b
}

// world is roles and bindings, laid over others: what it has counts before what stands below, and what it hides is gone.
type world struct {
	below     *world
	hidden    map[ownership.ID]bool
	roles     map[roleID]*role
	bindings  map[ownership.ID]*binding
	bySubject map[Subject][]*binding
	accounts  map[accountID]*bool        // whether tokens are mounted, nil if that is not said
	owners    map[ownership.ID]types.UID // instances, by the objects that carry their mark

	once    sync.Once
	current []*role // see clusterRoles

	// lean leaves out rules that are too large to be broken down: for what is to be taken away from something.
	lean bool

	// bounded has what is broken down counted, for all holders together: what is content's may be large on purpose.
	bounded bool
	spent   int
}

func newWorld(below *world) *world {
	return &world{
		below: below, hidden: map[ownership.ID]bool{}, roles: map[roleID]*role{}, bindings: map[ownership.ID]*binding{},
		bySubject: map[Subject][]*binding{}, accounts: map[accountID]*bool{},
		owners: map[ownership.ID]types.UID{},
	}
}

func (w *world) addRole(r *role) { w.roles[r.id] = r }

func (w *world) addBinding(b *binding) {
	w.bindings[b.id] = b
	for _, s := range b.subjects {
		if of := w.bySubject[s]; len(of) == 0 || of[len(of)-1] != b {
			w.bySubject[s] = append(of, b)
		}
	}
}

// own notes whose an object is.
func (w *world) own(id ownership.ID, object metav1.Object) {
	if owner, ok := ownership.OwnerOf(object); ok {
		w.owners[id] = owner.UID
	}
}

func (w *world) hide(id ownership.ID) { w.hidden[id] = true }

func (id roleID) object() ownership.ID {
	if id.namespace == "" {
		return ownership.ID{Group: rbacv1.GroupName, Kind: "ClusterRole", Name: id.name}
	}
	return ownership.ID{Group: rbacv1.GroupName, Kind: "Role", Namespace: id.namespace, Name: id.name}
}

func (id accountID) object() ownership.ID {
	return ownership.ID{Kind: rbacv1.ServiceAccountKind, Namespace: id.namespace, Name: id.name}
}

// role finds a role, nil if there is none.
func (w *world) role(id roleID) *role {
	for ; w != nil; w = w.below {
		if found := w.roles[id]; found != nil {
			return found
		}
		if w.hidden[id.object()] {
			return nil
		}
	}
	return nil
}

// clusterRoles gives all ClusterRoles that count, in no order. It is for when the world is complete.
func (w *world) clusterRoles() []*role {
	w.once.Do(func() {
		if w.below != nil {
			for _, r := range w.below.clusterRoles() {
				if w.roles[r.id] == nil && (len(w.hidden) == 0 || !w.hidden[r.id.object()]) {
					w.current = append(w.current, r)
				}
			}
		}
		for id, r := range w.roles {
			if id.namespace == "" {
				w.current = append(w.current, r)
			}
		}
	})
	return w.current
}

// eachBinding calls f with all bindings that count, in no order.
func (w *world) eachBinding(f func(*binding)) {
	gone := map[ownership.ID]bool{}
	for at := w; at != nil; at = at.below {
		for id, b := range at.bindings {
			if !gone[id] {
				f(b)
			}
		}
		maps.Copy(gone, at.hidden)
		for id := range at.bindings {
			gone[id] = true
		}
	}
}

// bindingsOf gives the bindings that name a subject.
func (w *world) bindingsOf(s Subject) []*binding {
	var all []*binding
	for at := w; at != nil; at = at.below {
		for _, b := range at.bySubject[s] {
			if w.counts(at, b) {
				all = append(all, b)
			}
		}
	}
	return all
}

// counts reports whether a binding of a layer is neither hidden nor replaced by those above.
func (w *world) counts(in *world, b *binding) bool {
	for at := w; at != in; at = at.below {
		if at.hidden[b.id] || at.bindings[b.id] != nil {
			return false
		}
	}
	return true
}

// automount says whether tokens of an account are mounted unless a Pod says otherwise.
func (w *world) automount(id accountID) bool {
	for ; w != nil; w = w.below {
		if said, known := w.accounts[id]; known {
			return said == nil || *said
		}
		if w.hidden[id.object()] {
			break
		}
	}
	return true
}

// held is what a subject or any of several may do, by namespace.
func (w *world) held(subjects []Subject) map[string]*Rules {
	found, counts := map[string][]rbacv1.PolicyRule{}, map[string]int{}
	for _, s := range subjects {
		for _, b := range w.bindingsOf(s) {
			namespace := b.id.Namespace
			for _, rule := range w.rulesOf(w.role(b.role)) {
				if namespace != "" && len(rule.NonResourceURLs) > 0 {
					continue // paths have no namespace
				}
				found[namespace] = append(found[namespace], rule)
				counts[namespace] += count(rule)
			}
		}
	}
	held := map[string]*Rules{}
	if !w.afford(counts) {
		return held
	}
	for namespace, rules := range found {
		held[namespace] = &Rules{}
		held[namespace].grow(counts[namespace])
		for _, rule := range rules {
			held[namespace].take(rule, w.lean)
		}
	}
	return held
}

// maxTargets bounds what is broken down to see what one content may do: combinations of group, resource and name, for each
// holder. Thousands of rules come nowhere near; content could have rules that take gigabytes.
const maxTargets = 100_000

// afford counts what is about to be broken down, and reports whether that is within the bounds of the world, if it has any.
func (w *world) afford(counts map[string]int) bool {
	for _, n := range counts {
		w.spent += n
	}
	return !w.bounded || w.spent <= maxTargets
}

// rulesOf gives the rules of a role once the cluster has aggregated what is to be aggregated: those of all roles that it
// selects, and that these select in turn. What an aggregated role has of its own is overwritten then.
func (w *world) rulesOf(r *role) []rbacv1.PolicyRule {
	if r == nil {
		return nil
	}
	if r.aggregation == nil {
		return r.rules
	}
	var rules []rbacv1.PolicyRule
	seen := map[roleID]bool{r.id: true}
	for open := []*role{r}; len(open) > 0; open = open[1:] {
		if open[0].aggregation == nil {
			rules = append(rules, open[0].rules...)
			continue
		}
		selectors := selectorsOf(open[0])
		for _, other := range w.clusterRoles() {
			if !seen[other.id] && selected(selectors, other) {
				seen[other.id] = true
				open = append(open, other)
			}
		}
	}
	return rules
}

func selectorsOf(r *role) []labels.Selector {
	var all []labels.Selector
	if r.aggregation == nil {
		return nil
	}
	for i := range r.aggregation.ClusterRoleSelectors {
		if s, err := metav1.LabelSelectorAsSelector(&r.aggregation.ClusterRoleSelectors[i]); err == nil { // the cluster passes others over, too
			all = append(all, s)
		}
	}
	return all
}

func selected(selectors []labels.Selector, r *role) bool {
	return r.id.namespace == "" && slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(r.labels)) })
}

// touched are the roles that the topmost layer has, or that aggregate one of these, directly or not.
func (w *world) touched() map[roleID]bool {
	touched := map[roleID]bool{}
	var open []*role
	for id, r := range w.roles {
		touched[id] = true
		open = append(open, r)
	}
	aggregated := map[roleID][]labels.Selector{}
	for _, r := range w.clusterRoles() {
		if s := selectorsOf(r); len(s) > 0 {
			aggregated[r.id] = s
		}
	}
	for ; len(open) > 0; open = open[1:] {
		for id, selectors := range aggregated {
			if !touched[id] && selected(selectors, open[0]) {
				touched[id] = true
				open = append(open, w.role(id))
			}
		}
	}
	return touched
}
