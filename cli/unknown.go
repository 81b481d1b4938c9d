package cli

import (
	"netsky/cli/spell"
)

// unknownVerb says which verb was probably meant: by what people are used to,
// else by a slip of the fingers.
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
