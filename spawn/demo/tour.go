// This file shows netsky at work: three demo agents and ten jobs, in a home and on a
// tmux server of its own, with an agent and the daemon killed on the way. Whatever ends
// the tour, nothing of it remains: its home is a [chaos.Sandbox].

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/chaos"
	"netsky/internal/proc"
	"netsky/spawn"
)

// jobCount is how many jobs the tour sends, and answerWithin how long each waits for
// its answer at most.
const (
	jobCount     = 10
	answerWithin = 30 * time.Second

	// perWord is how long a reader takes for a word, and longestPause the longest wait
	// for one: tables are skimmed.
	perWord      = time.Minute / 200
	longestPause = 12 * time.Second
)

// TourOptions configure the tour.
type TourOptions struct {
	Binary  string   // netsky itself
	Environ []string // inherited by its verbs
	Quick   bool     // do not pause for reading
	Width   int      // of the terminal, in columns
	Say     func(text string)
	Err     io.Writer // of the process beside it
	// Open makes the launcher of the home that the environment names.
	Open func(environ []string) (*spawn.Launcher, error)
}

// ErrInterrupted is returned when the context has ended the tour.
var ErrInterrupted = errors.New("the tour was interrupted; everything it started has ended")

// Tour runs the tour. When it returns, everything that it has started has ended and is
// removed, or the error says what is left.
func Tour(ctx context.Context, o TourOptions) (err error) {
	h, err := chaos.NewSandbox(chaos.SandboxOptions{What: "tour", Binary: o.Binary, Environ: o.Environ, Err: o.Err})
	if err != nil {
		return err
	}
	t := &tour{TourOptions: o, Sandbox: h, jobs: make(map[string]*tourJob)}
	// Whatever happens, nothing of it remains.
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = ErrInterrupted
		}
		if cerr := h.Close(ctx); cerr != nil {
			err = errors.Join(err, cerr)
		} else if err == nil {
			t.say("Everything has ended, and %s has been removed.", h.Root())
		}
	}()
	return t.run(ctx)
}

type tour struct {
	TourOptions
	*chaos.Sandbox
	l      *spawn.Launcher
	jobs   map[string]*tourJob
	order  []string
	killed int
	unread int // words printed since the last pause
}

// A tourJob is one message of the tour and its answers.
type tourJob struct {
	to      agent.ID
	text    string
	answers []bus.Entry
}

func (t *tour) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.unread += len(strings.Fields(text))
	t.Say(text)
}

// rest waits until what was printed can have been read.
func (t *tour) rest(ctx context.Context) error {
	pause := min(time.Duration(t.unread)*perWord, longestPause)
	t.unread = 0
	if t.Quick {
		return ctx.Err()
	}
	return proc.Sleep(ctx, pause)
}

