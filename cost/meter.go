// This file counts what the agents' turns cost, and holds their work at the owner's budgets.
//
// It follows the files in which Claude Code and Codex write their conversations, of the
// conversations that the records say are an agent's, and records each request with its tokens. A
// file is recognised by its number and its beginning, whatever it is called; of one that was
// replaced or cut short the whole is read again, which counts nothing twice, as each request has
// an id. How far a file was read is recorded in the transaction that records what was in it, so a
// crash loses nothing and repeats nothing; a line that is still being written is left for the
// next look.
//
// The transaction that records turns also records which budget they reach. What follows is done
// afterwards, and again after a crash: the owner gets one message for each share of a budget, and
// a budget that is used up closes a breaker ([breaker.Budget]), so that couriers offer nothing
// more. That is lifted by the owner's answer, by a higher limit, and by the end of the day.
//
// Limits that can't be known, as there is a mistake in netsky.toml, are those that were known
// last: a mistake lifts nothing. It does not know how a program writes its files, and
// reads nothing of sessions that are no agent's.

package cost

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/store"
)

// A Source knows the files of one runtime's program.
type Source interface {
	// Files returns those of a conversation, in the order in which they are to be read. env is
	// the environment of the program.
	Files(env []string, thread string) []string
	// Open returns what takes the lines of one of them, from a State on; "" is the beginning.
	Open(thread, state string) Reader
}

// A Reader takes a file's lines in order.
type Reader interface {
	Line(line []byte) ([]Turn, []Statement)
	State() string
}

// Terms are what the owner says about money.
type Terms struct {
	Prices Prices
	Limits Limits
	// Unknown reports that a mistake in netsky.toml may be about them.
	Unknown bool
}

// MeterOptions configure a Meter.
type MeterOptions struct {
	Home    home.Dir
	Bus     *bus.Bus
	Records func() *store.DB // nil while there is none
	Sources map[string]Source
	Terms   func() Terms
	Environ []string // of the programs of agents that were never started
	Log     *slog.Logger
	// Step, if set, is called between any two things that a crash could come between.
	Step func(what string)
}

// A Meter reads and records. Run owns what it holds.
type Meter struct {
	o MeterOptions

	dir     home.Mark // of the agents' reports
	reports map[agent.ID]home.Mark
	due     map[agent.ID]int // agents to read, and how often
	config  home.Mark        // of netsky.toml
	read    map[string]stamp // what was read to its end, by path
	readAll time.Time        // when all conversations were read last; zero: not by this Meter
	terms   Terms
	beside  bool            // those that no session has are read, too
	known   bool            // terms are
	unsure  map[string]bool // budgets of which the owner was told that they can't be checked
	failing string          // the last error, which is logged once
}

const (
	// look is how often the reports are compared, which takes one system call while nothing
	// happens.
	look = time.Second
	// busy is how often the conversations of the agents are looked at that are at work, and
	// whole how often all are.
	busy, whole = time.Minute, 15 * time.Minute
	// again is how many looks follow a change: programs write what a turn used a moment later.
	again = 4
	// recent is for how long a conversation is followed that no session has any more, from when
	// all were read last: what was written while no daemon ran is not lost.
	recent = 24 * time.Hour
)

// NewMeter returns a Meter.
func NewMeter(o MeterOptions) *Meter {
	if o.Step == nil {
		o.Step = func(string) {}
	}
	return &Meter{
		o: o, reports: make(map[agent.ID]home.Mark), due: make(map[agent.ID]int), read: make(map[string]stamp), unsure: make(map[string]bool),
	}
}

