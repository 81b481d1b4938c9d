package land

import (
	"fmt"

	"netsky/store/work"
)

// Says says what a landing did, in words that follow the agent's name.
func Says(l work.Landing) string {
	target, unchecked := branch(l.Target), ""
	if l.Evidence == "" {
		unchecked = ", unchecked"
	}
	switch l.State {
	case work.Begun:
		return "is landing on " + target + unchecked
	case work.Void:
		return "did not land on " + target
	case work.Pushed:
		return fmt.Sprintf("pushed %.7s for %s%s", l.Head, target, unchecked)
	}
	return fmt.Sprintf("landed on %s, %.7s to %.7s, by %s%s", target, l.Before, l.After, l.How, unchecked)
}
