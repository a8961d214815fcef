// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"errors"
	"strings"

	"rukpak.io/rukpak/internal/ownership"
)

// Reason says of which kind a failure is. The values are those that conditions use.
type Reason string

const (
	// CollisionReason is an object that exists and is somebody else's; Err is an *ownership.CollisionError.
	CollisionReason Reason = "Collision"
	// ImmutableField is a change of a field that cannot be changed; Fields says which.
	ImmutableField Reason = "ImmutableField"
	// PermissionsMissing is something that the service account may not do.
	PermissionsMissing Reason = "PermissionsMissing"
	// Rejected is an object that the API server, a webhook, a policy or a quota refuses.
	Rejected Reason = "Rejected"
	// UnknownKind is a kind that the API server does not serve, and that nothing in the set brings.
	UnknownKind Reason = "UnknownKind"
	// TaskFailedReason is a task that has ended badly. It is not run again in the same run.
	TaskFailedReason Reason = "TaskFailed"
	// TransientError may pass by itself: the API server or a webhook cannot be reached, is busy, or the call ended early.
	TransientError Reason = "TransientError"
)

// reasons in the order of their weight.
var reasons = []Reason{CollisionReason, ImmutableField, PermissionsMissing, UnknownKind, Rejected, TaskFailedReason, TransientError}

// Error says why an object could not be brought to where it should be.
type Error struct {
	ID     ownership.ID
	Reason Reason
	Fields []string // paths such as "spec.selector", sorted; as the API server names them
	Advice string   // what to do about it, "" if the cause says it
	Err    error    // the cause, with the API server's message as it came
}

// Error names the object, the cause and what to do, in one line.
func (e *Error) Error() string {
	cause := oneLine(e.Err.Error())
	var collision *ownership.CollisionError
	if errors.As(e.Err, &collision) {
		return cause // it names the object
	}
	text := e.ID.String() + ": "
	if fields := strings.Join(e.Fields, ", "); fields != "" && !strings.Contains(cause, fields) {
		text += fields + ": "
	}
	text += cause
	if e.Advice != "" {
		text += ": " + e.Advice
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
