// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Report is bench.json.
type Report struct {
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	Command []string  `json:"command"` // the flags of the run
	Git     Git       `json:"git"`
	Machine Machine   `json:"machine"`
	Scale   float64   `json:"scale"`
	Rows    []Row     `json:"rows"`
	Errors  []string  `json:"errors,omitempty"` // figures that could not be measured
}

func newReport(b *bench) *Report {
	return &Report{
		Started: b.started.UTC().Truncate(time.Second), Command: os.Args[1:],
		Git: gitHere(), Machine: thisMachine(), Scale: b.scale,
	}
}

// exitCode is 1 if a figure could not be measured or, when strict, if a target is missed.
func (r *Report) exitCode(strict bool) int {
	if len(r.Errors) > 0 {
		return 1
	}
	for _, row := range r.Rows {
		if strict && row.Met != nil && !*row.Met {
			return 1
		}
	}
	return 0
}

// publish prints the table and writes the files that were asked for.
func (b *bench) publish(report *Report) error {
	report.Machine.LoadAfter = load()
	fmt.Print("\n" + report.table())
	if b.out != "" {
		encoded, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(b.out, append(encoded, '\n'), 0o644); err != nil {
			return err
		}
		b.say("the report is in %s", b.out)
	}
	if b.markdown != "" {
		return os.WriteFile(b.markdown, []byte(report.asMarkdown()), 0o644)
	}
	return nil
}
