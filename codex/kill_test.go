package codex_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"netsky/bus"
	"netsky/codex"
	"netsky/codex/appserver"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

// onceProcess drains a message in a process of its own, for tests to kill.
func onceProcess() int {
	home, err := home.At(os.Getenv("ONCE_HOME"))
	if err != nil {
		panic(err)
	}
	err = codex.Once(context.Background(), codex.OnceOptions{
		Agent: "agent1", Drain: true, Sandbox: "danger-full-access", Approval: "never", Dir: os.Getenv("ONCE_DIR"),
		Home: home, Bus: bus.New(home, bus.Options{}), Records: store.NewJournal(home),
		Program: os.Getenv("NETSKY_TEST_CODEX"), Env: os.Environ(), Out: os.Stdout, Err: os.Stderr,
	})
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		return 1
	}
	return 0
}

// A server that ends each time is not started for ever.
func TestKillServerAgain(t *testing.T) {
	t.Parallel()
	w := mustHome(t)
	self, err := os.Executable()
	testworld.Must(t, err)
	starts := 0
	s := testworld.Got(codex.NewSession(codex.SessionOptions{Home: w.home, Agent: "agent1", Connect: func(ctx context.Context) (*appserver.Server, error) {
		starts++
		return appserver.StartServer(ctx, appserver.ServerOptions{Program: self, Env: append(os.Environ(), "FAKE_CODEX=ends")})
	}}))(t)
	defer s.Close()
	_, err = s.Deliver(w.ctx, codex.Input{ID: "i", Text: "x"})
	if !errors.Is(err, appserver.ErrLost) || starts != 3 {
		t.Errorf("Deliver = %v after %d starts, want %v after 3", err, starts, appserver.ErrLost)
	}
}
