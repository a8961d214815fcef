// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// removals says what becomes of objects that the revision does not have any more. Those that are gone already do not
// count.
func (c *computation) removals(ctx context.Context, dropped []provisioner.Phase) ([]Change, error) {
	if len(dropped) == 0 {
		return nil, nil
	}
	// Phase by phase, since one that is stuck would hide those after it, and that is what a plan should show.
	var changes []Change
	for _, phase := range dropped {
		result := c.previews.Prune(ctx, []provisioner.Phase{phase})
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, one := range result.Objects {
			if one.Err != nil && activate.Unreachable(one.Err) {
				return nil, one.Err
			}
			if one.Action == activate.Absent {
				continue
			}
			changes = append(changes, c.removal(one))
		}
	}
	if err := c.judgeDefinitions(ctx, changes, dropped); err != nil {
		return nil, err
	}
	c.noteSeparate(changes)
	return changes, c.concealRemovals(ctx, changes)
}

// separately is the note at what is not deleted when the revision becomes active.
const separately = "it stays until an approval of its own names it (rukpak approve --prune)"

func (c *computation) noteSeparate(changes []Change) {
	for i := range changes {
		change := &changes[i]
		if !c.input.Separate || change.Action != Remove || !activate.HoldsOthers(change.ID().GroupKind()) {
			continue
		}
		if change.Note != "" {
			change.Note += "; "
		}
		change.Note += separately
	}
}

func (c *computation) removal(result activate.ObjectResult) Change {
	id := result.ID
	change := Change{
		Action: Remove, Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name, Phase: result.Phase,
		Note: result.Note + result.Wait,
	}
	switch {
	case result.Err != nil:
		change.Problem = &Problem{Reason: string(result.Err.Reason), Fields: result.Err.Fields, Message: oneLine(result.Err.Error())}
	case result.Action == activate.Kept:
		change.Action = Keep
	}
	if !c.input.Prune {
		change.Action, change.Note, change.Problem = Keep, "pruning is off for this instance", nil
	}
	return change
}

// inUseLimit bounds how many custom resources are compared with those that go.
const inUseLimit = 500

// judgeDefinitions corrects the engine's view of definitions in use: all their custom resources may be among the objects
// that go, and these go first.
func (c *computation) judgeDefinitions(ctx context.Context, changes []Change, dropped []provisioner.Phase) error {
	goes := map[ownership.ID]bool{}
	for _, change := range changes {
		if change.Action == Remove {
			goes[change.ID()] = true
		}
	}
	for i := range changes {
		change := &changes[i]
		if change.Action != Keep || change.ID().GroupKind() != crdKind || !strings.Contains(change.Note, "custom resources") {
			continue
		}
		stays, err := c.resourceThatStays(ctx, definitionIn(dropped, change.Name), goes)
		if err != nil {
			return err
		}
		if stays == "" {
			change.Action, change.Note = Remove, "after all its custom resources"
			continue
		}
		listed, err := c.may(ctx, "list", newDefinition(definitionIn(dropped, change.Name)).kind, "", "")
		if err != nil {
			return err
		}
		if listed {
			change.Note += ", such as " + stays
		}
	}
	return nil
}

func definitionIn(phases []provisioner.Phase, name string) *unstructured.Unstructured {
	for _, phase := range phases {
		for _, object := range phase.Objects {
			if object.GroupVersionKind().GroupKind() == crdKind && object.GetName() == name {
				return object
			}
		}
	}
	return &unstructured.Unstructured{}
}

// resourceThatStays names a custom resource that is not among those that go, "" if there is none.
func (c *computation) resourceThatStays(ctx context.Context, crd *unstructured.Unstructured, goes map[ownership.ID]bool) (string, error) {
	d := newDefinition(crd)
	for version := range d.versions {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: d.kind.Group, Version: version, Kind: d.kind.Kind + "List"})
		if err := c.input.Client.List(ctx, list, client.Limit(inUseLimit)); err != nil {
			return "one that cannot be listed: " + oneLine(err.Error()), ctx.Err()
		}
		for i := range list.Items {
			id := ownership.ID{Group: d.kind.Group, Kind: d.kind.Kind, Namespace: list.Items[i].Namespace, Name: list.Items[i].Name}
			if !goes[id] {
				return id.String(), nil
			}
		}
		if list.Continue != "" {
			return fmt.Sprintf("those beyond the first %d", inUseLimit), nil
		}
		return "", nil
	}
	return "one of a version that is not served", nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
