// This file collects the state of a home for `netsky status` and formats it as a
// screen, as one line, or as JSON. It needs neither the daemon nor the database, and
// changes nothing.

package view

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus/courier"
	"netsky/daemon"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/spawn"
	"netsky/store"
	"netsky/work/tree"
)

// A View is everything that status shows, and its JSON.
type View struct {
	Home string `json:"home"`
	// Dirs are the directories of the owner's in which agents work that are not down, agent0's first.
	Dirs    []string `json:"dirs"`
	Daemon  Daemon   `json:"daemon"`
	Ticker  bool     `json:"ticker"`
	Agents  []Agent  `json:"agents"`
	Unread  int      `json:"unread"`  // envelopes for the owner not shown yet
	Settled int      `json:"settled"` // and those not shown that were settled by themselves
	Spooled int      `json:"spooled"`
	Asked   int      `json:"asked"` // questions that wait for an approval
	// Needs is what needs the owner, the first things first.
	Needs []attention.Need `json:"needs"`
	Notes []string         `json:"notes"` // what is wrong, or could not be determined

	now     time.Time
	version string // of this netsky
	home    string // with ~
	dirs    string // the first of Dirs, with ~, and how many more
	unsure  error  // why Needs may be incomplete
}

// A Daemon is the daemon's state.
type Daemon struct {
	State   string     `json:"state"` // running, hung, stopped
	PID     int        `json:"pid,omitempty"`
	Since   store.Time `json:"since,omitzero"`
	Version string     `json:"version,omitempty"`
	Binary  string     `json:"binary,omitempty"`
	Wanted  bool       `json:"wanted"`
	Web     daemon.Web `json:"dashboard,omitzero"`

	socketless bool // it holds the home's lock, but its socket is missing
}

// An Agent is one line of status.
type Agent struct {
	Agent    agent.ID    `json:"agent"`
	State    agent.State `json:"state"`
	Since    store.Time  `json:"since,omitzero"`
	Evidence string      `json:"evidence"`
	Detail   string      `json:"detail,omitempty"`
	// What keeps its model from answering, on which account, until when if that is known,
	// and how often its program has tried.
	Reason   agent.Reason `json:"reason,omitempty"`
	Account  string       `json:"account,omitempty"`
	Until    store.Time   `json:"until,omitzero"`
	Attempt  int          `json:"attempt,omitempty"`
	Attempts int          `json:"attempts,omitempty"`
	Runtime  string       `json:"runtime,omitempty"`
	Model    string       `json:"model,omitempty"`
	Dir      string       `json:"dir,omitempty"`
	Start    string       `json:"start,omitempty"`
	PID      int          `json:"pid,omitempty"`
	Pane     string       `json:"pane,omitempty"`
	Version  string       `json:"version,omitempty"` // of the netsky that its keeper runs
	Wanted   bool         `json:"wanted"`
	Inbox    int          `json:"inbox"`
	Claimed  int          `json:"claimed"`
	Outbox   int          `json:"outbox"`
	Poison   int          `json:"poison"`
	Strays   int          `json:"strays"`            // files in its inbox that nobody reads
	Restart  string       `json:"restart,omitempty"` // of one that has died: when it is started again, or why not

	// Held is how many delivered messages wait for its account, and HeldUntil when
	// that ends, if it is known.
	Held      int        `json:"held,omitempty"`
	HeldUntil store.Time `json:"held_until,omitzero"`

	stray []string // the first of them
}

// Options are what a view is made with.
type Options struct {
	Launcher *spawn.Launcher
	Runtimes map[string]spawn.Runtime
	Version  string // of this netsky
	UserHome string
	Unread   func() (unread, settled int, err error) // the owner's mail
	// Mistake returns what is wrong in netsky.toml and what that prevents, "" for nothing.
	Mistake func() (text, then string)
	Phone   func() []string // what is wrong with the phone bridge; may be nil
	Budgets func() []string // what about budgets can't be checked; may be nil
}

