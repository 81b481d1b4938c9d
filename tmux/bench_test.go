package tmux_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/tmux"
)

// fifty are the sessions that both ways of starting them start.
func fifty() []tmux.Session {
	var list []tmux.Session
	for i := range 50 {
		x := idle(fmt.Sprintf("agent%d", i+1))
		x.Dir, x.Tags = "/", map[string]string{"@owner": "/home/x", "@run": "1"}
		x.Env = []string{"AGENT_N=" + itoa(i+1)}
		list = append(list, x)
	}
	return list
}

// BenchmarkStart compares Start of 50 sessions, server included, with the bare
// call of tmux that starts the same; the server's end is not counted.
func BenchmarkStart(b *testing.B) {
	b.Run("netsky", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			s := newServer(b, "@owner", "@run")
			b.StartTimer()
			mustStart(b, s, fifty()...)
			b.StopTimer()
			mustStop(b, s)
			b.StartTimer()
		}
	})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			s := newServer(b)
			var batch bytes.Buffer
			for _, x := range fifty() {
				fmt.Fprintf(&batch, "new-session -d -s %s -x 200 -y 50 -c / -e %s /bin/sh -c '%s'\n", x.Name, x.Env[0], x.Command)
			}
			b.StartTimer()
			cmd := plainCommand(s, "start-server", ";", "source-file", "-")
			cmd.Stdin = &batch
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			b.StopTimer()
			mustStop(b, s)
			b.StartTimer()
		}
	})
}

// BenchmarkKill ends 50 sessions.
func BenchmarkKill(b *testing.B) {
	s := newServer(b)
	mustStart(b, s, idle("stays"))
	for b.Loop() {
		b.StopTimer()
		panes := testworld.Got(s.Start(b.Context(), nil, fifty()))(b)
		var list []tmux.Pane
		for _, p := range panes {
			if p.Session != "stays" {
				list = append(list, p)
			}
		}
		b.StartTimer()
		testworld.Must(b, s.Kill(b.Context(), list...))
	}
}

// BenchmarkPanes lists 50 sessions.
func BenchmarkPanes(b *testing.B) {
	s := newServer(b, "@owner", "@run")
	mustStart(b, s, fifty()...)
	for b.Loop() {
		mustPanes(b, s)
	}
}

// BenchmarkDo compares Do with the same command written to a pipe of tmux -C,
// the two in turn, since a machine's other work moves both.
func BenchmarkDo(b *testing.B) {
	s := newServer(b)
	p := find(b, mustStart(b, s, fifty()...), "agent1")
	c := mustControl(b, s, "agent1")
	bare := newBare(b, s)
	do := func(line string) func(*testing.B) {
		return func(b *testing.B) { mustDo(b, c, line) }
	}
	raw := func(line string, replies int) func(*testing.B) {
		return func(b *testing.B) { bare.call(b, line, replies) }
	}
	const list = "list-panes -a -F '#{session_name} #{pane_id} #{pane_pid}'"
	for _, tt := range []struct {
		name        string
		netsky, raw func(*testing.B)
	}{
		{"display", do("display-message -p x"), raw("display-message -p x", 1)},
		{"list", do(list), raw(list, 1)},
		{"two", do("display-message -p x ; display-message -p y"), raw("display-message -p x ; display-message -p y", 2)},
		{"capture", func(b *testing.B) {
			testworld.Got(c.Capture(b.Context(), p.ID, tmux.Capture{Escapes: true}))(b)
		}, raw("capture-pane -e -b x -t "+p.ID+" ; show-buffer -b x", 2)},
	} {
		b.Run(tt.name, func(b *testing.B) {
			var ours, theirs []time.Duration
			for b.Loop() {
				begun := time.Now()
				tt.netsky(b)
				between := time.Now()
				tt.raw(b)
				ours, theirs = append(ours, between.Sub(begun)), append(theirs, time.Since(between))
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			us, them := ours[len(ours)/2], theirs[len(theirs)/2]
			b.ReportMetric(float64(us.Microseconds()), "p50-us")
			b.ReportMetric(float64(them.Microseconds()), "bare-p50-us")
			b.ReportMetric(float64(us)/float64(them), "ratio")
		})
	}
}

// bareClient is a control client with nothing around it.
type bareClient struct {
	in  io.Writer
	out *bufio.Scanner
}

func newBare(b *testing.B, s *tmux.Server) bareClient {
	b.Helper()
	cmd := plainCommand(s, "-C", "attach-session", "-t", "=agent1", "-f", "no-output,ignore-size")
	in := testworld.Got(cmd.StdinPipe())(b)
	out := testworld.Got(cmd.StdoutPipe())(b)
	testworld.Must(b, cmd.Start())
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	c := bareClient{in: in, out: bufio.NewScanner(out)}
	c.replies(b, 1)
	return c
}

func (c bareClient) call(b *testing.B, line string, replies int) {
	testworld.Got(io.WriteString(c.in, line+"\n"))(b)
	c.replies(b, replies)
}

func (c bareClient) replies(b *testing.B, n int) {
	for c.out.Scan() {
		if strings.HasPrefix(c.out.Text(), "%end ") {
			if n--; n == 0 {
				return
			}
		}
	}
	b.Fatal("no reply")
}
