package demo_test

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"netsky/bus"
	"netsky/home"
	"netsky/spawn/demo"
)

// The test binary is also the demo that a test kills: with this in its
// environment it is agent1 in that home, and ends itself by SIGKILL at the step
// that killEnv names.
const (
	serveEnv = "NETSKY_TEST_SERVE"
	killEnv  = "NETSKY_TEST_KILL"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveEnv); dir != "" {
		os.Exit(serve(dir, os.Getenv(killEnv)))
	}
	os.Exit(m.Run())
}

func serve(dir, last string) int {
	signal.Ignore(syscall.SIGXFSZ) // what is too large is refused, like what has no room
	home, err := home.At(dir)
	if err != nil {
		return 1
	}
	o := demo.Options{Home: home, Agent: "agent1", Start: "child", Bus: bus.New(home, bus.Options{}), In: os.Stdin, Out: os.Stdout}
	err = demo.RunSteps(context.Background(), o, func(step string) {
		if step == last {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	})
	if err != nil {
		io.WriteString(os.Stderr, err.Error()+"\n")
		return 1
	}
	return 0
}
