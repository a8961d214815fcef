// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
)

// median of the values; NaN for none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// percentile by nearest rank: the smallest value that p percent of the values do not exceed. NaN for no values.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// sides measures both sides so many times, and takes turns in which of them goes first: what warms up or fills
// something is then to the good, or bad, of both.
func sides(rounds int, measured, baseline func(round int) (float64, error), each func(int, Round)) ([]Round, error) {
	var done []Round
	for i := range rounds {
		var r Round
		var errs [2]error
		first := func() { r.Measured, errs[0] = measured(i) }
		second := func() { r.Baseline, errs[1] = baseline(i) }
		if i%2 == 1 {
			first, second = second, first
		}
		first()
		if errs[0] == nil && errs[1] == nil {
			second()
		}
		for _, err := range errs {
			if err != nil {
				return done, err
			}
		}
		done = append(done, r)
		each(i, r)
	}
	return done, nil
}
