// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/controller/status"
)

// undone are the actions that put something right on a revision that was
// active before.
var undone = map[activate.Action]string{
	activate.Created:   "was missing and is restored",
	activate.Applied:   "was changed and is put right",
	activate.Adopted:   "was taken over and is taken back",
	activate.Recreated: "was changed and is made anew",
}

// recordDrift notes what others changed on an active revision, and whether it
// could be put right.
func (c *Controller) recordDrift(w *work, result activate.Result) {
	target := w.target
	conditions := conditionsOf(target)
	var lines []string
	for _, object := range result.Objects {
		what, found := undone[object.Action]
		if !found {
			continue
		}
		line := object.ID.String() + " " + what
		if len(object.Fields) > 0 {
			line += ": " + strings.Join(object.Fields, ", ")
		}
		lines = append(lines, line)
		c.Recorder.Eventf(target, nil, corev1.EventTypeWarning, v1alpha1.ReasonDriftUndone, "Heal", "%s", status.Note(line))
	}
	if len(lines) > 0 {
		c.Recorder.Eventf(w.instance, target, corev1.EventTypeWarning, v1alpha1.ReasonDriftUndone, "Heal", "%s", status.Note(summary(lines)))
	}
	c.Metrics.DriftUndone(len(lines))
	target.Status.DriftUndone += int64(len(lines))
	switch {
	case len(result.Failed()) > 0:
		conditions.True(v1alpha1.ConditionDrifted, v1alpha1.ReasonDriftRemains, result.String())
	case len(lines) > 0:
		conditions.False(v1alpha1.ConditionDrifted, v1alpha1.ReasonDriftUndone, summary(lines))
	case is(target, v1alpha1.ConditionDrifted) && result.Complete:
		conditions.False(v1alpha1.ConditionDrifted, v1alpha1.ReasonDriftUndone, "nothing differs any more")
	}
}

// summary names the first few of what was put right.
func summary(lines []string) string {
	const shown = 5
	if len(lines) <= shown {
		return strings.Join(lines, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(lines[:shown], "; "), len(lines)-shown)
}
