package spawn_test

import (
	"context"
	"os"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// What the test binary is when a test has started it again: a down.
const (
	downRole   = "SPAWN_TEST_DOWN" // the home
	downSocket = "SPAWN_TEST_SOCKET"
)

func downAndDie(dir string) int {
	home, err := home.At(dir)
	if err != nil {
		panic(err)
	}
	l := launcherAt(home, os.Getenv(downSocket), os.Environ())
	if _, err := l.Down(context.Background(), spawn.DownOptions{}); err != nil {
		panic(err)
	}
	return 0
}

// asked reports whether an agent that runs has a shutdown that is meant for it.
func (w *world) asked(name string) bool {
	w.Helper()
	for _, p := range []bus.Place{bus.Inbox, bus.Claimed} {
		list := testworld.Got(w.bus.List(agent.ID(name), p, 0))(w)
		for _, e := range list {
			if e.Envelope.Kind == envelope.KindShutdown && e.Envelope.Start == w.status(name).Start {
				return true
			}
		}
	}
	return false
}
