// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/internal/ownership"
)

// Action is what became of an object.
type Action string

// Actions of Apply.
const (
	Created   Action = "Created"   // it was not there
	Applied   Action = "Applied"   // it differed, by a new revision or by drift
	Adopted   Action = "Adopted"   // it was somebody else's, or nobody's, and is ours now
	Recreated Action = "Recreated" // it was deleted and created, since a field cannot be changed
	Intact    Action = "Intact"    // it was as it should be
	Ran       Action = "Ran"       // it is a task and has ended well, in this call or before
	Waiting   Action = "Waiting"   // it needs time: see Wait
	Collision Action = "Collision" // it is somebody else's: see Err
	Failed    Action = "Failed"    // see Err
)

// Actions of Prune and Teardown, besides Waiting and Failed.
const (
	Deleted Action = "Deleted" // it is gone, or on its way with nothing depending on that: see Note
	Absent  Action = "Absent"  // it was not there
	Kept    Action = "Kept"    // it stays on purpose: see Note
)

// actions in the order in which String tells them.
var actions = []Action{Created, Applied, Adopted, Recreated, Intact, Ran, Deleted, Absent, Kept, Waiting, Collision, Failed}

// ObjectResult is what became of one object.
type ObjectResult struct {
	ID     ownership.ID
	Phase  string
	Action Action
	// Fields that differed and were applied, such as "spec.replicas" or `spec.ports[port=80].name`; sorted, at most
	// 32. Empty if the difference is in no field, such as one that only had to go.
	Fields []string
	// Wait says in words what an object needs time for: one with the action Waiting, and one that stands but that
	// others wait for, such as a CustomResourceDefinition that is not established yet.
	Wait string
	// Note says in words why an object is kept, or what holds up one that is being deleted.
	Note string
	// Err is set for Failed and Collision only.
	Err *Error

	uid     types.UID   // of what was deleted
	version string      // in which it was found
	report  *TaskReport // of a task
	begun   bool        // the task was started in this call
}

// Runs reports whether the object is of a task that was started and has not ended.
func (r ObjectResult) Runs() bool { return r.report != nil && r.report.State == TaskRunning }

// String is "Failed Deployment.apps ns/name: reason".
func (r ObjectResult) String() string {
	text := string(r.Action) + " "
	switch {
	case r.Err != nil:
		return text + r.Err.Error()
	case r.Wait+r.Note != "":
		return text + r.ID.String() + ": " + r.Wait + r.Note
	case len(r.Fields) > 0:
		return text + r.ID.String() + ": " + strings.Join(r.Fields, ", ")
	default:
		return text + r.ID.String()
	}
}

// Result is what a call did.
type Result struct {
	// Objects that were looked at, in the order in which their phases came.
	Objects []ObjectResult
	// Complete is true if nothing is left to do.
	Complete bool
	// Skipped is the number of objects that were not looked at, since something before them failed or waits.
	Skipped int
	// Reads and Writes count the requests sent to the API server. An apply that changes nothing is a write here.
	Reads, Writes int
}

// Count returns how many objects have this action.
func (r Result) Count(action Action) int { return len(r.with(action)) }

// Waiting returns the objects that need time.
func (r Result) Waiting() []ObjectResult {
	return r.where(func(o ObjectResult) bool { return o.Wait != "" })
}

// Failed returns the objects that failed, and those that are somebody else's.
func (r Result) Failed() []ObjectResult { return r.with(Failed, Collision) }

func (r Result) with(wanted ...Action) []ObjectResult {
	return r.where(func(o ObjectResult) bool { return slices.Contains(wanted, o.Action) })
}

func (r Result) where(want func(ObjectResult) bool) []ObjectResult {
	var found []ObjectResult
	for _, object := range r.Objects {
		if want(object) {
			found = append(found, object)
		}
	}
	return found
}

// Transient reports whether there are failures, and all of them may pass by themselves: the caller tries again soon.
func (r Result) Transient() bool {
	failed := r.Failed()
	for _, object := range failed {
		if object.Err.Reason != TransientError {
			return false
		}
	}
	return len(failed) > 0
}

// Reason is the reason of the failures that weighs most, "" if there are none. What passes by itself weighs least.
func (r Result) Reason() Reason {
	failed := r.Failed()
	for _, reason := range reasons {
		if slices.ContainsFunc(failed, func(o ObjectResult) bool { return o.Err.Reason == reason }) {
			return reason
		}
	}
	return ""
}

// Err joins what failed, in the order of identities; nil if nothing did.
func (r Result) Err() error {
	failed := r.Failed()
	slices.SortFunc(failed, func(a, b ObjectResult) int { return a.ID.Compare(b.ID) })
	all := make([]error, 0, len(failed))
	for _, object := range failed {
		all = append(all, object.Err)
	}
	return errors.Join(all...)
}

// String tells the result in one line: counts by action, then what failed, then what is waited for. The same result
// gives the same line.
func (r Result) String() string {
	var counts, faults, waits []string
	for _, action := range actions {
		if n := r.Count(action); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, strings.ToLower(string(action))))
		}
	}
	if r.Skipped > 0 {
		counts = append(counts, fmt.Sprintf("%d not reached", r.Skipped))
	}
	if len(counts) == 0 {
		counts = []string{"nothing to do"}
	}
	for _, object := range r.Failed() {
		faults = append(faults, object.Err.Error())
	}
	for _, object := range r.Waiting() {
		waits = append(waits, object.ID.String()+": "+object.Wait)
	}
	slices.Sort(faults)
	slices.Sort(waits)
	return strings.Join(slices.Concat([]string{strings.Join(counts, ", ")}, faults, waits), "; ")
}
