package courier_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/home"
	"netsky/spawn/demo"
)

// With these in its environment the test binary is a demo agent in that home, which
// notes its courier's steps in a file, and kills itself at the step of that number.
const (
	stepHome = "COURIER_STEP_HOME"
	stepKill = "COURIER_STEP_KILL"
	stepFile = "run/steps"
)

func stepProcess(dir string) int {
	h, err := home.At(dir)
	if err != nil {
		return 2
	}
	last, err := strconv.Atoi(os.Getenv(stepKill))
	if err != nil {
		return 2
	}
	steps, err := os.OpenFile(h.Path(stepFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 2
	}
	n := 0
	courier.SetStep(func(name string) {
		n++
		fmt.Fprintln(steps, name)
		if n == last {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	})
	o := demo.Options{Home: h, Agent: me, Start: agent.NewStart(), Bus: bus.New(h, bus.Options{}), Out: io.Discard}
	if err := demo.Run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
