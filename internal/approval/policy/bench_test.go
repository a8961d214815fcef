// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"testing"

	"rukpak.io/rukpak/api/v1alpha1"
)

// large has facts of 10,000 objects, 1,000 gained permissions and 200 images, of which no rule below finds what it looks for.
func large() *Facts {
	f := facts()
	f.Plan.Objects, f.Plan.Images, f.Plan.CRDs.Findings = nil, nil, nil
	f.Plan.Permissions = &Permissions{}
	for i := range 10_000 {
		f.Plan.Objects = append(f.Plan.Objects, Object{Action: "Change", Group: "apps", Kind: "Deployment", Namespace: "web", Name: fmt.Sprintf("web-%d", i)})
	}
	for i := range 1_000 {
		f.Plan.Permissions.Gained = append(f.Plan.Permissions.Gained, Permission{
			Power: "Grant", Subject: Subject{Kind: "ServiceAccount", Namespace: "web", Name: fmt.Sprintf("web-%d", i)},
			Verbs: []string{"get", "list"}, Groups: []string{"apps"}, Resources: []string{"deployments", "statefulsets"},
		})
	}
	for i := range 200 {
		f.Plan.Images = append(f.Plan.Images, Image{Registry: "registry.example.com", Repository: fmt.Sprintf("web-%d", i), Digest: "sha256:aa"})
	}
	return f
}

func policyOfAll(t testing.TB) *Policy {
	return compiled(t,
		v1alpha1.ApprovalRule{Name: "no-secrets", Then: deny, When: "plan.permissions.gained.exists(p, 'secrets' in p.resources || '*' in p.resources)"},
		v1alpha1.ApprovalRule{Name: "nothing-is-removed", Then: require, When: "plan.objects.exists(o, o.action == 'Remove' && o.kind in ['Namespace', 'PersistentVolumeClaim'])"},
		v1alpha1.ApprovalRule{Name: "registries", Then: deny, When: "!plan.images.all(i, i.registry == 'registry.example.com' && i.digest != '')"},
		v1alpha1.ApprovalRule{Name: "no-growth", Then: approve, When: "plan.permissions.gained.size() == 0 && plan.permissions.mayGain.size() == 0"},
		v1alpha1.ApprovalRule{Name: "working-hours", Then: approve, When: "now.getHours('Europe/Berlin') >= 0 && bundle.verified"},
	)
}

// BenchmarkVerdict is that of five rules on a large plan, each item of which is looked at.
func BenchmarkVerdict(b *testing.B) {
	p, f := policyOfAll(b), large()
	for b.Loop() {
		if got := p.Judge(f); got.Rule != "working-hours" || got.Effect != approve {
			b.Fatalf("%+v", got)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		policyOfAll(b)
	}
}
