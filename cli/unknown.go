package cli

import (
	"netsky/cli/spell"
)

// unknownVerb returns the error of an unknown verb, with the one that was probably meant:
// what other programs' verb does here, or a similar word.
func (a *app) unknownVerb(word string, rest []string) error {
	if meant := spell.Habit(word, rest); meant != "" {
		return usagef("no verb %q: %s", word, meant)
	}
	var names []string
	for _, c := range a.cli().Commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	if best := spell.Nearest(word, names); best != "" {
		return usagef("no verb %q; did you mean %q? `netsky help` lists them", word, best)
	}
	return usagef("no verb %q; `netsky help` lists them", word)
}
