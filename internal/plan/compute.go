// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

const permissionsMissing = string(activate.PermissionsMissing)

// defaultParallelism is how many objects are looked at side by side.
const defaultParallelism = 16

// Reviewer tells what the service account lacks.
type Reviewer interface {
	// Lacks gives what the account lacks to activate the objects in phases and to delete those in removed, a line for
	// each resource and namespace, sorted. An error means that it is not known.
	Lacks(ctx context.Context, phases, removed []provisioner.Phase) ([]string, error)
}

// Input is what a plan is made of. Nothing in it is changed.
type Input struct {
	// Client acts as the service account and reads without a cache.
	Client client.Client
	// Engine is the one that will activate: what it knows to be as it should be costs no request.
	Engine *activate.Engine
	Owner  ownership.Owner
	// Phases are those of the revision, with all its tasks.
	Phases []provisioner.Phase
	// Moment is that of the tasks which will run when the revision is activated.
	Moment provisioner.Moment
	// Older are the objects that older revisions may have left in the cluster. Those that Phases has too do not matter.
	Older []provisioner.Phase
	// Options are those with which the revision will be activated.
	Options activate.Options
	// Prune says whether what only Older has will be deleted.
	Prune bool
	// Separate says whether what holds others is only deleted after an approval of its own.
	Separate bool
	// CRDs says what becomes of findings about definitions that change; nil has the default actions.
	CRDs crdsafety.Policy
	// Runtime is what the content's permissions are computed from; nil if nobody asks for them.
	Runtime *Runtime
	// Reviewer may be nil; then Missing stays empty.
	Reviewer Reviewer
	// Weaker is the service account of the instance, where Client acts as another one, the installer. Nil where it does not.
	Weaker Weaker
	// Installer names that other one for people, as "namespace/name".
	Installer string
	// Parallelism is how many objects are looked at side by side; 0 means 16.
	Parallelism int
}

// Compute makes the plan. It writes nothing. What is wrong with single objects is in the plan; an error means that there
// is none, since the API server cannot be reached, or ctx ended.
func Compute(ctx context.Context, in Input) (*Plan, error) {
	everything := manifest.Set{Phases: in.Phases}.Objects()
	needed, healing := activate.Needed(in.Phases, in.Moment), activate.Needed(in.Phases, "")
	in.Phases = activate.At(in.Phases, in.Moment)
	all := manifest.Set{Phases: in.Phases}.Objects()
	c := &computation{
		input: in, previews: in.Engine.Previews(in.Client, in.Owner, in.Options), bringing: bringingOf(all),
		desired: map[ownership.ID]bool{},
	}
	changes, err := c.objects(ctx)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Images: imagesOf(everything), CRDs: c.upgrades.findings}
	for _, object := range everything {
		c.desired[ownership.IDOf(object)] = true
	}
	for _, change := range changes {
		c.desired[change.ID()] = true
		if change.Action == Unchanged && change.Problem == nil {
			plan.Counts.Unchanged++
			continue
		}
		plan.Changes = append(plan.Changes, change)
	}
	if in.Runtime != nil {
		plan.Permissions = in.Runtime.permissions(everything)
	}
	dropped := c.dropped()
	removed, err := c.removals(ctx, dropped)
	if err != nil {
		return nil, err
	}
	plan.Changes = append(plan.Changes, removed...)
	if in.Reviewer != nil {
		if !in.Prune {
			dropped = nil
		}
		if plan.Missing, err = in.Reviewer.Lacks(ctx, needed, dropped); err != nil {
			return nil, fmt.Errorf("what the service account may do: %w", err)
		}
	}
	if in.Weaker != nil {
		plan.Installer = in.Installer
		if plan.MissingForHealing, err = in.Weaker.Lacks(ctx, healing, nil); err != nil {
			return nil, fmt.Errorf("what the service account may heal: %w", err)
		}
	}
	plan.finish()
	return plan, nil
}

// computation is one call of Compute.
type computation struct {
	input    Input
	previews *activate.Previews
	bringing bringing
	desired  map[ownership.ID]bool // of the revision
	upgrades upgrades
	views    views
}

// objects previews all objects of the revision, in their order.
func (c *computation) objects(ctx context.Context) ([]Change, error) {
	var changes []Change
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(c.parallelism())
	count := len(manifest.Set{Phases: c.input.Phases}.Objects())
	changes = make([]Change, count)
	next := 0
	for _, phase := range c.input.Phases {
		for _, object := range phase.Objects {
			at := &changes[next]
			next++
			group.Go(func() error {
				if err := groupCtx.Err(); err != nil {
					return err
				}
				change, err := c.object(groupCtx, object, activate.IsTask(phase))
				change.Phase = phase.Name
				for _, moment := range phase.On {
					change.On = append(change.On, string(moment))
				}
				*at = change
				return err
			})
		}
	}
	return changes, group.Wait()
}

