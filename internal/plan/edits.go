// SPDX-License-Identifier: Apache-2.0

package plan

// edit is a line of a text: ' ' for one that stays, '-' for one that goes, '+' for one that comes.
type edit struct {
	sign byte
	line string
}

// editLimit bounds the lines on each side that are compared one by one, since that takes the square of it.
const editLimit = 1000

// editsBetween are the lines that differ between two texts, with one line of context around each run of them.
func editsBetween(old, now []string) []edit {
	first := 0
	for first < len(old) && first < len(now) && old[first] == now[first] {
		first++
	}
	last := 0
	for last < len(old)-first && last < len(now)-first && old[len(old)-1-last] == now[len(now)-1-last] {
		last++
	}
	var all []edit
	if first > 0 {
		all = append(all, edit{' ', old[first-1]})
	}
	all = append(all, middle(old[first:len(old)-last], now[first:len(now)-last])...)
	if last > 0 {
		all = append(all, edit{' ', old[len(old)-last]})
	}
	return withContext(all)
}

// middle compares by the longest common subsequence, or not at all if that would take long.
func middle(old, now []string) []edit {
	if len(old) > editLimit || len(now) > editLimit {
		return replaced(old, now)
	}
	common := make([][]int, len(old)+1) // common[i][j]: lines that old[i:] and now[j:] have in common
	for i := range common {
		common[i] = make([]int, len(now)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			if old[i] == now[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var edits []edit
	i, j := 0, 0
	for i < len(old) && j < len(now) {
		switch {
		case old[i] == now[j]:
			edits = append(edits, edit{' ', old[i]})
			i++
			j++
		case common[i+1][j] >= common[i][j+1]:
			edits = append(edits, edit{'-', old[i]})
			i++
		default:
			edits = append(edits, edit{'+', now[j]})
			j++
		}
	}
	return append(edits, replaced(old[i:], now[j:])...)
}

func replaced(old, now []string) []edit {
	var edits []edit
	for _, line := range old {
		edits = append(edits, edit{'-', line})
	}
	for _, line := range now {
		edits = append(edits, edit{'+', line})
	}
	return edits
}

// withContext leaves out lines that stay, but for those next to one that does not. "..." stands for what is left out.
func withContext(edits []edit) []edit {
	near := func(i int) bool {
		return edits[i].sign != ' ' || i > 0 && edits[i-1].sign != ' ' || i+1 < len(edits) && edits[i+1].sign != ' '
	}
	var out []edit
	for i := range edits {
		switch {
		case near(i):
			out = append(out, edits[i])
		case len(out) > 0 && out[len(out)-1] != edit{' ', "..."}:
			out = append(out, edit{' ', "..."})
		}
	}
	return out
}
