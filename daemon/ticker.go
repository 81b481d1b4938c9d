// This file restarts the daemon when it is gone, as the daemon's watchdog does with the
// ticker. Each tick is a process of its own, so that one that hangs is ended and does not
// stop the ticking; state/ticker.json holds the result of the last.

package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/store"
)

// Tick starts the daemon, by start, if its desired state is up and it does not answer. did says what
// it did, and is recorded; "" if the daemon answers. The error matches ErrUnwanted if
// its desired state is down.
func Tick(ctx context.Context, h home.Dir, start func(context.Context) (Pong, Started, error)) (p Pong, did string, err error) {
	switch d, err := home.Desired(h).Load(agent.DaemonName); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return p, "", fmt.Errorf("can't read whether the daemon should be running: %w", err)
	case !d.Up:
		return p, "", ErrUnwanted
	}
	p, started, err := start(ctx)
	switch started {
	case "":
		return p, "", err
	case Began:
		did = "the daemon was not running: started another"
	default:
		did = "the daemon: " + string(started)
	}
	did = fmt.Sprintf("%s, pid %d", did, p.PID)
	err = store.NewJournal(h).Record(ctx, store.AddLog{Level: store.LevelWarn, Part: "ticker", Text: did})
	if err != nil && !errors.Is(err, store.ErrSpooled) {
		did += fmt.Sprintf(" (not recorded: %v)", err)
	}
	return p, did, nil
}

// TickerOptions configure a ticker.
type TickerOptions struct {
	Home    home.Dir
	Binary  string
	Program func() string // what a tick runs; nil: Binary
	Socket  string        // of the tmux server it runs on
	Environ []string
	Every   time.Duration
	Within  time.Duration // a tick that takes longer is ended; 0: 30 s
	Out     io.Writer
	Warn    func(error)
}

// RunTicker ticks until ctx ends.
func RunTicker(ctx context.Context, o TickerOptions) {
	// With this file the ticker can be ended even without tmux.
	me := agent.Ticker{Process: proc.Self(), Binary: o.Binary, Socket: o.Socket, EveryMS: o.Every.Milliseconds()}
	if err := o.Home.SaveTicker(me); err != nil {
		o.Warn(err)
	}
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		why := o.tick(ctx)
		me.TickMS, me.Error = time.Now().UnixMilli(), why
		if err := o.Home.SaveTicker(me); err != nil {
			o.Warn(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

const tickWithin = 30 * time.Second

// tick returns why the daemon could not be started, or "".
func (o TickerOptions) tick(ctx context.Context) (why string) {
	within, cancel := context.WithTimeout(ctx, cmp.Or(o.Within, tickWithin))
	defer cancel()
	program := o.Binary
	if o.Program != nil {
		program = o.Program()
	}
	cmd := exec.CommandContext(within, program, "watchdog", "tick")
	cmd.Env = o.Environ
	cmd.WaitDelay = time.Second // a daemon it started may hold its pipe
	out, err := cmd.CombinedOutput()
	fmt.Fprintf(o.Out, "[watchdog-tick %s] %s", time.Now().UTC().Format(time.RFC3339), out)
	switch {
	case err == nil || ctx.Err() != nil:
		return ""
	case within.Err() != nil:
		why = fmt.Sprintf("the tick took longer than %v and was ended", cmp.Or(o.Within, tickWithin))
	case len(bytes.TrimSpace(out)) > 0:
		first, _, _ := strings.Cut(strings.TrimSpace(envelope.Plain(string(out))), "\n")
		why = strings.TrimPrefix(first, "netsky: ")
	default:
		why = err.Error() // "fork/exec /x/netsky: no such file or directory"
	}
	o.Warn(fmt.Errorf("tick: %w", err))
	return why
}
