// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

var headings = []string{"figure", "what", "measured", "compared with", "ratio", "target", "met"}

func (r Row) cells() []string {
	return []string{r.Figure, r.What, r.measured(), r.comparedWith(), r.ratio(), r.target(), r.met()}
}

// table is the report for a terminal.
func (r *Report) table() string {
	var out strings.Builder
	writer := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(writer, strings.ToUpper(strings.Join(headings, "\t")))
	for _, row := range r.Rows {
		_, _ = fmt.Fprintln(writer, strings.Join(row.cells(), "\t"))
	}
	_ = writer.Flush()
	for _, err := range r.Errors {
		out.WriteString("NOT MEASURED: " + err + "\n")
	}
	out.WriteString(r.circumstances() + "\n")
	return out.String()
}

// asMarkdown is the report for docs/benchmarks.md.
func (r *Report) asMarkdown() string {
	var out strings.Builder
	line := func(cells []string) { // a bar in a cell would begin the next one
		escaped := strings.ReplaceAll(strings.Join(cells, "\n"), "|", `\|`)
		out.WriteString("| " + strings.ReplaceAll(escaped, "\n", " | ") + " |\n")
	}
	line(headings)
	out.WriteString("|" + strings.Repeat("---|", len(headings)) + "\n")
	for _, row := range r.Rows {
		line(row.cells())
	}
	for _, err := range r.Errors {
		out.WriteString("\nNot measured: " + strings.ReplaceAll(err, "\n", " ") + "\n")
	}
	out.WriteString("\n" + r.circumstances() + "\n")
	return out.String()
}

// circumstances are when, where and of what.
func (r *Report) circumstances() string {
	m := r.Machine
	command := strings.Join(append([]string{"go run ./test/bench"}, r.Command...), " ")
	return fmt.Sprintf("As of %s, revision %s, by `%s` in %.0f s: %s, %d cores, %d MiB, %s %s, %s; load before %s, after %s.",
		r.Started.Format("2006-01-02"), r.Git, command, r.Seconds, m.CPU, m.Cores, m.MemoryMiB, m.OS, m.Kernel, m.Go, m.LoadBefore, m.LoadAfter)
}
