// SPDX-License-Identifier: Apache-2.0

// Package status writes what the controllers found: conditions, and one patch
// at the end of a reconcile that is left out when nothing changed. It is the
// only way in which controllers write a status, so that a quiet cluster costs
// no writes.
package status

import (
	"context"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MaxMessage is the longest message of a condition, in bytes. The API server
// allows 32 KiB; more than 8 KiB is no longer read by anybody.
const MaxMessage = 8 << 10

// Conditions sets conditions of one object, at one generation.
type Conditions struct {
	List       *[]metav1.Condition
	Generation int64
}

// Set sets a condition and reports whether its status or reason changed.
func (c Conditions) Set(conditionType string, status metav1.ConditionStatus, reason, message string) bool {
	before := meta.FindStatusCondition(*c.List, conditionType)
	changed := before == nil || before.Status != status || before.Reason != reason
	meta.SetStatusCondition(c.List, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason,
		Message: OneLine(message), ObservedGeneration: c.Generation,
	})
	return changed
}

// True sets a condition to True.
func (c Conditions) True(conditionType, reason, message string) bool {
	return c.Set(conditionType, metav1.ConditionTrue, reason, message)
}

// False sets a condition to False.
func (c Conditions) False(conditionType, reason, message string) bool {
	return c.Set(conditionType, metav1.ConditionFalse, reason, message)
}

// Unknown sets a condition to Unknown.
func (c Conditions) Unknown(conditionType, reason, message string) bool {
	return c.Set(conditionType, metav1.ConditionUnknown, reason, message)
}

// Remove removes a condition.
func (c Conditions) Remove(conditionType string) {
	meta.RemoveStatusCondition(c.List, conditionType)
}

// Reason of a condition, or "".
func (c Conditions) Reason(conditionType string) string {
	if found := meta.FindStatusCondition(*c.List, conditionType); found != nil {
		return found.Reason
	}
	return ""
}

// OneLine joins the lines of a message with "; " and cuts it to MaxMessage bytes.
func OneLine(message string) string { return Cut(message, MaxMessage) }

// Cut joins the lines of a message with "; " and cuts it to so many bytes. What content says of itself may get into a
// message: what is no text is replaced, as the API server would do, so that a message is the same when it is read back,
// and as no terminal should be told what to do by it.
func Cut(message string, limit int) string {
	var lines []string
	for line := range strings.Lines(message) {
		if line = strings.TrimSpace(strings.Map(visible, line)); line != "" {
			lines = append(lines, line)
		}
	}
	return cut(strings.Join(lines, "; "), limit)
}

// visible replaces what has no form: also bytes that are no characters, which strings.Map gives as U+FFFD.
func visible(c rune) rune {
	if c != '\n' && c != '\t' && c != '\r' && (unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c)) {
		return unicode.ReplacementChar
	}
	return c
}

// Patch writes the status of object as it differs from before. It fails with a
// conflict if somebody else wrote the object meanwhile: conditions are a list
// that a merge patch replaces whole, so two writers would undo one another.
// Nothing is written where nothing changed.
func Patch(ctx context.Context, c client.Client, object, before client.Object) error {
	if equality.Semantic.DeepEqual(object, before) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return c.Status().Patch(ctx, object, patch)
}

// MaxNote is the longest note that the API server takes in an Event, in bytes.
const MaxNote = 1024

// Note makes the note of an Event of a message.
func Note(message string) string { return Cut(message, MaxNote) }

func cut(text string, limit int) string {
	const mark = " ..."
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
