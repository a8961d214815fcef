// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/ownership"
)

// Weaker is the service account of an instance whose revisions a stronger account activates. Whoever can have instances
// made in its name reads their plans: so of what is live, these tell what it may read, and no more.
type Weaker interface {
	Reviewer
	// May tells whether the account may do something with objects of a kind; an empty namespace or name stands for all.
	May(ctx context.Context, verb string, kind schema.GroupKind, namespace, name string) (bool, error)
	// String names it for people.
	String() string
}

// maxNamedViews bounds how many objects of a plan are asked about one by one, where the account may not read all of their
// kind in their namespace. What is not asked about is not told.
const maxNamedViews = 256

// views remembers what Weaker may see, so that a plan asks by kinds and not by objects.
type views struct {
	mutex sync.Mutex
	known map[view]bool
	named int
}

type view struct {
	verb            string
	kind            schema.GroupKind
	namespace, name string
}

// may asks for all objects of a kind first, then for those of the namespace, then for the one.
func (c *computation) may(ctx context.Context, verb string, kind schema.GroupKind, namespace, name string) (bool, error) {
	if c.input.Weaker == nil {
		return true, nil
	}
	v := &c.views
	v.mutex.Lock()
	defer v.mutex.Unlock()
	asked := []view{{verb: verb, kind: kind}}
	if namespace != "" {
		asked = append(asked, view{verb: verb, kind: kind, namespace: namespace})
	}
	if name != "" {
		asked = append(asked, view{verb: verb, kind: kind, namespace: namespace, name: name})
	}
	for _, one := range asked {
		if allowed, err := v.ask(ctx, c.input.Weaker, one); err != nil || allowed {
			return allowed, err
		}
	}
	return false, nil
}

func (v *views) ask(ctx context.Context, of Weaker, one view) (bool, error) {
	if allowed, known := v.known[one]; known {
		return allowed, nil
	}
	if one.name != "" {
		if v.named == maxNamedViews {
			return false, nil
		}
		v.named++
	}
	allowed, err := of.May(ctx, one.verb, one.kind, one.namespace, one.name)
	if err != nil {
		return false, err
	}
	if v.known == nil {
		v.known = map[view]bool{}
	}
	v.known[one] = allowed
	return allowed, nil
}

func (c *computation) sees(ctx context.Context, id ownership.ID) (bool, error) {
	return c.may(ctx, "get", id.GroupKind(), id.Namespace, id.Name)
}

// conceal takes from a change what it tells of a live object that the instance's own account may not read. What the
// instance owns still shows which fields of the manifest differ; of what is somebody else's, not even that is told: the
// answer to "is it this value?" tells a value as well.
func (c *computation) conceal(ctx context.Context, change *Change, preview activate.Preview, object *unstructured.Unstructured) error {
	quiet := change.Problem == nil && (change.Action == Unchanged || preview.Live == nil && change.Note == "")
	if c.input.Weaker == nil || quiet || c.brings(change, preview.Live) {
		return nil
	}
	seen, err := c.sees(ctx, change.ID())
	if err != nil {
		return err
	}
	if seen {
		return c.concealRole(ctx, change, object)
	}
	if c.owns(preview.Live) {
		redactAll(change)
	} else {
		change.Fields, change.MoreFields = nil, 0
	}
	c.silence(change, change.ID())
	return nil
}

func (c *computation) owns(live *unstructured.Unstructured) bool {
	if live == nil {
		return false
	}
	holder, marked := ownership.OwnerOf(live)
	return marked && holder.UID == c.input.Owner.UID
}

// brings reports whether the revision itself defines the kind of an object that is not there: then all that is said of it
// comes from the revision.
func (c *computation) brings(change *Change, live *unstructured.Unstructured) bool {
	return live == nil && c.bringing.definitions[change.ID().GroupKind()] != nil
}

// concealRole is for bindings: who is refused since it may not grant what a role has is told all that the role has.
func (c *computation) concealRole(ctx context.Context, change *Change, object *unstructured.Unstructured) error {
	role, binds := boundRole(object)
	if !binds || change.Problem == nil {
		return nil
	}
	seen, err := c.sees(ctx, role)
	if err == nil && !seen {
		c.silence(change, role)
	}
	return err
}

// redactAll hides values. Fields that only the live object has are counted and not named.
func redactAll(change *Change) {
	var told []Field
	for _, field := range change.Fields {
		if field.New == nil {
			change.MoreFields++
			continue
		}
		field.Redacted, field.New = true, redactedJSON
		if field.Old != nil {
			field.Old = redactedJSON
		}
		told = append(told, field)
	}
	change.Fields = told
}

// silence replaces texts that may quote an object that is live and that the account may not read.
func (c *computation) silence(change *Change, unseen ownership.ID) {
	why := fmt.Sprintf("since ServiceAccount %q of the instance may not get %s", c.input.Weaker, unseen)
	change.Note = "what is live is not told, " + why
	if change.Problem != nil {
		change.Problem = &Problem{Reason: change.Problem.Reason, Message: fmt.Sprintf("%s: it is refused (%s); why is not told, %s", change.ID(), change.Problem.Reason, why)}
	}
}

// concealRemovals does the same for what the revision does not have any more.
func (c *computation) concealRemovals(ctx context.Context, changes []Change) error {
	if c.input.Weaker == nil || !c.input.Prune {
		return nil
	}
	for i := range changes {
		change := &changes[i]
		if change.Note == "" && change.Problem == nil {
			continue
		}
		seen, err := c.sees(ctx, change.ID())
		if err != nil {
			return err
		}
		if !seen {
			c.silence(change, change.ID())
		}
	}
	return nil
}

// concealFindings keeps what findings about a definition say to what the account may read: the definition that is live, and
// its custom resources. That they block stays.
func (c *computation) concealFindings(ctx context.Context, live *unstructured.Unstructured, findings []crdsafety.Finding) error {
	if c.input.Weaker == nil || len(findings) == 0 {
		return nil
	}
	definition, err := c.sees(ctx, ownership.IDOf(live))
	if err != nil {
		return err
	}
	resources, err := c.may(ctx, "list", newDefinition(live).kind, "", "")
	if err != nil {
		return err
	}
	for i := range findings {
		finding := &findings[i]
		ofResources := finding.Rule == crdsafety.LiveInvalid || finding.Rule == crdsafety.LivePruned || finding.Rule == crdsafety.LiveUnread
		switch {
		case !definition:
			finding.Path, finding.Message = "", fmt.Sprintf("what it is about is not told, since ServiceAccount %q of the instance may not get the definition", c.input.Weaker)
		case ofResources && !resources:
			finding.Path, finding.Message = "", fmt.Sprintf("which custom resources, and what is wrong with them, is not told, since ServiceAccount %q of the instance may not list them", c.input.Weaker)
		}
	}
	return nil
}
