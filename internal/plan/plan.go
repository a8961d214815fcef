// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/ownership"
)

// format is the version of the encoding.
const format = "rukpak.io/plan/v1"

// Plan is what a revision would do as things stood. It holds no secret and can be shown to whoever may read the instance.
type Plan struct {
	Format string `json:"format"`
	// Changes are the objects that would not stay as they are, and those with a problem, sorted by identity.
	Changes []Change `json:"changes"`
	Counts  Counts   `json:"counts"`
	// Missing is what the service account lacks, a line for each resource and namespace, sorted.
	Missing []string `json:"missing,omitempty"`
	// Installer is the account as which it would be activated, as "namespace/name", if that is not the service account.
	// Then Missing is what the installer lacks.
	Installer string `json:"installer,omitempty"`
	// MissingForHealing is what the service account lacks to heal and remove what the installer makes. It blocks nothing.
	MissingForHealing []string `json:"missingForHealing,omitempty"`
	// Permissions are what the content may do at runtime. Nil in plans of managers that did not compute them.
	Permissions *Permissions `json:"permissions,omitempty"`
	// CRDs is what definitions that are live would break by changing, sorted.
	CRDs []crdsafety.Finding `json:"crds,omitempty"`
	// Images are those that the objects name in Pods and templates of Pods, also tasks of any moment; sorted.
	Images []string `json:"images,omitempty"`
}

// Counts are numbers of objects. Those with a problem are counted by what would become of them without it.
type Counts struct {
	Add       int `json:"add"`
	Change    int `json:"change"`
	Remove    int `json:"remove"`
	Keep      int `json:"keep"`
	Run       int `json:"run,omitempty"`
	Conflict  int `json:"conflict"`
	Unchanged int `json:"unchanged"`
	Problems  int `json:"problems"`
}

// Action says what would become of an object.
type Action string

const (
	// Add is an object that does not exist, as far as is known.
	Add Action = "Add"
	// Alter is one that exists and would be written.
	Alter Action = "Change"
	// Remove is one of an older revision that would be deleted.
	Remove Action = "Remove"
	// Keep is one of an older revision that would stay: Note says why.
	Keep Action = "Keep"
	// Run is a task that would run. One object may be a task of several phases.
	Run Action = "Run"
	// Conflict is one that exists and is somebody else's: Problem says whose.
	Conflict Action = "Conflict"
	// Unchanged is one that is as it should be. It is in Changes only if it has a problem.
	Unchanged Action = "Unchanged"
)

// Change is what would become of one object.
type Change struct {
	Action    Action `json:"action"`
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Phase     string `json:"phase,omitempty"`
	// On are the moments at which it is run, such as "Install" and "Upgrade", if it is a task; none for what is kept.
	On []string `json:"on,omitempty"`
	// Fields that would differ, sorted by path, at most MaxFields. Of an object that is added there are none: its
	// manifest says it all.
	Fields []Field `json:"fields,omitempty"`
	// MoreFields is the number of further fields.
	MoreFields int `json:"moreFields,omitempty"`
	// After names what has to come before, when the same bundle brings it: a definition or a namespace. Then only the
	// schema has been checked.
	After string `json:"after,omitempty"`
	// Unchecked is true if no dry run told the fields: they are what the manifest says beside what is live, and the API
	// server has not checked them.
	Unchecked bool `json:"unchecked,omitempty"`
	// Adopted is true if the object is taken from somebody else, Recreated if it is deleted and created.
	Adopted   bool `json:"adopted,omitempty"`
	Recreated bool `json:"recreated,omitempty"`
	// Note says in words what else there is to know.
	Note    string   `json:"note,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}

// Problem says why activation would fail at an object.
type Problem struct {
	// Reason is one of package activate, such as "Collision", "ImmutableField", "PermissionsMissing" or "Rejected", or it is
	// "UnsafeCRDUpgrade".
	Reason string `json:"reason"`
	// Fields are the paths that the API server complains of, sorted.
	Fields []string `json:"fields,omitempty"`
	// Message is one line: what is wrong and, mostly, what to do. It names the object.
	Message string `json:"message"`
}

// Field is a difference. Old and New are JSON, nil for a field that is not there.
type Field struct {
	Path string          `json:"path"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
	// Redacted is true if the values are not told; Old and New then only say which of them is there.
	Redacted bool `json:"redacted,omitempty"`
}

// ID is the identity of the object.
func (c Change) ID() ownership.ID {
	return ownership.ID{Group: c.Group, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
}

// Paths are the paths of the fields, at most limit.
func (c Change) Paths(limit int) []string {
	var paths []string
	for _, field := range c.Fields[:min(limit, len(c.Fields))] {
		paths = append(paths, field.Path)
	}
	return paths
}

// ProblemLines are the messages of all problems, one line each, sorted, each once. What Missing tells already is left
// out: that an account may not create Deployments need not be said for each of them.
func (p *Plan) ProblemLines() []string {
	var lines []string
	for _, change := range p.Changes {
		if change.Problem != nil && (change.Problem.Reason != permissionsMissing || len(p.Missing) == 0) {
			lines = append(lines, change.Problem.Message)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// Summary is one line of counts.
func (p *Plan) Summary() string { return p.Counts.String() }

// String is one line for people. It is the same wherever a plan is summed up.
func (c Counts) String() string {
	parts := []string{
		fmt.Sprintf("%d to add", c.Add), fmt.Sprintf("%d to change", c.Change), fmt.Sprintf("%d to remove", c.Remove),
		fmt.Sprintf("%d unchanged", c.Unchanged),
	}
	for _, more := range []struct {
		count      int
		one, other string
	}{{c.Run, "task to run", "tasks to run"}, {c.Keep, "kept", "kept"}, {c.Conflict, "conflict", "conflicts"}, {c.Problems, "problem", "problems"}} {
		switch {
		case more.count == 1:
			parts = append(parts, "1 "+more.one)
		case more.count > 1:
			parts = append(parts, fmt.Sprintf("%d %s", more.count, more.other))
		}
	}
	return strings.Join(parts, ", ")
}

// Encode gives the plan as bytes, to be kept with manifest.Save.
func (p *Plan) Encode() ([]byte, error) {
	encoded, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode the plan: %w", err)
	}
	return encoded, nil
}

// Decode reads what Encode wrote.
func Decode(encoded []byte) (*Plan, error) {
	var p Plan
	if err := json.Unmarshal(encoded, &p); err != nil {
		return nil, fmt.Errorf("decode the plan: %w", err)
	}
	if p.Format != format {
		return nil, fmt.Errorf("decode the plan: its format is %q, this version of RukPak reads %q", p.Format, format)
	}
	return &p, nil
}

// finish sorts and counts.
func (p *Plan) finish() {
	p.Format = format
	p.CRDs = crdsafety.Sort(p.CRDs)
	slices.SortStableFunc(p.Changes, func(a, b Change) int { return a.ID().Compare(b.ID()) })
	for _, change := range p.Changes {
		if change.Problem != nil {
			p.Counts.Problems++
		}
		switch change.Action {
		case Add:
			p.Counts.Add++
		case Alter:
			p.Counts.Change++
		case Remove:
			p.Counts.Remove++
		case Keep:
			p.Counts.Keep++
		case Run:
			p.Counts.Run++
		case Conflict:
			p.Counts.Conflict++
			p.Counts.Problems-- // it is told as a conflict
		case Unchanged:
			p.Counts.Unchanged++
		}
	}
}
