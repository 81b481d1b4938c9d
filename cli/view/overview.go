// This file collects the state of a home for `netsky status` and formats it as a
// screen, as one line, or as JSON. It needs neither the daemon nor the database, and
// changes nothing.

package view

import (
	"cmp"
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
	"netsky/daemon"
	"netsky/daemon/update"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/link/server"
	"netsky/spawn"
	"netsky/store"
	"netsky/view"
	"netsky/work/tree"
)

// A View is everything that status shows, and its JSON.
type View struct {
	Home string `json:"home"`
	// Dirs are the directories of the owner's in which agents work that are not down, agent0's first.
	Dirs    []string     `json:"dirs"`
	Daemon  Daemon       `json:"daemon"`
	Ticker  bool         `json:"ticker"`
	Agents  []view.Agent `json:"agents"`
	Unread  int          `json:"unread"`  // envelopes for the owner not shown yet
	Settled int          `json:"settled"` // and those not shown that were settled by themselves
	Spooled int          `json:"spooled"`
	Asked   int          `json:"asked"` // questions that wait for an approval
	// Needs is what needs the owner, the first things first.
	Needs []attention.Need `json:"needs"`
	Hosts []attention.Host `json:"hosts,omitempty"` // the others of the team, on a host that is told how they are
	Notes []string         `json:"notes"`           // what is wrong, or could not be determined

	now     time.Time
	version string // of this netsky
	home    string // with ~
	dirs    string // the first of Dirs, with ~, and how many more
	unsure  error  // why Needs may be incomplete
	strays  []string
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
	list, ticker, tmuxErr := l.InspectAll(ctx)
	v := View{
		Home: l.Home.Root(), Ticker: ticker, Dirs: []string{}, Agents: view.All(l.Home, list, o.Runtimes), Notes: []string{}, Needs: []attention.Need{},
		now: time.Now(), version: o.Version, home: words.Tilde(o.UserHome, l.Home.Root()),
	}
	if tmuxErr != nil {
		v.Notes = append(v.Notes, "tmux: "+tmuxErr.Error())
	}
	for i := range v.Agents {
		a := &v.Agents[i]
		var first []string
		if a.Strays, first, _ = l.Bus.Strays(a.ID); a.Strays > 0 { // an unreadable mailbox shows in its counts
			v.strays = append(v.strays, fmt.Sprintf("%s's inbox: %d ignored, because only files named *.json are read (%s)", a.ID, a.Strays, words.SomeOf(first, a.Strays)))
		}
	}
	v.place(l.Home, o.UserHome)
	v.services(ctx, o, list)
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
	v.Hosts, _ = attention.Hosts(l.Home, v.now) // an error is among those of the needs
	for _, n := range v.Needs {
		if n.Kind == attention.Approval {
			v.Asked++
		}
	}
	v.records(ctx, l.Home)
	return v
}

// services notes what is to be said of the daemon, the ticker and the dashboard.
func (v *View) services(ctx context.Context, o Options, list spawn.Statuses) {
	v.Daemon = DaemonOf(ctx, o.Launcher.Home)
	switch {
	case v.Daemon.socketless:
		v.Notes = append(v.Notes, "the daemon has no socket: it is starting, or it is restoring a removed run/ (within a second or two); if that lasts, `netsky daemon restart`")
	case v.Daemon.State == "hung":
		v.Notes = append(v.Notes, "the daemon does not answer; if that lasts, `netsky up` ends it and starts another")
	case v.Daemon.Wanted && v.Daemon.State != "running":
		v.Notes = append(v.Notes, "the daemon is not running, but should be: dead agents are not restarted, outboxes and schedules wait (`netsky up` starts it)")
	}
	v.Notes = append(v.Notes, v.Daemon.Notes(o.Version)...)
	if r, pending := update.Pending(o.Launcher.Home); pending {
		v.Notes = append(v.Notes, fmt.Sprintf("%s %s is not finished (`netsky self status`); if whatever carried it out has died, the next tick or `netsky up` goes on with it", r.Kind, r.ID))
	}
	v.Notes = append(v.Notes, BuildNotes(list, o.Version)...)
	v.Notes = append(v.Notes, UntestedNotes(list)...)
	if t, err := o.Launcher.Home.LoadTicker(); err == nil && t.Alive() {
		switch {
		case home.Removed(t.Binary):
			v.Notes = append(v.Notes, "the ticker can't start the daemon: its program "+t.Binary+" is gone (`netsky up` starts another ticker)")
		case t.Error != "" && !(v.Daemon.State == "running" && v.Daemon.Since > store.Time(t.TickMS)): // not started since
			v.Notes = append(v.Notes, fmt.Sprintf("the ticker could not start the daemon %s ago: %s", words.Ago(v.now.Sub(time.UnixMilli(t.TickMS))), t.Error))
		}
	}
	if err := server.Trouble(o.Launcher.Home); err != nil && v.Daemon.State == "running" {
		v.Notes = append(v.Notes, fmt.Sprintf("the team's server: %v (%s)", err, cmp.Or(advice.Of(err), "the daemon starts it again")))
	}
	if why := v.Daemon.Web.Error; why != "" {
		if v.Daemon.Web.Taken {
			why += " (`netsky dashboard --free-port` has this home take another port)"
		}
		v.Notes = append(v.Notes, "the dashboard is not served: "+why)
	}
}

// records notes what the records lack.
func (v *View) records(ctx context.Context, h home.Dir) {
	if s, err := store.SpoolSize(h); err == nil && s.Files+s.Bad > 0 {
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
	if err := readable(ctx, h); err != nil {
		note := "the records can't be read: " + err.Error()
		if store.Damaged(err) {
			note += "; " + RepairRecords(h)
		}
		v.Notes = append(v.Notes, note)
	}
}

// Agent returns what is shown of one agent.
func (o Options) Agent(st spawn.Status) view.Agent {
	return view.Of(st, o.Runtimes[st.Runtime]).Holding(o.Launcher.Home)
}

// place collects where the agents work.
func (v *View) place(h home.Dir, userHome string) {
	for _, s := range v.Agents {
		if dir := tree.OwnersDir(h, s.ID, s.Dir); s.State != agent.Down && dir != "" && !slices.Contains(v.Dirs, dir) {
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
	const how = "`netsky daemon restart`; agents and their mail continue meanwhile"
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
	how := "netsky restart " + strings.Join(names, " ")
	if len(names) > 6 {
		how = "netsky restart"
	}
	return []string{fmt.Sprintf("%s still %s netsky %s, and this is %s: `%s` renews them on their conversations", who, verb, strings.Join(versions, " and "), version, how)}
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