// Run reads until ctx ends.
func (m *Meter) Run(ctx context.Context) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	var last, full time.Time
	for {
		if db := m.o.Records(); db != nil {
			all := time.Since(full) >= whole
			if all {
				full = time.Now()
			}
			if time.Since(last) >= busy {
				last, m.beside = time.Now(), true
				m.atWork()
			}
			if err := m.pass(ctx, db, all); err != nil && ctx.Err() == nil {
				m.log("read", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Read reads all that can be read now, and does what follows.
func (m *Meter) Read(ctx context.Context) error {
	db := m.o.Records()
	if db == nil {
		return errNoRecords
	}
	return m.pass(ctx, db, true)
}

var errNoRecords = errors.New("the records are not available")

func (m *Meter) log(what string, err error) {
	if text := what + ": " + err.Error(); text != m.failing {
		m.failing = text
		m.o.Log.Warn("cost", "what", what, "error", err)
	}
}

// pass reads the conversations of the agents that have done something, or all.
func (m *Meter) pass(ctx context.Context, db *store.DB, all bool) error {
	m.changed()
	changed, err := m.renew(ctx, db)
	if err != nil {
		return err
	}
	if len(m.due) == 0 && !all && !changed && !m.beside {
		return nil
	}
	r := Records{DB: db}
	err = m.threads(ctx, r, all)
	for id := range m.due {
		if m.due[id]--; m.due[id] <= 0 {
			delete(m.due, id)
		}
	}
	return errors.Join(err, m.settle(ctx, r))
}

// atWork adds the agents that are at work.
func (m *Meter) atWork() {
	for id := range m.reports {
		if r, err := m.o.Home.LoadReport(id); err == nil && r.State != agent.Idle {
			m.due[id] = max(m.due[id], 1)
		}
	}
}

// changed finds the agents whose report has changed.
func (m *Meter) changed() {
	now := m.o.Home.Mark(home.ReportDir)
	if m.dir.Same(now) {
		return
	}
	m.dir = now
	dir, err := m.o.Home.OpenDir(home.ReportDir, false)
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxAgents) // what there is
	for _, name := range names {
		id, err := agent.Parse(trimJSON(name))
		if err != nil {
			continue
		}
		if mark := m.o.Home.Mark(home.ReportDir, name); !m.reports[id].Same(mark) {
			m.reports[id], m.due[id] = mark, again
		}
	}
}

const maxAgents = 11_000 // names read of the reports' directory

func trimJSON(name string) string {
	const suffix = ".json"
	if len(name) <= len(suffix) || name[len(name)-len(suffix):] != suffix {
		return ""
	}
	return name[:len(name)-len(suffix)]
}

// threads reads the conversations of the agents that are due, or all.
func (m *Meter) threads(ctx context.Context, r Records, all bool) error {
	now, last := time.Now(), m.readAll
	var err error
	if last.IsZero() {
		last, err = r.LastRead(ctx)
	}
	if last.IsZero() || last.After(now) { // the clock was set back
		last = now
	}
	threads, terr := r.Threads(ctx, last.Add(-recent))
	if err = errors.Join(err, terr); err != nil {
		return err
	}
	threads = slices.DeleteFunc(threads, func(t Thread) bool { return !all && m.due[t.Agent] == 0 })
	var errs []error
	if all || m.beside {
		m.beside = false
		others, err := r.Inputs(ctx, last.Add(-recent))
		threads, errs = append(threads, others...), append(errs, err)
	}
	paths := make(map[string]bool)
	for _, t := range threads {
		errs = append(errs, m.thread(ctx, r, t, paths))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for path := range m.read {
		if all && !paths[path] {
			delete(m.read, path)
		}
	}
	if err = errors.Join(errs...); err == nil && all {
		m.readAll = now
	}
	return err
}

// thread reads the files of one conversation. How long each is counts as of the beginning: what a
// conversation's own file says of the others' sums is read after the others.
func (m *Meter) thread(ctx context.Context, r Records, t Thread, paths map[string]bool) error {
	la, err := m.o.Home.LoadLaunch(t.Agent)
	if errors.Is(err, fs.ErrNotExist) {
		la.Env, err = m.o.Environ, nil
	}
	if err != nil {
		return err
	}
	name := t.Runtime
	if name == "" {
		name = la.Runtime
	}
	source := m.o.Sources[name]
	if source == nil {
		return nil
	}
	files := source.Files(la.Env, t.ID)
	stamps := make([]stamp, len(files))
	for i, path := range slices.Backward(files) {
		stamps[i] = stampOf(path)
	}
	var errs []error
	for i, path := range files {
		paths[path] = true
		if stamps[i].size == 0 || stamps[i] == m.read[path] {
			continue
		}
		f := follower{m: m, r: r, thread: t, source: source, path: path}
		err := f.read(ctx, stamps[i].size)
		if err == nil {
			m.read[path] = stamps[i]
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
