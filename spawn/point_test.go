package spawn_test

import (
	"netsky/tmux"
)

// person is somebody who has attached to agent1's session.
type person struct {
	w    *world
	s    *tmux.Server
	pane tmux.Pane
}
