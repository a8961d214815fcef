// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"rukpak.io/rukpak/api/v1alpha1"
)

// Mood is how a line is to be taken.
type Mood int

const (
	// Neutral says how it is.
	Neutral Mood = iota
	// Alarming is what somebody should look at.
	Alarming
	// Relieving is what is no worse than before.
	Relieving
)

// Line is one line about what content may do.
type Line struct {
	Mood Mood
	Text string
}

// atRuntime is what a plan or its summary say of the permissions at runtime.
type atRuntime struct {
	unknown               string
	gained, mayGain, lost []string
	gains, losses         int // also those that are cut
	before, after         string
}

// RuntimeLines say what the content may do at runtime, for people: that comes before what is written.
func (p *Plan) RuntimeLines() []Line {
	if p.Permissions == nil {
		return nil
	}
	t := atRuntime{unknown: p.Permissions.Unknown, before: p.Permissions.PodSecurity.Before, after: p.Permissions.PodSecurity.After}
	t.gained, t.mayGain, t.lost = p.Permissions.Lines()
	t.gains, t.losses = len(t.gained)+len(t.mayGain), len(t.lost)
	return t.lines()
}

// RuntimeLinesIn are the same of a summary, which may be cut.
func RuntimeLinesIn(summary *v1alpha1.PlanSummary) []Line {
	of := summary.Permissions
	if of == nil {
		return nil
	}
	return atRuntime{
		of.Unknown, of.Gained, of.MayGain, of.Lost, int(of.Gains), int(of.Losses), of.PodSecurityBefore, of.PodSecurity,
	}.lines()
}

func (t atRuntime) lines() []Line {
	if t.unknown != "" {
		return []Line{{Alarming, "What it may do at runtime is not known: " + t.unknown}}
	}
	var out []Line
	if t.gains == 0 {
		out = append(out, Line{Relieving, "At runtime it may do no more than before."})
	} else {
		out = append(out, Line{Alarming, "At runtime it may do what it could not before:"})
		for _, line := range t.gained {
			out = append(out, Line{Neutral, "  + " + line})
		}
		for _, line := range t.mayGain {
			out = append(out, Line{Neutral, "  ? " + line})
		}
		if more := t.gains - len(t.gained) - len(t.mayGain); more > 0 {
			out = append(out, Line{Neutral, fmt.Sprintf("  and %d more", more)})
		}
	}
	if t.losses > 0 {
		out = append(out, Line{Neutral, "It may no longer do:"})
		for _, line := range t.lost {
			out = append(out, Line{Neutral, "  - " + line})
		}
		if more := t.losses - len(t.lost); more > 0 {
			out = append(out, Line{Neutral, fmt.Sprintf("  and %d more", more)})
		}
	}
	return append(out, t.pods()...)
}

func (t atRuntime) pods() []Line {
	switch {
	case t.after == "":
		return nil
	case t.before == t.after:
		return []Line{{Neutral, "Its Pods need the Pod Security level " + t.after + ", as before."}}
	case t.before == "":
		return []Line{{Neutral, "Its Pods need the Pod Security level " + t.after + "."}}
	}
	return []Line{{Neutral, "Its Pods need the Pod Security level " + t.after + "; before it was " + t.before + "."}}
}
