package land

import (
	"fmt"

	"netsky/work/git"
	"netsky/work/record"
)

// Says says what a landing did, in words that follow the agent's name.
func Says(l record.Landing) string {
	target, unchecked := git.Branch(l.Target), ""
	if l.Evidence == "" {
		unchecked = ", unchecked"
	}
	switch l.State {
	case record.Begun:
		return "is landing on " + target + unchecked
	case record.Void:
		return "did not land on " + target
	case record.Pushed:
		return fmt.Sprintf("pushed %.7s for %s%s", l.Head, target, unchecked)
	}
	return fmt.Sprintf("landed on %s, %.7s to %.7s, by %s%s", target, l.Before, l.After, l.How, unchecked)
}
