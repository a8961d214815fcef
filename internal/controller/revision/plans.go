// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/plan"
)

// maxPlans bounds the plans that are held: those of revisions about which rules are asked again and again.
const maxPlans = 64

// plans holds full plans by their digests, so that a revision that waits costs no reads.
type plans struct {
	once sync.Once
	held *lru.Cache
}

// of gives the full plan of a revision, exactly that of which its status speaks. It must not be changed.
func (p *plans) of(ctx context.Context, live client.Reader, revision *v1alpha1.InstanceRevision) (*plan.Plan, error) {
	p.once.Do(func() { p.held = lru.New(maxPlans) })
	want := v1alpha1.Digest("")
	if revision.Status.Plan != nil {
		want = revision.Status.Plan.Digest
	}
	if found, ok := p.held.Get(want); ok && want != "" {
		if known, ok := found.(*plan.Plan); ok {
			return known, nil
		}
	}
	encoded, err := manifest.Load(ctx, live, revision.Namespace, revision.Name, manifest.KindPlan)
	if err != nil {
		return nil, err
	}
	if got := v1alpha1.Digest(manifest.DigestOf(encoded)); want != "" && got != want {
		return nil, fmt.Errorf("the one that is kept has the digest %s, not %s as its status says; it is planned anew, or somebody changed it", got, want)
	}
	decoded, err := plan.Decode(encoded)
	if err == nil && want != "" {
		p.held.Add(want, decoded)
	}
	return decoded, err
}