func (c *computation) parallelism() int {
	if c.input.Parallelism > 0 {
		return c.input.Parallelism
	}
	return defaultParallelism
}

// object previews one object.
func (c *computation) object(ctx context.Context, object *unstructured.Unstructured, task bool) (Change, error) {
	var preview activate.Preview
	if task {
		preview = c.previews.Task(ctx, object)
	} else {
		preview = c.previews.Apply(ctx, object)
	}
	if err := preview.Err; err != nil && (ctx.Err() != nil || activate.Unreachable(err)) {
		return Change{}, err
	}
	change := changeOf(preview)
	if preview.Err != nil && preview.Action != activate.Collision {
		after, fault, known := c.bringing.judge(object, preview)
		change.After = after
		switch {
		case !known:
			change.Problem = problemOf(preview, object)
		case fault != "":
			change.Problem = &Problem{Reason: string(activate.Rejected), Message: change.ID().String() + ": " + fault}
		}
	}
	if task {
		if change.Action != Conflict {
			change.Action = Run
		}
		return change, c.conceal(ctx, &change, preview, object)
	}
	c.compare(&change, preview)
	if err := c.upgrade(ctx, &change, preview, object); err != nil {
		return change, err
	}
	return change, c.conceal(ctx, &change, preview, object)
}

// compare tells the fields that differ: by what a dry run answered, or else by what the manifest says.
func (c *computation) compare(change *Change, preview activate.Preview) {
	after := preview.After
	if after == nil && preview.Expected != nil {
		after, change.Unchecked = c.bringing.completed(preview.Expected), true
	}
	if preview.Live == nil || after == nil {
		return
	}
	change.Fields, change.MoreFields = fieldsBetween(preview.Live, after)
	if len(change.Fields) == 0 && change.Action == Alter && change.Problem == nil && !change.Adopted && !change.Recreated && !change.Unchecked {
		change.Action = Unchanged
	}
}

func changeOf(preview activate.Preview) Change {
	id := preview.ID
	change := Change{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name, Action: Alter, Note: preview.Note}
	switch preview.Action {
	case activate.Created:
		change.Action = Add
	case activate.Intact:
		change.Action = Unchanged
	case activate.Adopted:
		change.Adopted = true
	case activate.Recreated:
		change.Recreated = true
		change.Note = "it is deleted and created, since a field cannot be changed; what others wrote into it is lost"
	case activate.Waiting:
		change.Note = preview.Wait + ": activation waits until that is done"
		if preview.Live == nil {
			change.Action = Add
		}
	case activate.Collision:
		change.Action = Conflict
		change.Problem = &Problem{Reason: string(activate.CollisionReason), Message: oneLine(preview.Err.Error())}
	case activate.Failed:
		if preview.Live == nil {
			change.Action = Add // it is absent, or it may not be read
		}
	}
	if preview.Action == activate.Ran && preview.Wait != "" {
		change.Note = preview.Wait + ": activation waits until that is done"
	}
	if preview.Unchecked != "" {
		change.Note = "no dry run tells what becomes of it: " + preview.Unchecked
	}
	return change
}

func problemOf(preview activate.Preview, object *unstructured.Unstructured) *Problem {
	err := preview.Err
	problem := &Problem{Reason: string(err.Reason), Fields: err.Fields, Message: oneLine(err.Error())}
	if err.Reason != activate.PermissionsMissing && mentionsSecret(problem.Message, object) {
		problem.Message = preview.ID.String() + ": it is refused with a message that has a value of the Secret in it, so the message is not told"
	}
	return problem
}

// dropped are the objects of older revisions that the new one does not have.
func (c *computation) dropped() []provisioner.Phase {
	var phases []provisioner.Phase
	seen := map[ownership.ID]bool{}
	for _, phase := range activate.State(c.input.Older) {
		rest := provisioner.Phase{Name: phase.Name}
		for _, object := range phase.Objects {
			id := ownership.IDOf(object)
			if c.desired[id] || seen[id] || c.input.Options.Keep != nil && c.input.Options.Keep(id) {
				continue
			}
			seen[id] = true
			rest.Objects = append(rest.Objects, object)
		}
		if len(rest.Objects) > 0 {
			phases = append(phases, rest)
		}
	}
	return phases
}

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
