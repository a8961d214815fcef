// SPDX-License-Identifier: Apache-2.0

// Package spelling finds the word that was meant, for messages about one that is
// not known: in files of the first step of the flow, and on the command line.
package spelling

// Nearest is the word that differs least, "" if none is near: two letters, or a third of a short word.
func Nearest(word string, among []string) string {
	best, found := min(2, len(word)/3)+1, ""
	for _, other := range among {
		if d := distance(word, other); d < best {
			best, found = d, other
		}
	}
	return found
}

// distance is how many letters have to be put in, taken out, changed, or swapped with the next.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