// Collect collects the state. What can't be determined becomes a note.
func Collect(ctx context.Context, o Options) View {
	l := o.Launcher
	v := View{
		Home: l.Home.Root(), Dirs: []string{}, Agents: []Agent{}, Notes: []string{}, Needs: []attention.Need{},
		now: time.Now(), version: o.Version, home: words.Tilde(o.UserHome, l.Home.Root()),
	}
	list, tmuxErr := l.Inspect(ctx)
	if tmuxErr != nil {
		v.Notes = append(v.Notes, "tmux: "+tmuxErr.Error())
	}
	for _, s := range list {
		if s.Forgotten {
			continue
		}
		row := Of(s)
		row.Hold(l.Home)
		row.Strays, row.stray, _ = l.Bus.Strays(s.Agent) // an unreadable mailbox shows in its counts
		v.Agents = append(v.Agents, row)
	}
	v.place(l.Home, o.UserHome)
	if on, err := l.TickerUp(ctx); err == nil {
		v.Ticker = on
	}
	v.Daemon = DaemonOf(ctx, l.Home)
	switch {
	case v.Daemon.socketless:
		v.Notes = append(v.Notes, "the daemon has no socket: it is starting, or it is restoring a removed run/ (within a second or two); if that lasts, `netsky daemon stop`, then `netsky up`")
	case v.Daemon.State == "hung":
		v.Notes = append(v.Notes, "the daemon does not answer; if that lasts, `netsky up` ends it and starts another")
	case v.Daemon.Wanted && v.Daemon.State != "running":
		v.Notes = append(v.Notes, "the daemon is not running, but should be: dead agents are not restarted, outboxes and schedules wait (`netsky up` starts it)")
	}
	v.Notes = append(v.Notes, v.Daemon.Notes(o.Version)...)
	v.Notes = append(v.Notes, BuildNotes(list, o.Version)...)
	v.Notes = append(v.Notes, UntestedNotes(list)...)
	if t, err := l.Home.LoadTicker(); err == nil && t.Alive() {
		switch {
		case home.Removed(t.Binary):
			v.Notes = append(v.Notes, "the ticker can't start the daemon: its program "+t.Binary+" is gone (`netsky up` starts another ticker)")
		case t.Error != "" && !(v.Daemon.State == "running" && v.Daemon.Since > store.Time(t.TickMS)): // not started since
			v.Notes = append(v.Notes, fmt.Sprintf("the ticker could not start the daemon %s ago: %s", words.Ago(v.now.Sub(time.UnixMilli(t.TickMS))), t.Error))
		}
	}
	if why := v.Daemon.Web.Error; why != "" {
		if v.Daemon.Web.Taken {
			why += " (`netsky dashboard --free-port` has this home take another port)"
		}
		v.Notes = append(v.Notes, "the dashboard is not served: "+why)
	}
	if o.Phone != nil {
		v.Notes = append(v.Notes, o.Phone()...)
	}
	if o.Budgets != nil {
		v.Notes = append(v.Notes, o.Budgets()...)
	}
	if n, settled, err := o.Unread(); err == nil {
		v.Unread, v.Settled = n, settled
	} else {
		v.Notes = append(v.Notes, "mail: "+err.Error())
	}
	var err error
	if v.Needs, err = Needs(ctx, o, list, v.Daemon); err != nil {
		v.Notes = append(v.Notes, err.Error())
	}
	v.unsure = errors.Join(tmuxErr, err)
	for _, n := range v.Needs {
		if n.Kind == attention.Approval {
			v.Asked++
		}
	}
	if s, err := store.SpoolSize(l.Home); err == nil && s.Files+s.Bad > 0 {
		v.Spooled = s.Files
		var notes []string
		if s.Files > 0 {
			notes = append(notes, fmt.Sprintf("%d records wait in state/spool for the database", s.Files))
		}
		if s.Bad > 0 {
			notes = append(notes, fmt.Sprintf("%d records in state/spool could not be read", s.Bad))
		}
		v.Notes = append(v.Notes, strings.Join(notes, ", "))
	}
	if err := readable(ctx, l.Home); err != nil {
		note := "the records can't be read: " + err.Error()
		if store.Damaged(err) {
			note += "; " + RepairRecords(l.Home)
		}
		v.Notes = append(v.Notes, note)
	}
	return v
}

// place collects where the agents work.
func (v *View) place(h home.Dir, userHome string) {
	for _, s := range v.Agents {
		if dir := tree.OwnersDir(h, s.Agent, s.Dir); s.State != agent.Down && dir != "" && !slices.Contains(v.Dirs, dir) {
			v.Dirs = append(v.Dirs, dir)
		}
	}
	if len(v.Dirs) > 0 {
		v.dirs = words.Tilde(userHome, v.Dirs[0])
	}
	if more := len(v.Dirs) - 1; more > 0 {
		v.dirs += fmt.Sprintf(" and %d more", more)
	}
}

// Places returns where the agents work that are not down: the first directory, agent0's if it is
// one of them, and how many more; "" if none is up.
func (v View) Places() string { return v.dirs }

// Needs lists what needs the owner, by the agents' states and the daemon's.
func Needs(ctx context.Context, o Options, list spawn.Statuses, d Daemon) ([]attention.Need, error) {
	var s attention.Sources
	if o.Mistake != nil {
		s.Mistake, s.Prevents = o.Mistake()
	}
	switch {
	case d.State == "running":
		s.Daemon = attention.DaemonRuns
	case d.State == "hung":
		s.Daemon = attention.DaemonHung
	case d.Wanted && d.State != "running":
		s.Daemon = attention.DaemonGone
	}
	return fleet.Needs(ctx, o.Launcher, o.Runtimes, list, s)
}

