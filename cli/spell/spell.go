// This file finds the word that a misspelled one was meant to be: a verb, or a key of
// netsky.toml.

package spell

import "strings"

// Nearest returns the name that the word was probably meant to be, "" if there is none:
// a name that one of them begins, or one with few letters different.
func Nearest(word string, names []string) string {
	best, at := "", max(1, len(word)/3)+1
	for _, name := range names {
		d := distance(word, name)
		if word != "" && strings.HasPrefix(name, word) || len(name) > 3 && strings.HasPrefix(word, name) {
			d = 0
		}
		if d < min(at, len(name)) {
			best, at = name, d
		}
	}
	return best
}

// distance returns how many letters must be inserted, deleted, replaced or swapped with
// their neighbour to turn one word into the other.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
