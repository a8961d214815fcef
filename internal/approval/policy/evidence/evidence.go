// SPDX-License-Identifier: Apache-2.0

// Package evidence makes of a plan, and of the objects around it, the facts that the rules of a class see. In the flow (source ->
// unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it stands between plan and approval:
// in the manager, and on the command line that tries rules on plans that were saved. It is pure.
package evidence

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-containerregistry/pkg/name"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval/policy"
	"rukpak.io/rukpak/internal/plan"
)

// Input is what is known. All of it may be absent but the plan; what is absent is unknown to rules, or empty.
type Input struct {
	// Plan in full: a summary may have been cut, and what is cut cannot be judged.
	Plan     *plan.Plan
	Summary  *v1alpha1.PlanSummary
	Revision *v1alpha1.InstanceRevision
	Instance *v1alpha1.BundleInstance
	Bundle   *v1alpha1.Bundle
	// From is the version of the content that was active, To that of the revision's; "" if they have none.
	From, To string
	// NamespaceLabels are those of the instance's namespace.
	NamespaceLabels map[string]string
	Now             time.Time
}

// Of gives the facts.
func Of(in Input) *policy.Facts {
	f := &policy.Facts{Now: in.Now, Plan: planOf(in.Plan)}
	f.Plan.Permissions, f.Plan.PodSecurity = permissions(in.Plan.Permissions)
	if in.Summary != nil {
		f.Plan.Against = in.Summary.Against
		f.Bundle.Signatures = signatures(in.Summary.Signatures)
	}
	f.Bundle.Version = versions(in.From, in.To)
	if in.Bundle != nil {
		bundleOf(in.Bundle, in.Revision, &f.Bundle)
	}
	if in.Instance != nil {
		f.Instance = policy.Instance{Name: in.Instance.Name, Namespace: in.Instance.Namespace, Labels: in.Instance.Labels, Annotations: in.Instance.Annotations}
		f.Namespace = policy.Namespace{Name: in.Instance.Namespace, Labels: in.NamespaceLabels}
	}
	if in.Revision != nil {
		f.Request.Users = in.Revision.Spec.ChangedBy
		f.Revision = policy.Revision{Number: in.Revision.Spec.Number, Rollback: in.Revision.Spec.RollbackOf != nil}
		if installer := in.Revision.Spec.Installer; installer != nil {
			f.Revision.Installer = installer.Namespace + "/" + installer.Name
		}
		f.Instance.ServiceAccount = in.Revision.Spec.ServiceAccountName
	}
	return f
}

func planOf(p *plan.Plan) policy.Plan {
	out := policy.Plan{
		Added: int64(p.Counts.Add), Changed: int64(p.Counts.Change), Removed: int64(p.Counts.Remove), Unchanged: int64(p.Counts.Unchanged),
		Tasks: int64(p.Counts.Run), Kept: int64(p.Counts.Keep), Conflicts: int64(p.Counts.Conflict), Failing: int64(p.Counts.Problems),
		MissingPermissions: p.Missing,
	}
	for _, change := range p.Changes {
		one := policy.Object{
			Action: string(change.Action), Group: change.Group, Kind: change.Kind, Namespace: change.Namespace, Name: change.Name,
			Adopted: change.Adopted, Recreated: change.Recreated,
		}
		if change.Problem != nil {
			one.Problem = change.Problem.Reason
		}
		out.Objects = append(out.Objects, one)
	}
	for _, reference := range p.Images {
		out.Images = append(out.Images, imageOf(reference))
	}
	for _, found := range p.CRDs {
		out.CRDs.Findings = append(out.CRDs.Findings, policy.CRDFinding{
			Rule: string(found.Rule), Action: string(found.Action), Level: strings.ToLower(string(found.Action)),
			CRD: found.CRD, Version: found.Version, Path: found.Path, Message: found.Message,
		})
	}
	return out
}

// imageOf takes a reference apart as container runtimes do.
func imageOf(reference string) policy.Image {
	out := policy.Image{Reference: reference}
	parsed, err := name.ParseReference(reference)
	if err != nil {
		return out
	}
	out.Registry, out.Repository = parsed.Context().RegistryStr(), parsed.Context().RepositoryStr()
	if out.Registry == name.DefaultRegistry {
		out.Registry = "docker.io"
	}
	switch parsed := parsed.(type) {
	case name.Tag:
		out.Tag = parsed.TagStr()
	case name.Digest:
		out.Digest = parsed.DigestStr()
		before, _, _ := strings.Cut(reference, "@")
		if tag, err := name.NewTag(before); err == nil && strings.HasSuffix(before, ":"+tag.TagStr()) {
			out.Tag = tag.TagStr()
		}
	}
	return out
}

// versions are those of semver. One that is none, is none to rules.
func versions(from, to string) *policy.Version {
	new, err := semver.NewVersion(to)
	if err != nil {
		return nil
	}
	out := &policy.Version{To: new.String()}
	if old, err := semver.NewVersion(from); err == nil {
		out.From = old.String()
	}
	return out
}

func signatures(verdicts []v1alpha1.SourceVerdict) (out []policy.Signature) {
	for _, one := range verdicts {
		out = append(out, policy.Signature{Source: int64(one.Source), AskedBy: one.AskedBy, Method: one.Method, Signer: one.Signer})
	}
	return out
}

// bundleOf says of a bundle that it is verified if each source has a signature that the class of the revision asks for. Who
// writes a bundle may ask for one by a key of their own: that says nothing to others.
func bundleOf(bundle *v1alpha1.Bundle, revision *v1alpha1.InstanceRevision, out *policy.Bundle) {
	signed := map[int32]bool{}
	if verification := bundle.Status.Verification; verification != nil {
		out.Signatures = signatures(verification.Verdicts)
		for _, one := range verification.Verdicts {
			if revision != nil && one.AskedBy == "class/"+revision.Spec.ProvisionerClassName {
				signed[one.Source] = true
			}
		}
	}
	out.Verified = len(bundle.Spec.Sources) > 0
	for i, source := range bundle.Spec.Sources {
		out.Verified = out.Verified && signed[int32(i)] //nolint:gosec // a bundle has few sources
		one := policy.Source{Type: kindOf(source)}
		if i < len(bundle.Status.Sources) {
			one.Reference, one.Digest = bundle.Status.Sources[i].Ref, string(bundle.Status.Sources[i].Digest)
		}
		out.Sources = append(out.Sources, one)
	}
}

// kindOf is the field that is set.
func kindOf(source v1alpha1.BundleSource) string {
	text, err := json.Marshal(source)
	var fields map[string]json.RawMessage
	if err != nil || json.Unmarshal(text, &fields) != nil {
		return "" // it was read from JSON
	}
	delete(fields, "path")
	for kind := range fields {
		return kind
	}
	return ""
}
