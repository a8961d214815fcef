// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math"
	"testing"
)

func TestMedianAndPercentile(t *testing.T) {
	var hundred []float64
	for i := 100; i > 0; i-- {
		hundred = append(hundred, float64(i))
	}
	for _, test := range []struct {
		name      string
		got, want float64
	}{
		{"the median of an odd number is in the middle", median([]float64{3, 1, 2}), 2},
		{"the median of an even number is between two", median([]float64{4, 1, 2, 3}), 2.5},
		{"p99 of 100 is the 99th", percentile(hundred, 99), 99},
		{"p100 is the largest", percentile(hundred, 100), 100},
		{"p99 of few is the largest", percentile([]float64{1, 5, 2}, 99), 5},
	} {
		if test.got != test.want {
			t.Errorf("%s: %v, want %v", test.name, test.got, test.want)
		}
	}
	if !math.IsNaN(median(nil)) || !math.IsNaN(percentile(nil, 99)) {
		t.Error("no values have a median")
	}
}

func TestSidesTakeTurnsInGoingFirst(t *testing.T) {
	var order string
	rounds, err := sides(2,
		func(int) (float64, error) { order += "m"; return 2, nil },
		func(int) (float64, error) { order += "b"; return 4, nil },
		func(int, Round) {})
	if err != nil || order != "mbbm" || len(rounds) != 2 || rounds[1] != (Round{Measured: 2, Baseline: 4}) {
		t.Errorf("order %s, rounds %v, error %v", order, rounds, err)
	}
	fault := errors.New("fault")
	_, err = sides(1, func(int) (float64, error) { return 0, fault },
		func(int) (float64, error) { t.Error("the other side is measured for nothing"); return 0, nil }, func(int, Round) {})
	if !errors.Is(err, fault) {
		t.Errorf("error %v", err)
	}
}

func TestRowsAreJudgedByTheirRatioIfTheyHaveOne(t *testing.T) {
	ratio := compared("x", "s", "y", atMost(1.25), []Round{{1, 2}, {3, 2}, {4, 4}})
	for _, test := range []struct {
		name string
		row  Row
		want string
	}{
		{"median ratio of 1 under 1.25", ratio, "yes"},
		{"a limit that is allowed", Row{Measured: 10, Target: atMost(10)}, "yes"},
		{"a limit that is too much", Row{Measured: 1, Target: below(1)}, "NO"},
		{"at least", Row{Measured: 1, Target: atLeast(2)}, "NO"},
		{"nothing measured", Row{Measured: math.NaN(), Target: atMost(10)}, "NO"},
		{"no target", Row{Measured: 10}, ""},
	} {
		test.row.judge("f")
		if got := test.row.met(); got != test.want {
			t.Errorf("%s: met %q, want %q", test.name, got, test.want)
		}
	}
}
