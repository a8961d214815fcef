// SPDX-License-Identifier: Apache-2.0

// Package table lays out rows in columns, as kubectl does: a line of capital
// titles, three blanks between columns, no rules. It stands beside RukPak's
// flow, in the command line only.
package table

import (
	"io"
	"strings"

	"rukpak.io/rukpak/internal/cli/paint"
)

// gap is what stands between two columns.
const gap = "   "

// Table is rows below titles. Cells may hold colour codes.
type Table struct {
	Titles []string // none: no line of titles
	Rows   [][]string
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write writes the table. An empty cell is shown as "-" below a title, so that
// columns can be counted by a script.
func (t Table) Write(w io.Writer) error {
	rows := t.Rows
	if len(t.Titles) > 0 {
		rows = append([][]string{t.Titles}, dashed(rows)...)
	}
	widths := widths(rows)
	for _, row := range rows {
		if _, err := io.WriteString(w, line(row, widths)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func dashed(rows [][]string) [][]string {
	shown := make([][]string, len(rows))
	for i, row := range rows {
		shown[i] = make([]string, len(row))
		for j, cell := range row {
			if cell == "" {
				cell = "-"
			}
			shown[i][j] = cell
		}
	}
	return shown
}

func widths(rows [][]string) []int {
	var all []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(all) {
				all = append(all, 0)
			}
			all[i] = max(all[i], paint.Width(cell))
		}
	}
	return all
}

func line(row []string, widths []int) string {
	var out strings.Builder
	for i, cell := range row {
		out.WriteString(cell)
		if i < len(row)-1 {
			out.WriteString(strings.Repeat(" ", widths[i]-paint.Width(cell)) + gap)
		}
	}
	return strings.TrimRight(out.String(), " ")
}
