package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/proc"
)

// A Fault is a way to break netsky.
type Fault struct {
	Name string // "daemon"
	Says string // what is done, for the plan: "kill -9 the daemon"
	// Do does it. Its error means that it can't be done here, and that nothing was.
	Do func(ctx context.Context, d *Drill) (Hit, error)
	// When orders faults that are done upon each other: what needs netsky to work comes first.
	When int
}

// The values of Fault.When.
const (
	Working = iota // it sends mail
	Lasting        // it lasts, and what follows is done meanwhile
	Sudden         // it is done in a moment
	Lastly         // nothing can follow
)

// A Hit is what a fault has done.
type Hit struct {
	On    string         // to what
	Hold  time.Duration  // how long to leave it
	Again func()         // keeps it up meanwhile; may be nil
	Undo  func()         // ends it; may be nil
	Alone bool           // nothing else can be done until it has ended
	Up    bool           // nothing recovers from it but the owner's `netsky up`
	Gone  []proc.Process // what was killed
	Fresh []string       // the start ids of agents that must have another one
	Stops Watch          // which of those that start each other again it has ended
	Mute  bool           // nobody can be told anything meanwhile
	Owes  []Notice       // what the owner must be told
}

// A Watch is a set of the two that start each other again. Without both, only the owner helps.
type Watch int

// The two.
const (
	Daemon Watch = 1 << iota
	Ticker
)

// add adds what another fault has done meanwhile.
func (h *Hit) add(other Hit) {
	h.Stops |= other.Stops
	other.Up = other.Up || h.Stops == Daemon|Ticker
	h.Hold = max(h.Hold, other.Hold)
	h.Alone, h.Up, h.Mute = h.Alone || other.Alone, h.Up || other.Up, h.Mute || other.Mute
	h.Owes = append(h.Owes, other.Owes...)
	h.Gone, h.Fresh = append(h.Gone, other.Gone...), append(h.Fresh, other.Fresh...)
	if again := h.Again; other.Again != nil {
		h.Again = func() {
			if again != nil {
				again()
			}
			other.Again()
		}
	}
}

// Random returns the drill's source of chance.
func (d *Drill) Random() *rand.Rand { return d.rng }

// Netsky runs a verb in the home and returns what it printed.
func (d *Drill) Netsky(ctx context.Context, words ...string) (string, error) {
	return d.netsky(ctx, words...)
}

// Kill kills a process of one of the agents, which pick chooses from its keeper's record.
func (d *Drill) Kill(among []agent.ID, pick func(agent.ID, agent.Keeper) (string, proc.Process, error)) (Hit, error) {
	id, k, err := d.victim(among)
	if err != nil {
		return Hit{}, err
	}
	what, p, err := pick(id, k)
	if err != nil {
		return Hit{}, err
	}
	if err := p.Signal(unix.SIGKILL); err != nil {
		return Hit{}, err
	}
	d.deaths[id] = append(d.deaths[id], time.Now())
	return Hit{On: fmt.Sprintf("kill -9 %d, %s of %s", p.PID, what, id), Gone: []proc.Process{p}, Fresh: []string{k.Start}}, nil
}

