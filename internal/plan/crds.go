// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/plural"
)

// unsafeUpgrade is the reason of a problem with a definition whose findings block it.
const unsafeUpgrade = "UnsafeCRDUpgrade"

// liveBounds keep a plan from waiting for custom resources that nobody converts.
var liveBounds = crdsafety.Live{PageTime: 10 * time.Second, Time: time.Minute}

// upgrades gathers what new definitions would break.
type upgrades struct {
	mutex    sync.Mutex
	findings []crdsafety.Finding
}

// upgrade looks for what a definition that is live would break by changing. Its custom resources are read as the service
// account. One that is made anew has none.
func (c *computation) upgrade(ctx context.Context, change *Change, preview activate.Preview, object *unstructured.Unstructured) error {
	if object.GroupVersionKind().GroupKind() != crdKind || preview.Live == nil || change.Action != Alter || change.Recreated {
		return nil
	}
	after := preview.After
	if after == nil {
		after = object
	}
	findings, err := c.findings(ctx, preview.Live, after)
	if err != nil || len(findings) == 0 {
		return err
	}
	if err := c.concealFindings(ctx, preview.Live, findings); err != nil {
		return err
	}
	c.upgrades.mutex.Lock()
	c.upgrades.findings = append(c.upgrades.findings, findings...)
	c.upgrades.mutex.Unlock()
	if change.Problem == nil {
		change.Problem = unsafeProblem(change, findings)
	}
	return nil
}

func (c *computation) findings(ctx context.Context, live, after *unstructured.Unstructured) ([]crdsafety.Finding, error) {
	policy := c.input.CRDs
	var read [2]*apiextensionsv1.CustomResourceDefinition
	for i, object := range []*unstructured.Unstructured{live, after} {
		crd, err := crdsafety.Definition(object)
		if err != nil {
			finding := crdsafety.Finding{Rule: crdsafety.Unhandled, CRD: after.GetName(), Action: policy.Action(crdsafety.Unhandled), Message: oneLine(err.Error())}
			if finding.Action == crdsafety.Allow {
				return nil, nil
			}
			return []crdsafety.Finding{finding}, nil
		}
		read[i] = crd
	}
	findings := crdsafety.Check(read[0], read[1], policy)
	found, err := crdsafety.CheckLive(ctx, c.input.Client, read[0], read[1], policy, liveBounds)
	return append(findings, found...), err
}

// unsafeProblem says at the definition that it cannot be activated, nil if it can.
func unsafeProblem(change *Change, findings []crdsafety.Finding) *Problem {
	count, first := 0, ""
	for _, finding := range findings {
		if finding.Action != crdsafety.Block {
			continue
		}
		if count++; count == 1 {
			first = finding.Place() + ": " + finding.Message
		}
	}
	if count == 0 {
		return nil
	}
	message := fmt.Sprintf("%s: its upgrade is blocked by %s, the first: %s; make another bundle, or let the class's spec.crdUpgrade warn of that",
		change.ID(), plural.Of(count, "finding"), first)
	return &Problem{Reason: unsafeUpgrade, Message: message}
}

// crdLines are the findings as lines for people, those that block first.
func crdLines(findings []crdsafety.Finding) []string {
	var lines []string
	for _, finding := range BlockingFirst(findings) {
		lines = append(lines, finding.String())
	}
	return lines
}

// BlockingFirst puts what blocks a revision before what only warns. The order is else as it was.
func BlockingFirst(findings []crdsafety.Finding) []crdsafety.Finding {
	ordered := slices.Clone(findings)
	slices.SortStableFunc(ordered, func(a, b crdsafety.Finding) int { return cmp.Compare(a.Action, b.Action) })
	return ordered
}
