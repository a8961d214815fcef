// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/revision"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/identity"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/plan"
	"rukpak.io/rukpak/provisioner"
)

// The longest lists of a summary, as the schema has them.
const (
	maxChanges  = 100
	maxFields   = 10
	maxProblems = 20
	maxMissing  = 50
	maxImages   = 50
	maxCRDs     = 50
	maxPowers   = 50
)

// The longest texts of a summary, in bytes. All texts together leave room for the conditions in a status of 64 KiB.
const (
	maxLine    = 1024
	maxPath    = 256
	maxPower   = 512
	maxSummary = 40 << 10
)

// planner plans with the engine, the account and the options with which the
// revision will be activated.
type planner struct {
	*parts
	client client.Client
	live   client.Reader
	mapper meta.RESTMapper
}

// Plan computes and keeps a plan; see instance.Planner.
func (p *planner) Plan(ctx context.Context, of *v1alpha1.InstanceRevision, all []v1alpha1.InstanceRevision) (*v1alpha1.PlanSummary, error) {
	start := time.Now()
	policy, err := p.crdPolicy(ctx, of)
	if err != nil {
		return nil, err
	}
	computed, err := p.compute(ctx, of, all, policy)
	p.metrics.Planned(time.Since(start), err)
	if err != nil {
		return nil, err
	}
	encoded, err := computed.Encode()
	if err != nil {
		return nil, err
	}
	if err := p.keep(ctx, of, encoded); err != nil {
		return nil, err
	}
	summed := summary(computed)
	summed.Digest = v1alpha1.Digest(manifest.DigestOf(encoded))
	return summed, nil
}

func (p *planner) compute(ctx context.Context, of *v1alpha1.InstanceRevision, all []v1alpha1.InstanceRevision, policy crdsafety.Policy) (*plan.Plan, error) {
	loaded, err := p.stored.Load(ctx, of)
	if err != nil {
		return nil, err
	}
	var earlier []*revision.Loaded
	var older []provisioner.Phase
	runtime := &plan.Runtime{Owner: of.Spec.Instance.UID}
	using := []*v1alpha1.InstanceRevision{of}
	for i := range all {
		other := &all[i]
		if other.UID == of.UID || other.Status.ActivatedAt == nil || meta.IsStatusConditionTrue(other.Status.Conditions, v1alpha1.ConditionSuperseded) {
			continue
		}
		known, left, err := revision.Left(ctx, p.stored, p.finder, other, loaded)
		if err != nil {
			return nil, fmt.Errorf("revision %d: %w", other.Spec.Number, err)
		}
		if known != nil {
			earlier = append(earlier, known)
			runtime.Left = append(runtime.Left, known.Phases...)
		}
		runtime.Left = append(runtime.Left, left...)
		older = append(older, left...)
		using = append(using, other)
		if meta.IsStatusConditionTrue(other.Status.Conditions, v1alpha1.ConditionActive) {
			runtime.Active, runtime.Unknown = activeObjects(other, known)
		}
	}
	if err := p.liveRoles(ctx, runtime); err != nil {
		return nil, err
	}
	separate, err := revision.PrunesApart(ctx, p.client, using...)
	if err != nil {
		return nil, err
	}
	in := plan.Input{
		Engine:   p.engine,
		Owner:    ownership.Owner{UID: of.Spec.Instance.UID, Namespace: of.Namespace, Name: of.Spec.Instance.Name},
		Phases:   loaded.Phases,
		Moment:   revision.MomentOf(of, all),
		Older:    older,
		Options:  revision.Options(of, earlier, revision.Alive(ctx, p.instances())),
		Prune:    of.Spec.Prune,
		Separate: separate,
		CRDs:     policy,
		Runtime:  runtime,
	}
	if err := p.actAs(ctx, of, &in); err != nil {
		return nil, err
	}
	return plan.Compute(ctx, in)
}

// actAs has a plan made as the account that would activate the revision.
func (p *planner) actAs(ctx context.Context, of *v1alpha1.InstanceRevision, in *plan.Input) error {
	own := plan.Account{Reviewer: p.reviewer, Mapper: p.mapper, Namespace: of.Namespace, Name: of.Spec.ServiceAccountName}
	acting := own
	installer, err := revision.Installer(ctx, p.live, of)
	if err != nil {
		return err
	}
	if installer != nil {
		acting.Namespace, acting.Name = installer.Namespace, installer.Name
		in.Weaker, in.Installer = own, installer.Namespace+"/"+installer.Name
	}
	in.Reviewer = acting
	in.Client, err = p.accounts.Client(acting.Namespace, acting.Name)
	return err
}