// Faults are those that every world has, of which some last as long as the caller says.
func Faults(limit, stop, full time.Duration) []Fault {
	return []Fault{
		{"program", "kill -9 an agent's program", func(_ context.Context, d *Drill) (Hit, error) {
			return d.Kill(d.Agents, func(_ agent.ID, k agent.Keeper) (string, proc.Process, error) {
				return "the program", k.Process, nil
			})
		}, Sudden},
		{"keeper", "kill -9 the process that keeps an agent's pane", func(_ context.Context, d *Drill) (Hit, error) {
			return d.Kill(d.Agents, func(_ agent.ID, k agent.Keeper) (string, proc.Process, error) {
				return "the keeper", k.Own, nil
			})
		}, Sudden},
		{"daemon", "kill -9 the daemon", func(_ context.Context, d *Drill) (Hit, error) {
			p, err := d.daemon()
			hit, err := killed(p, err, "the daemon")
			hit.Stops = Daemon
			return hit, err
		}, Sudden},
		{"ticker", "kill -9 the ticker", func(_ context.Context, d *Drill) (Hit, error) {
			t, err := d.Home.LoadTicker()
			hit, err := killed(t.Process, err, "the ticker")
			hit.Stops = Ticker
			return hit, err
		}, Sudden},
		{"both", "kill -9 the daemon and the ticker together, after which only your `netsky up` helps", both, Lastly},
		{"tmux", "kill -9 the tmux server, and so all agents", killServer, Lasting},
		{"stop", "stop an agent's program, which its keeper continues", func(_ context.Context, d *Drill) (Hit, error) {
			id, k, err := d.victim(d.Agents)
			if err != nil {
				return Hit{}, err
			}
			err = k.Process.Signal(unix.SIGSTOP)
			if err != nil && !k.Process.Alive() {
				err = nil // another fault was faster
			}
			return Hit{On: "kill -STOP the program of " + string(id)}, err
		}, Sudden},
		{"stop-daemon", "stop the daemon for " + stop.String(), func(_ context.Context, d *Drill) (Hit, error) {
			p, err := d.daemon()
			if err != nil {
				return Hit{}, err
			}
			return stopped([]proc.Process{p}, stop, "the daemon")
		}, Lasting},
		{"suspend", "stop every process of the home for " + stop.String() + ", as a machine that sleeps", func(ctx context.Context, d *Drill) (Hit, error) {
			return suspend(ctx, d, stop)
		}, Lastly},
		{"disk", "fill the disk for " + full.String(), func(_ context.Context, d *Drill) (Hit, error) { return fill(d, full) }, Lasting},
		{"limit", "cut the demo agents' model off for " + limit.String(), func(ctx context.Context, d *Drill) (Hit, error) {
			return cutOff(ctx, d, limit)
		}, Working},
	}
}

// Children kills a process below the program of one of these agents: an MCP server, an
// app-server, a screen.
func Children(among []agent.ID) Fault {
	return Fault{"child", "kill -9 a child of an agent's program, such as its MCP server", func(_ context.Context, d *Drill) (Hit, error) {
		hit, err := d.Kill(among, func(_ agent.ID, k agent.Keeper) (string, proc.Process, error) {
			list, err := proc.Descendants(k.PID, "")
			if err == nil && len(list) == 0 {
				err = errors.New("it has no children")
			}
			if err != nil {
				return "", proc.Process{}, err
			}
			p := list[d.rng.IntN(len(list))]
			return "`" + envelope.Line(p.Command(), 60) + "` below the program", p, nil
		})
		hit.Fresh = nil // the program may do without
		return hit, err
	}, Sudden}
}

// Quiet waits until none of the drill's verbs is sending mail and keeps it so until resume is
// called.
func (d *Drill) Quiet() (resume func()) {
	d.ledger.pause.Lock()
	return d.ledger.pause.Unlock
}

// Starts returns the start ids of all agents.
func (d *Drill) Starts() (list []string, err error) {
	for _, id := range d.Agents {
		k, err := d.Home.LoadKeeper(id)
		if err != nil {
			return nil, err
		}
		list = append(list, k.Start)
	}
	return list, nil
}

// killed kills a process.
func killed(p proc.Process, err error, what string) (Hit, error) {
	if err == nil {
		err = p.Signal(unix.SIGKILL)
	}
	if err != nil {
		return Hit{}, fmt.Errorf("%s: %w", what, err)
	}
	return Hit{On: fmt.Sprintf("kill -9 %d, %s", p.PID, what), Gone: []proc.Process{p}}, nil
}

func both(_ context.Context, d *Drill) (Hit, error) {
	t, terr := d.Home.LoadTicker()
	p, perr := d.daemon()
	if err := errors.Join(terr, perr); err != nil {
		return Hit{}, err
	}
	// Stopped first: else one could start the other in between.
	_, err := stopped([]proc.Process{t.Process, p}, 0, "")
	one, kerr := killed(t.Process, nil, "the ticker")
	two, derr := killed(p, nil, "the daemon")
	two.On, two.Gone, two.Stops = one.On+", and "+two.On, append(two.Gone, one.Gone...), Daemon|Ticker
	return two, errors.Join(err, kerr, derr)
}