// readable returns what is wrong with the records, nil if there are none yet.
func readable(ctx context.Context, h home.Dir) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	db, err := store.OpenRead(ctx, h)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrOlder) { // the next verb that uses them migrates them
		return nil
	}
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Logs(ctx, store.LogFilter{Page: store.Page{Limit: 1}})
	return err
}

// Of returns an agent's line.
func Of(s spawn.Status) Agent {
	v := Agent{
		Agent: s.Agent, State: s.State, Evidence: s.Evidence, Detail: s.Detail, Restart: s.Restart, Runtime: s.Runtime, Model: s.Model,
		Dir: s.Dir, Start: s.Start, PID: s.PID, Pane: s.Pane(), Version: s.Build, Wanted: s.Wanted,
		Inbox: s.Inbox, Claimed: s.Claimed, Outbox: s.Outbox, Poison: s.Poison,
	}
	if !s.Since.IsZero() {
		v.Since = store.At(s.Since)
	}
	if r := s.Report; s.State == r.State {
		v.Reason, v.Account, v.Attempt, v.Attempts = r.Fault.Reason, r.Fault.Account, r.Attempt, r.Of
		v.Until = store.Time(r.Fault.UntilMS)
	}
	return v
}

// Hold looks up which messages the agent holds.
func (v *Agent) Hold(h home.Dir) {
	n, until := courier.ReadLedger(h, v.Agent).Holding()
	if v.Held = n; !until.IsZero() {
		v.HeldUntil = store.At(until)
	}
}

// DaemonOf returns the state of a home's daemon.
func DaemonOf(ctx context.Context, h home.Dir) Daemon {
	d, _ := home.Desired(h).Load(agent.DaemonName)
	v := Daemon{State: "stopped", Wanted: d.Up}
	switch p, err := daemon.Ping(ctx, h); {
	case err == nil:
		v.State, v.PID, v.Version, v.Since = "running", p.PID, p.Version, store.Time(p.StartMS)
		v.Web, v.Binary = p.Web, p.Binary
	case errors.Is(err, daemon.ErrHung):
		v.State = "hung"
	default: // without its socket it may still run
		if who, ok := h.LockHolder(agent.DaemonName); ok {
			v.State, v.PID = "hung", who.PID
			_, err := os.Lstat(h.Path(home.DaemonSocket))
			v.socketless = errors.Is(err, fs.ErrNotExist)
		}
	}
	return v
}

// Word returns the daemon's state for people: "stopped" by the owner, or "not running"
// though it should be.
func (d Daemon) Word() string {
	if d.State == "stopped" && d.Wanted {
		return "not running"
	}
	return d.State
}

// Notes returns a note if the running daemon is another build than this program.
func (d Daemon) Notes(version string) (notes []string) {
	const how = "`netsky daemon stop`, then `netsky up`; agents and their mail continue meanwhile"
	switch {
	case d.State != "running":
	case home.Removed(d.Binary):
		notes = append(notes, "the daemon's program "+d.Binary+" is gone: `netsky up` starts another")
	case d.Version != version:
		notes = append(notes, fmt.Sprintf("the daemon is version %s, this netsky %s: %s", d.Version, version, how))
	}
	return notes
}

// BuildNotes returns a note if agents run another version of netsky than this one: what
// is in their panes stays as it was when they were started.
func BuildNotes(list spawn.Statuses, version string) []string {
	var names, versions []string
	for _, st := range list {
		if st.Build == "" || st.Build == version {
			continue
		}
		names = append(names, string(st.Agent))
		if !slices.Contains(versions, st.Build) {
			versions = append(versions, st.Build)
		}
	}
	if len(names) == 0 {
		return nil
	}
	who, verb := words.Names(names), "runs"
	if len(names) > 1 {
		verb = "run"
	}
	words := strings.Join(names, " ")
	if len(names) > 6 {
		words = "--all"
	}
	how := "`netsky down " + words + " && netsky up " + words + "` restarts them with their conversations"
	if words == "--all" {
		how = "`netsky down --all`, then `netsky up N`, restarts them with their conversations"
	}
	return []string{fmt.Sprintf("%s still %s netsky %s, and this is %s: %s", who, verb, strings.Join(versions, " and "), version, how)}
}

// RepairRecords returns what repairs damaged records.
func RepairRecords(h home.Dir) string {
	file := h.Path(home.DBFile)
	return "mv " + advice.Word(file) + " " + advice.Word(file+".damaged") +
		" repairs it: the records are rebuilt from the agents' files and mailboxes, without older log entries and sessions"
}

// NeedsNow returns what needs the owner as lines, and why that may be incomplete.
func (v View) NeedsNow() ([]string, error) {
	if v.unsure != nil && len(v.Needs) == 0 {
		return nil, v.unsure
	}
	return attention.Lines(v.Needs, v.now), v.unsure
}
