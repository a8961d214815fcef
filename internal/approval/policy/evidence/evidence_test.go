// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval/policy"
	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/plan"
)

func TestFactsSayWhatThePlanSays(t *testing.T) {
	back, at := int64(2), time.Date(2026, 12, 2, 9, 0, 0, 0, time.UTC)
	in := Input{
		Plan: &plan.Plan{
			Counts: plan.Counts{Add: 1, Change: 2, Remove: 3, Keep: 4, Run: 5, Conflict: 6, Unchanged: 7, Problems: 8},
			Changes: []plan.Change{{
				Action: plan.Alter, Group: "apps", Kind: "Deployment", Namespace: "web", Name: "a", Adopted: true, Recreated: true,
				Problem: &plan.Problem{Reason: "ImmutableField", Message: "no"},
			}},
			Images: []string{"nginx"}, Missing: []string{"create pods"},
			CRDs: []crdsafety.Finding{{Rule: "FieldRemoved", CRD: "a.b", Version: "v1", Path: "spec.x", Message: "gone", Action: crdsafety.Block}},
		},
		Summary: &v1alpha1.PlanSummary{Against: 3},
		Revision: &v1alpha1.InstanceRevision{Spec: v1alpha1.InstanceRevisionSpec{
			Number: 4, RollbackOf: &back, ProvisionerClassName: "strict", ChangedBy: []string{"ann"}, ServiceAccountName: "installer", Installer: &v1alpha1.AccountReference{Namespace: "platform", Name: "strong"},
		}},
		Instance: &v1alpha1.BundleInstance{ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "team", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
		}},
		Bundle: &v1alpha1.Bundle{
			Spec: v1alpha1.BundleSpec{Sources: []v1alpha1.BundleSource{{OCI: &v1alpha1.OCISource{}, Path: "a"}, {Git: &v1alpha1.GitSource{}}}},
			Status: v1alpha1.BundleStatus{
				Sources:      []v1alpha1.ResolvedSource{{Ref: "r.example.com/a@sha256:aa", Digest: "sha256:aa"}, {Ref: "https://git.example.com", Digest: "sha1:bb"}},
				Verification: &v1alpha1.BundleVerification{Verdicts: []v1alpha1.SourceVerdict{{Source: 0, AskedBy: "source", Method: "cosign key", Signer: "k"}}},
			},
		},
		From: "v1.2", To: "v1.3.0", NamespaceLabels: map[string]string{"e": "f"}, Now: at,
	}
	want := &policy.Facts{
		Plan: policy.Plan{
			Against: 3, Added: 1, Changed: 2, Removed: 3, Kept: 4, Tasks: 5, Conflicts: 6, Unchanged: 7, Failing: 8,
			Objects: []policy.Object{{
				Action: "Change", Group: "apps", Kind: "Deployment", Namespace: "web", Name: "a", Adopted: true, Recreated: true, Problem: "ImmutableField",
			}},
			Images:             []policy.Image{{Reference: "nginx", Registry: "docker.io", Repository: "library/nginx", Tag: "latest"}},
			CRDs:               policy.CRDs{Findings: []policy.CRDFinding{{Rule: "FieldRemoved", Action: "Block", Level: "block", CRD: "a.b", Version: "v1", Path: "spec.x", Message: "gone"}}},
			MissingPermissions: []string{"create pods"},
		},
		Bundle: policy.Bundle{
			Signatures: []policy.Signature{{AskedBy: "source", Method: "cosign key", Signer: "k"}},
			Sources:    []policy.Source{{Type: "oci", Reference: "r.example.com/a@sha256:aa", Digest: "sha256:aa"}, {Type: "git", Reference: "https://git.example.com", Digest: "sha1:bb"}},
			Version:    &policy.Version{From: "1.2.0", To: "1.3.0"},
		},
		Instance:  policy.Instance{Name: "web", Namespace: "team", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, ServiceAccount: "installer"},
		Namespace: policy.Namespace{Name: "team", Labels: map[string]string{"e": "f"}},
		Request:   policy.Request{Users: []string{"ann"}},
		Revision:  policy.Revision{Number: 4, Rollback: true, Installer: "platform/strong"},
		Now:       at,
	}
	if diff := cmp.Diff(want, Of(in)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	in.Bundle.Status.Verification.Verdicts = []v1alpha1.SourceVerdict{{Source: 0, AskedBy: "class/strict"}, {Source: 1, AskedBy: "source"}, {Source: 1, AskedBy: "class/strict"}}
	if !Of(in).Bundle.Verified {
		t.Error("both sources are signed as the class asks")
	}
	for name, verdicts := range map[string][]v1alpha1.SourceVerdict{
		"the key of whoever wrote the bundle": {{Source: 0, AskedBy: "source"}, {Source: 1, AskedBy: "source"}},
		"one by the class, one by the bundle": {{Source: 0, AskedBy: "class/strict"}, {Source: 1, AskedBy: "source"}},
		"the rules of another class":          {{Source: 0, AskedBy: "class/lax"}, {Source: 1, AskedBy: "class/lax"}},
	} {
		in.Bundle.Status.Verification.Verdicts = verdicts
		if Of(in).Bundle.Verified {
			t.Errorf("%s: it counts as verified", name)
		}
	}
	in.From, in.To = "main", "latest"
	if got := Of(in).Bundle.Version; got != nil {
		t.Errorf("no versions: %+v", got)
	}
}

func TestImagesAreTakenApart(t *testing.T) {
	const digest = "sha256:" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for reference, want := range map[string]policy.Image{
		"nginx:1":                              {Registry: "docker.io", Repository: "library/nginx", Tag: "1"},
		"docker.io/a/b":                        {Registry: "docker.io", Repository: "a/b", Tag: "latest"},
		"r.example.com:5000/a@" + digest:       {Registry: "r.example.com:5000", Repository: "a", Digest: digest},
		"r.example.com:5000/a/b:1.2@" + digest: {Registry: "r.example.com:5000", Repository: "a/b", Tag: "1.2", Digest: digest},
		"Not An Image":                         {},
	} {
		want.Reference = reference
		if diff := cmp.Diff(want, imageOf(reference)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