func killServer(ctx context.Context, d *Drill) (Hit, error) {
	starts, err := d.Starts()
	if err != nil {
		return Hit{}, err
	}
	p, err := d.tmux(ctx)
	hit, err := killed(p, err, "the tmux server")
	hit.Fresh, hit.Stops = starts, Ticker // which runs in it
	hit.Owes = []Notice{{Prefix: "gone-", Why: "the tmux server was killed"}}
	return hit, err
}

// stopped stops processes until the hit is undone.
func stopped(list []proc.Process, hold time.Duration, what string) (Hit, error) {
	var did []proc.Process
	undo := func() {
		for _, p := range did {
			_ = p.Signal(unix.SIGCONT) // it may have been ended meanwhile
		}
	}
	for _, p := range list {
		if err := p.Signal(unix.SIGSTOP); err != nil && p.Alive() {
			undo()
			return Hit{}, fmt.Errorf("%s: %w", what, err)
		}
		did = append(did, p)
	}
	return Hit{On: fmt.Sprintf("kill -STOP %s for %s", what, hold), Hold: hold, Undo: undo}, nil
}

func suspend(ctx context.Context, d *Drill, hold time.Duration) (Hit, error) {
	server, err := d.tmux(ctx)
	if err != nil {
		return Hit{}, err
	}
	// No verb of the drill's own may be among them.
	resume := d.Quiet()
	list, err := proc.Descendants(server.PID, "NETSKY_HOME="+d.Home.Root(), d.Spare...)
	if err != nil {
		resume()
		return Hit{}, err
	}
	hit, err := stopped(append(list, server), hold, fmt.Sprintf("all %d processes", len(list)+1))
	undo := hit.Undo
	hit.Alone = true
	hit.Undo = func() {
		if undo != nil {
			undo()
		}
		resume()
	}
	if err != nil {
		resume()
	}
	return hit, err
}

// fill fills the home's file system. The file has no name, so that its space is free as soon
// as this process has closed it or has ended.
func fill(d *Drill, hold time.Duration) (Hit, error) {
	if d.NoDisk != nil {
		return Hit{}, d.NoDisk
	}
	f, err := os.CreateTemp(d.Home.Root(), ".tmp-drill-*")
	if err != nil {
		return Hit{}, err
	}
	err = os.Remove(f.Name())
	more := func() error { // to the last page
		for size := 1 << 20; size >= 1<<9; {
			if _, err := f.Write(make([]byte, size)); errors.Is(err, unix.ENOSPC) {
				size /= 2
			} else if err != nil {
				return err
			}
		}
		return nil
	}
	if err = errors.Join(err, more()); err != nil {
		f.Close()
		return Hit{}, err
	}
	return Hit{
		On: fmt.Sprintf("the disk is full for %s", hold), Hold: hold, Mute: true,
		Again: func() { _ = more() }, Undo: func() { f.Close() },
	}, nil
}

// cutOff has a demo start a limit, which holds for all of them.
func cutOff(ctx context.Context, d *Drill, length time.Duration) (Hit, error) {
	if len(d.Demos) == 0 {
		return Hit{}, errors.New("there is no demo agent")
	}
	to := d.Demos[d.rng.IntN(len(d.Demos))]
	before, _ := home.Load[limitFile](d.Home, limitPath)
	if err := d.Send(ctx, to, fmt.Sprintf("/limit %s usage_limit", length)); err != nil {
		return Hit{}, err
	}
	// It counts from when the demo has obeyed.
	within, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		now, err := home.Load[limitFile](d.Home, limitPath)
		if err == nil && now.EndMS != before.EndMS {
			return Hit{
				On: fmt.Sprintf("%s has a usage limit for all demo agents for %s", to, length), Hold: time.Until(time.UnixMilli(now.EndMS)),
				Owes: []Notice{{Prefix: "limit-", Why: "the model was cut off", Passes: true}},
			}, nil
		}
		if proc.Sleep(within, 50*time.Millisecond) != nil {
			return Hit{}, fmt.Errorf("%s: no limit within a minute", to)
		}
	}
}

// limitPath is where a demo notes its limit.
const limitPath = "state/demo/limit.json"

type limitFile struct {
	EndMS int64 `json:"end_ms"`
}

// plan lists what the faults do, one line each.
func plan(list []Fault) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "  %-12s %s\n", f.Name, f.Says)
	}
	return b.String()
}