// netsky runs a verb in the tour's home, as a person would.
func (t *tour) netsky(ctx context.Context, words ...string) (string, error) {
	out, err := t.Command(ctx, words...).CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

func (t *tour) run(ctx context.Context) error {
	l, err := t.Open(t.Sandbox.Environ)
	if err != nil {
		return err
	}
	if l.Home.Root() != t.Root() {
		return fmt.Errorf("the tour would run in %s", l.Home.Root())
	}
	t.l = l
	t.say("A tour of netsky in a temporary home. It touches nothing of yours and removes everything at its end.")
	if !t.Quick {
		t.say("It takes about a minute, as it pauses for reading (--quick does not). Ctrl-C ends it.")
	}
	t.say("\n1. Start agent0, the manager, and two workers. Demo agents are small programs without a model.\n")
	t.say("$ netsky up 2 --type demo")
	out, err := t.netsky(ctx, "up", "2", "--type", "demo", "--no-attach")
	t.say("%s", out)
	if err != nil {
		return fmt.Errorf("up: %w", err)
	}
	if err := t.rest(ctx); err != nil {
		return err
	}
	t.say("\n2. Send ten jobs. /delegate has agent0 pass a job on to a worker; /busy takes the time it names.\n")
	for i := range jobCount {
		if err := t.send(ctx, i); err != nil {
			return err
		}
	}
	if err := t.kill(ctx); err != nil {
		return err
	}
	if err := t.tile(ctx); err != nil {
		return err
	}
	if err := t.collect(ctx); err != nil {
		return err
	}
	return t.account(ctx)
}

func (t *tour) send(ctx context.Context, i int) error {
	jobs := []tourJob{
		{to: agent.Root, text: "hello"},
		{to: agent.Root, text: "/delegate agent1 what is your name?"},
		{to: agent.Clone(1), text: "/busy 1s"},
		{to: agent.Clone(2), text: "what is your name?"},
		{to: agent.Root, text: "/delegate agent2 /busy 1s"},
	}
	j := jobs[i%len(jobs)]
	r, err := t.l.Bus.Send(ctx, envelope.Envelope{From: agent.Owner, To: j.to, Kind: envelope.KindBrief, Text: j.text, Via: "cli", Time: time.Now()})
	if err != nil {
		return fmt.Errorf("job %d: not sent: %w", i+1, err)
	}
	t.jobs[r.ID] = &j
	t.order = append(t.order, r.ID)
	t.say("  %2d  %-7s %s", i+1, j.to, j.text)
	return nil
}

// kill ends agent1 and the daemon as a crash would, while they work, and starts them
// again.
func (t *tour) kill(ctx context.Context) error {
	who, running := t.LockHolder(agent.DaemonName)
	if !running {
		return errors.New("daemon: not running")
	}
	k, err := t.LoadKeeper(agent.Clone(1))
	if err != nil {
		return fmt.Errorf("agent1: %w", err)
	}
	t.say("\n3. Kill a worker and the daemon while they work. Messages are files, so none is lost.\n")
	for _, v := range []struct {
		what string
		proc.Process
	}{{"agent1", k.Process}, {"the daemon", who.Process}} {
		if err := v.Signal(syscall.SIGKILL); err != nil {
			return fmt.Errorf("%s: %w", v.what, err)
		}
		t.killed++
		t.say("$ kill -9 %d      # %s", v.PID, v.what)
	}
	out, err := t.netsky(ctx, "status")
	if err != nil {
		return fmt.Errorf("status: %w: %s", err, out)
	}
	t.say("$ netsky status\n%s", out)
	if err := t.rest(ctx); err != nil {
		return err
	}
	t.say("\n4. Start what is missing. agent1 continues with the jobs it had.\n")
	t.say("$ netsky up 2")
	out, err = t.netsky(ctx, "up", "2", "--type", "demo", "--no-attach")
	t.say("%s", out)
	if err != nil {
		return fmt.Errorf("up again: %w", err)
	}
	return nil
}

// tile shows the three panes side by side, cut to the width.
func (t *tour) tile(ctx context.Context) error {
	if err := t.rest(ctx); err != nil {
		return err
	}
	ids := []agent.ID{agent.Root, agent.Clone(1), agent.Clone(2)}
	col := max(t.Width/len(ids)-2, 20)
	const rows = 14
	var panes [][]string
	list, err := t.l.Inspect(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		lines, err := t.l.LastLines(ctx, list.Find(id), rows)
		if err != nil {
			return err
		}
		panes = append(panes, append([]string{"[" + string(id) + "]"}, lines...))
	}
	t.say("\n5. Look at the panes. `netsky attach agent1` would show that one in full.\n")
	for row := range rows + 1 {
		var line strings.Builder
		for _, p := range panes {
			cell := ""
			if row < len(p) {
				cell = p[row]
			}
			line.WriteString("| " + pad(cell, col-2))
		}
		t.say("%s", strings.TrimRight(line.String(), " "))
	}
	return nil
}

func pad(s string, width int) string {
	r := []rune(envelope.Plain(s))
	if len(r) > width {
		r = append(r[:width-1], '…')
	}
	return string(r) + strings.Repeat(" ", width-len(r))
}
