// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strconv"
)

// Row is one measured value and, where there is one, what it is compared with.
type Row struct {
	Figure   string  `json:"figure"`
	What     string  `json:"what"`
	Measured float64 `json:"measured"`
	Unit     string  `json:"unit"` // of measured and baseline: "s", "%", "MiB", "MiB/s", or what is counted
	// ComparedWith and Baseline are what was measured beside it, in the same run.
	ComparedWith string   `json:"comparedWith,omitempty"`
	Baseline     *float64 `json:"baseline,omitempty"`
	// Ratio is measured/baseline: the median of the rounds' ratios.
	Ratio  *float64 `json:"ratio,omitempty"`
	Target *Target  `json:"target,omitempty"` // nil for what is only told
	Met    *bool    `json:"met,omitempty"`
	Rounds []Round  `json:"rounds,omitempty"`
	// Skipped says why nothing was measured, and Fault why what was measured counts for nothing.
	Skipped string `json:"skipped,omitempty"`
	Fault   string `json:"fault,omitempty"`
	// Details are for whoever asks why.
	Details map[string]any `json:"details,omitempty"`
}

// Round is one measurement of both sides, one after the other.
type Round struct {
	Measured float64 `json:"measured"`
	Baseline float64 `json:"baseline"`
}

// Target bounds the ratio if there is one, and else the measured value.
type Target struct {
	Limit   float64 `json:"limit"`
	AtLeast bool    `json:"atLeast,omitempty"` // the limit is the least that is good; else the most
	Below   bool    `json:"below,omitempty"`   // the limit itself is too much
}

func atMost(limit float64) *Target  { return &Target{Limit: limit} }
func atLeast(limit float64) *Target { return &Target{Limit: limit, AtLeast: true} }
func below(limit float64) *Target   { return &Target{Limit: limit, Below: true} }

func (t Target) met(value float64) bool {
	switch {
	case t.AtLeast:
		return value >= t.Limit
	case t.Below:
		return value < t.Limit
	default:
		return value <= t.Limit
	}
}

// compared makes the row of rounds: medians of both sides, and of the ratios.
func compared(what, unit, with string, target *Target, rounds []Round) Row {
	var measured, baseline, ratios []float64
	for _, r := range rounds {
		measured = append(measured, r.Measured)
		baseline = append(baseline, r.Baseline)
		ratios = append(ratios, r.Measured/r.Baseline)
	}
	base, ratio := median(baseline), median(ratios)
	return Row{
		What: what, Unit: unit, Measured: median(measured), ComparedWith: with, Baseline: &base, Ratio: &ratio,
		Target: target, Rounds: rounds,
	}
}

// judge says whether the target is met.
func (r *Row) judge(figure string) {
	r.Figure = figure
	if r.Target == nil || r.Skipped != "" {
		return
	}
	value := r.Measured
	if r.Ratio != nil {
		value = *r.Ratio
	}
	met := r.Fault == "" && !math.IsNaN(value) && r.Target.met(value)
	r.Met = &met
}

func (r Row) measured() string {
	switch {
	case r.Skipped != "":
		return "skipped: " + r.Skipped
	case r.Fault != "":
		return "worthless: " + r.Fault
	}
	return amount(r.Measured, r.Unit)
}

func (r Row) comparedWith() string {
	if r.Baseline == nil {
		return r.ComparedWith
	}
	return r.ComparedWith + ": " + amount(*r.Baseline, r.Unit)
}

func (r Row) ratio() string {
	if r.Ratio == nil {
		return ""
	}
	return fmt.Sprintf("%.3f", *r.Ratio)
}

func (r Row) target() string {
	if r.Target == nil {
		return ""
	}
	sign, unit := "<= ", r.Unit
	switch {
	case r.Target.AtLeast:
		sign = ">= "
	case r.Target.Below:
		sign = "< "
	}
	if r.Ratio != nil {
		return sign + strconv.FormatFloat(r.Target.Limit, 'g', -1, 64) + " x"
	}
	return sign + strconv.FormatFloat(r.Target.Limit, 'g', -1, 64) + " " + unit
}

func (r Row) met() string {
	switch {
	case r.Met == nil:
		return ""
	case *r.Met:
		return "yes"
	default:
		return "NO"
	}
}

// line is the row for the progress of a run.
func (r Row) line() string {
	text := fmt.Sprintf("-> %s: %s", r.What, r.measured())
	if with := r.comparedWith(); with != "" {
		text += ", " + with
	}
	if r.Ratio != nil {
		text += ", ratio " + r.ratio()
	}
	if r.Target != nil {
		text += ", target " + r.target() + ", met: " + r.met()
	}
	return text
}

// amount prints a value with three digits or more.
func amount(value float64, unit string) string {
	digits := 0
	switch size := math.Abs(value); {
	case value == math.Trunc(value):
	case size < 10:
		digits = 3
	case size < 100:
		digits = 1
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + " " + unit
}
