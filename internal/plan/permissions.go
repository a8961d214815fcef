// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/pod-security-admission/api"

	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/permission"
	"rukpak.io/rukpak/provisioner"
)

// maxPowers bounds how many powers a plan has. With more, rules could not see them all.
const maxPowers = 10_000

// maxReasons bounds how many reasons are told of what Pods need.
const maxReasons = 1000

// Permissions are what the content may do at runtime, with what it gains and loses against what is active. What it takes to
// install it is in Plan.Missing.
type Permissions struct {
	// Unknown says why they are not known. Then there is nothing else.
	Unknown string `json:"unknown,omitempty"`
	// Gained is what it may do that it might not do before, Lost the other way round.
	Gained permission.Powers `json:"gained,omitzero"`
	Lost   permission.Powers `json:"lost,omitzero"`
	// Has is all that it may do.
	Has permission.Powers `json:"has,omitzero"`
	// PodSecurity is what its Pods need to be allowed.
	PodSecurity PodSecurity `json:"podSecurity,omitzero"`
}

// PodSecurity are levels of the Pod Security Standards: restricted, baseline or privileged, and "" where there are no Pods.
type PodSecurity struct {
	Before string `json:"before,omitempty"` // of what is active
	After  string `json:"after,omitempty"`
	// Reasons are what keeps the Pods from restricted, sorted; at most 1000.
	Reasons []string `json:"reasons,omitempty"`
}

// Runtime is what Permissions are computed from.
type Runtime struct {
	// Unknown, if it is not empty, says why they cannot be.
	Unknown string
	// Live are the roles and bindings of the cluster.
	Live *permission.Snapshot
	// Active are the objects of the revision that is active; none if there is none.
	Active []*unstructured.Unstructured
	// Owner is the instance, whose mark tells what in the cluster is its own.
	Owner types.UID
	// Left are those of all revisions that may have left something, also of ones that never became active: what they
	// brought is no right that the cluster gave.
	Left []provisioner.Phase
}

// permissions are those of objects once they are active.
func (r Runtime) permissions(objects []*unstructured.Unstructured) *Permissions {
	if r.Unknown != "" {
		return &Permissions{Unknown: r.Unknown}
	}
	base := r.Live.WithoutThoseOf(r.Owner, manifest.Set{Phases: r.Left}.Objects())
	has, expansion, err := permission.Between(r.Active, objects, base)
	if err != nil {
		return &Permissions{Unknown: oneLine(err.Error())}
	}
	if count := len(has.Items()) + len(expansion.Lost.Items()); count > maxPowers {
		return &Permissions{Unknown: fmt.Sprintf("there are %d of them, more than the %d that a plan holds", count, maxPowers)}
	}
	p := &Permissions{Has: *has, Gained: expansion.Gained, Lost: expansion.Lost}
	p.PodSecurity.Before, _ = podSecurity(r.Active)
	p.PodSecurity.After, p.PodSecurity.Reasons = podSecurity(objects)
	return p
}

// podSecurity is the least strict level that one of the objects needs, "" if none has Pods, and why.
func podSecurity(objects []*unstructured.Unstructured) (string, []string) {
	var level api.Level
	var reasons []string
	for _, object := range objects {
		found, ok := permission.SecurityOf(object)
		if !ok {
			continue
		}
		if level == "" || api.CompareLevels(found.Level, level) < 0 {
			level = found.Level
		}
		for _, reason := range found.Reasons {
			reasons = append(reasons, object.GetKind()+" "+object.GetName()+": "+reason)
		}
	}
	slices.Sort(reasons)
	reasons = slices.Compact(reasons)
	return string(level), reasons[:min(len(reasons), maxReasons)]
}

// Grows reports whether the content may do more than before. What is not known might.
func (p *Permissions) Grows() bool { return p == nil || p.Unknown != "" || !p.Gained.Empty() }

// Lines for people, the gravest first: what is gained, what may be gained, and what is lost.
func (p *Permissions) Lines() (gained, mayGain, lost []string) {
	for _, item := range p.Gained.Items() {
		if item.Power == permission.PowerMayGain {
			mayGain = append(mayGain, item.Text)
		} else {
			gained = append(gained, item.Text)
		}
	}
	for _, item := range p.Lost.Items() {
		lost = append(lost, item.Text)
	}
	return gained, mayGain, lost
}
