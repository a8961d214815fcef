// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"

	"rukpak.io/rukpak/api/v1alpha1"
)

// What an event holds at most, so that every receiver takes it.
const (
	MaxEvent = 64 << 10 // bytes
	maxLines = 10       // of a list; fewer where that would be too much
	maxLine  = 256      // bytes
	maxText  = 1024     // bytes of a message
)

// Data of an event. What is longer than an event may be is cut; the counts are of all.
type Data struct {
	Instance       string        `json:"instance"`
	Namespace      string        `json:"namespace"`
	Revision       string        `json:"revision"`
	Number         int64         `json:"number"`
	Class          string        `json:"class"`
	ManifestDigest string        `json:"manifestDigest"`
	ChangedBy      []string      `json:"changedBy,omitempty"`
	Message        string        `json:"message"`
	Command        string        `json:"command,omitempty"` // with which one decides
	Plan           *Plan         `json:"plan,omitempty"`
	Permissions    *Permissions  `json:"permissions,omitempty"`
	Removals       *HeldRemovals `json:"removals,omitempty"`
}

// Plan counts what activation changes.
type Plan struct {
	Added     int64 `json:"added"`
	Changed   int64 `json:"changed"`
	Removed   int64 `json:"removed"`
	Unchanged int64 `json:"unchanged"`
	Tasks     int64 `json:"tasks,omitempty"`
	Conflicts int64 `json:"conflicts,omitempty"`
	Failing   int64 `json:"failing,omitempty"`
}

// Permissions are what the content may do at runtime, the gravest first.
type Permissions struct {
	Unknown           string   `json:"unknown,omitempty"`
	Gains             int64    `json:"gains"`
	Losses            int64    `json:"losses"`
	Gained            []string `json:"gained,omitempty"`
	MayGain           []string `json:"mayGain,omitempty"`
	PodSecurity       string   `json:"podSecurity,omitempty"`
	PodSecurityBefore string   `json:"podSecurityBefore,omitempty"`
}

// HeldRemovals are what waits for an approval of its own to be deleted.
type HeldRemovals struct {
	Digest  string   `json:"digest"`
	Count   int64    `json:"count"`
	Objects []string `json:"objects,omitempty"`
}

// Event of a state of a revision, in the structured mode of CloudEvents 1.0. The same state gives the same
// id, by which a receiver knows what comes twice.
func Event(of *v1alpha1.InstanceRevision, state State) ([]byte, error) {
	for lines := maxLines; ; lines /= 2 {
		content, err := encode(of, state, lines)
		if err != nil || len(content) <= MaxEvent {
			return content, err
		}
		if lines == 0 {
			return nil, fmt.Errorf("the event of InstanceRevision %q has %d bytes, more than %d", of.Name, len(content), MaxEvent)
		}
	}
}

func encode(of *v1alpha1.InstanceRevision, state State, lines int) ([]byte, error) {
	made := event.New()
	made.SetID(string(of.UID) + "-" + state.Key)
	made.SetType(state.Type)
	made.SetSource(fmt.Sprintf("/apis/%s/namespaces/%s/bundleinstances/%s", v1alpha1.GroupVersion, of.Namespace, of.Spec.Instance.Name))
	made.SetSubject(of.Name)
	made.SetTime(state.Since)
	if err := made.SetData(event.ApplicationJSON, data(of, state, lines)); err != nil {
		return nil, err
	}
	if err := made.Validate(); err != nil {
		return nil, err
	}
	return json.Marshal(made)
}

func data(of *v1alpha1.InstanceRevision, state State, lines int) Data {
	out := Data{
		Instance: of.Spec.Instance.Name, Namespace: of.Namespace, Revision: of.Name, Number: of.Spec.Number, Class: of.Spec.ProvisionerClassName,
		ManifestDigest: string(of.Spec.ManifestDigest), ChangedBy: first(of.Spec.ChangedBy, lines), Message: cut(state.Message, maxText),
	}
	switch state.Type {
	case Waiting:
		out.Command = fmt.Sprintf("rukpak approve -n %s %s --digest %s", of.Namespace, of.Name, of.Spec.ManifestDigest)
	case PruneWaiting:
		out.Command = fmt.Sprintf("rukpak approve -n %s %s --prune", of.Namespace, of.Spec.Instance.Name)
		held := of.Status.Removals
		out.Removals = &HeldRemovals{Digest: string(held.Digest), Count: held.Count, Objects: first(held.Objects, lines)}
	}
	if plan := of.Status.Plan; plan != nil {
		out.Plan = &Plan{
			Added: plan.Added, Changed: plan.Changed, Removed: plan.Removed, Unchanged: plan.Unchanged, Tasks: plan.Tasks,
			Conflicts: plan.Conflicts, Failing: plan.Failing,
		}
		out.Permissions = permissions(plan.Permissions, lines)
	}
	return out
}

func permissions(of *v1alpha1.PlannedPermissions, lines int) *Permissions {
	if of == nil {
		return nil
	}
	return &Permissions{
		Unknown: cut(of.Unknown, maxText), Gains: of.Gains, Losses: of.Losses, Gained: first(of.Gained, lines), MayGain: first(of.MayGain, lines),
		PodSecurity: of.PodSecurity, PodSecurityBefore: of.PodSecurityBefore,
	}
}

// first are so many lines of a list, each cut.
func first(of []string, lines int) (out []string) {
	for _, one := range of[:min(len(of), lines)] {
		out = append(out, cut(one, maxLine))
	}
	return out
}

func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// Address is a digest of a receiver's url, which may be a secret itself, for one revision.
func Address(of *v1alpha1.InstanceRevision, url string) string {
	sum := sha256.Sum256([]byte(string(of.UID) + "\n" + url))
	return hex.EncodeToString(sum[:16])
}