// activeObjects are those of the revision that is active. Where its manifests are lost, nobody can tell what it may do.
func activeObjects(active *v1alpha1.InstanceRevision, known *revision.Loaded) (objects []*unstructured.Unstructured, unknown string) {
	if known == nil {
		return nil, fmt.Sprintf("the manifests of revision %d, which is active, are lost", active.Spec.Number)
	}
	return manifest.Set{Phases: known.Phases}.Objects(), ""
}

// liveRoles adds what roles and bindings are live.
func (p *planner) liveRoles(ctx context.Context, to *plan.Runtime) (err error) {
	if p.roles == nil {
		to.Unknown = "this manager does not read the roles and bindings of the cluster"
		return nil
	}
	to.Live, err = p.roles.Snapshot(ctx)
	return err
}

// instances knows those of all namespaces. The cache of a manager that is confined to some does not.
func (p *planner) instances() client.Reader {
	if p.options.confined() {
		return p.live
	}
	return p.client
}

// keep stores the plan beside the revision, unless it is there already.
func (p *planner) keep(ctx context.Context, of *v1alpha1.InstanceRevision, encoded []byte) error {
	if stored, err := manifest.Load(ctx, p.live, of.Namespace, of.Name, manifest.KindPlan); err == nil && bytes.Equal(stored, encoded) {
		return nil
	}
	return manifest.Save(ctx, p.client, of, manifest.KindPlan, encoded)
}

// summary cuts a plan to what a status may hold. What would fail comes first: it has to be seen.
func summary(of *plan.Plan) *v1alpha1.PlanSummary {
	s := &v1alpha1.PlanSummary{
		Added: int64(of.Counts.Add), Changed: int64(of.Counts.Change),
		Removed: int64(of.Counts.Remove), Unchanged: int64(of.Counts.Unchanged),
		Kept: int64(of.Counts.Keep), Conflicts: int64(of.Counts.Conflict), Failing: int64(of.Counts.Problems),
		Tasks: int64(of.Counts.Run),
	}
	room := maxSummary
	s.CRDs = crdFindings(s, of.CRDs, &room)
	s.Permissions = permissionsOf(s, of.Permissions, &room)
	s.Problems = cut(s, of.ProblemLines(), maxProblems, maxLine, &room)
	s.MissingPermissions = cut(s, of.Missing, maxMissing, maxLine, &room)
	s.Installer = of.Installer
	s.MissingForHealing = cut(s, of.MissingForHealing, maxMissing, maxLine, &room)
	for _, change := range of.Changes {
		if change.Action == plan.Unchanged {
			continue
		}
		object := status.Cut(change.ID().String(), maxLine) // a name that is too long is refused, and that is a problem of its own
		if room -= len(object); room < 0 || len(s.Changes) == maxChanges {
			s.Truncated = true
			break
		}
		fields := cut(s, change.Paths(maxFields+1), maxFields, maxPath, &room)
		s.Changes = append(s.Changes, v1alpha1.PlannedChange{
			Action: string(change.Action), Object: object, Fields: fields,
			MoreFields: int64(len(change.Fields) + change.MoreFields - len(fields)), Unchecked: change.Unchecked,
		})
	}
	s.Images = cut(s, of.Images, maxImages, maxLine, &room)
	return s
}

// permissionsOf cuts what the content may do to lines; nil if a plan has none.
func permissionsOf(s *v1alpha1.PlanSummary, of *plan.Permissions, room *int) *v1alpha1.PlannedPermissions {
	if of == nil {
		return nil
	}
	gained, mayGain, lost := of.Lines()
	return &v1alpha1.PlannedPermissions{
		Unknown:     status.Cut(of.Unknown, maxLine),
		Gains:       int64(len(gained) + len(mayGain)),
		Losses:      int64(len(lost)),
		Gained:      cut(s, gained, maxPowers, maxPower, room),
		MayGain:     cut(s, mayGain, maxPowers, maxPower, room),
		Lost:        cut(s, lost, maxPowers, maxPower, room),
		PodSecurity: of.PodSecurity.After, PodSecurityBefore: of.PodSecurity.Before,
	}
}

// cut gives the first lines, each cut too, as long as there is room for them.
func cut(s *v1alpha1.PlanSummary, lines []string, most, longest int, room *int) []string {
	var out []string
	for _, line := range lines {
		line = status.Cut(line, longest)
		if *room -= len(line); *room < 0 || len(out) == most {
			s.Truncated = true
			break
		}
		out = append(out, line)
	}
	return out
}

// reviewer says what an account lacks, in the words of a plan.
type reviewer struct {
	reviews *identity.Reviewer
	mapper  meta.RESTMapper
}

func (r reviewer) Missing(ctx context.Context, namespace, account string, phases []provisioner.Phase) ([]string, error) {
	return plan.Account{Reviewer: r.reviews, Mapper: r.mapper, Namespace: namespace, Name: account}.Lacks(ctx, phases, nil)
}
