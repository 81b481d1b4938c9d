package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/mcp"
	"netsky/home"
	"netsky/internal/testworld"
)

// serverProcess is the server as Claude Code starts it. It puts down who it is,
// and when it has ended, how, and what still ran of it.
func serverProcess(dir string) int {
	h, err := home.At(dir)
	if err != nil {
		return 2
	}
	if err := h.WriteFile("run/began", fmt.Append(nil, os.Getpid()), false); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err = mcp.Serve(ctx, mcp.Options{
		Agent: agent.Clone(1), Home: h, Bus: bus.New(h, bus.Options{}), Members: &team{screen: "$ make\nok"}, Mail: &postbox{},
		Channel: true, In: os.Stdin, Out: os.Stdout, Version: "test",
	})
	// A goroutine that has been waited for may be just on its way out.
	for end := time.Now().Add(patience); len(ours()) > 0 && time.Now().Before(end); {
		runtime.Gosched()
	}
	if err := h.WriteFile("run/ended", fmt.Appendf(nil, "%v\n%s", err, strings.Join(ours(), "\n")), false); err != nil {
		return 2
	}
	return 0
}

// A server whose stdin stays open ends by a signal, all of it.
func TestSignal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		end  func(c *exec.Cmd, in io.Closer) error
		want string
	}{
		{"SIGINT", func(c *exec.Cmd, _ io.Closer) error { return c.Process.Signal(os.Interrupt) }, "interrupt signal received\n"},
		{"SIGTERM", func(c *exec.Cmd, _ io.Closer) error { return c.Process.Signal(syscall.SIGTERM) }, "terminated signal received\n"},
		{"end of stdin", func(_ *exec.Cmd, in io.Closer) error { return in.Close() }, "<nil>\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := mustStation(t, agent.Clone(1))
			exe := testworld.Got(os.Executable())(t)
			c := exec.CommandContext(s.ctx, exe)
			c.Env = append(os.Environ(), "MCP_SERVER_HOME="+s.home.Root())
			in := testworld.Got(c.StdinPipe())(t)
			out := testworld.Got(c.StdoutPipe())(t)
			testworld.Must(t, c.Start())
			testworld.Got(io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"))(t)
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, `"id":1`) {
				t.Fatalf("heard %q, %v", line, err)
			}
			testworld.Must(t, tt.end(c, in))
			testworld.Equal(t, c.Wait(), nil)
			testworld.Equal(t, string(testworld.Got(s.home.ReadFile("run/ended", 1<<20))(t)), tt.want, "ended")
		})
	}
}
