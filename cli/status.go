package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/daemon"
	"netsky/spawn"
	"netsky/store"
)

func (a *app) statusCommand() *cli.Command {
	return &cli.Command{
		Name:    "status",
		Args:    true,
		Aliases: []string{"ps", "ls", "list"},
		Usage:   "how the agents are, and what waits",
		Description: "Each agent with its state, since when, and what the verdict rests on. It needs neither the daemon nor the\n" +
			"database. --line prints it in short for a tmux status-right of your own. `ps`, `ls` and `list` are the same verb.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "draw it again every second, until Ctrl-C"},
			&cli.BoolFlag{Name: "line", Usage: "one short line"},
			&cli.IntFlag{Name: "width", Usage: "with --line: in at most `N` columns", DefaultText: "as wide as it is"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "with evidence, directories and ids"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("status: takes no arguments; `netsky show %s` tells one agent's story", c.Args().First())
			}
			if c.Bool("line") {
				width := c.Int("width")
				if c.IsSet("width") { // what tmux computes may be below 1
					width = max(width, 1)
				}
				return a.statusLine(c.Context, width)
			}
			if c.Bool("watch") {
				return a.watchStatus(c)
			}
			v, err := a.view(c.Context)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return a.writeJSON(v)
			}
			a.drawStatus(a.stdout(), v, c.Bool("verbose"))
			return nil
		},
	}
}

// view is all that status shows, and the shape of its JSON.
type view struct {
	Home    string      `json:"home"`
	Daemon  daemonView  `json:"daemon"`
	Ticker  bool        `json:"ticker"`
	Agents  []agentView `json:"agents"`
	Unread  int         `json:"unread"` // envelopes for the owner not shown yet
	Spooled int         `json:"spooled"`
	Asked   int         `json:"asked"` // questions that wait for a yes
	Notes   []string    `json:"notes"` // what could not be found out, or is wrong
	now     time.Time
}

type daemonView struct {
	State   string     `json:"state"` // running, hung, stopped
	PID     int        `json:"pid,omitempty"`
	Since   store.Time `json:"since,omitzero"`
	Version string     `json:"version,omitempty"`
	Binary  string     `json:"binary,omitempty"`
	Wanted  bool       `json:"wanted"`
	Web     daemon.Web `json:"dashboard,omitzero"`

	socketless bool // it holds the home's lock, and its socket is not there
}

type agentView struct {
	Agent    agent.ID    `json:"agent"`
	State    agent.State `json:"state"`
	Since    store.Time  `json:"since,omitzero"`
	Evidence string      `json:"evidence"`
	Detail   string      `json:"detail,omitempty"`
	Runtime  string      `json:"runtime,omitempty"`
	Model    string      `json:"model,omitempty"`
	Dir      string      `json:"dir,omitempty"`
	Start    string      `json:"start,omitempty"`
	PID      int         `json:"pid,omitempty"`
	Pane     string      `json:"pane,omitempty"`
	Version  string      `json:"version,omitempty"` // of the netsky that its keeper runs
	Wanted   bool        `json:"wanted"`
	Inbox    int         `json:"inbox"`
	Claimed  int         `json:"claimed"`
	Outbox   int         `json:"outbox"`
	Poison   int         `json:"poison"`
	Strays   int         `json:"strays"` // files in its inbox that nobody reads

	stray []string // the first of them
	asks  bool     // it waits for a person
}

func (a *app) view(ctx context.Context) (view, error) {
	l, err := a.launcher()
	if err != nil {
		return view{}, err
	}
	v := view{Home: l.Home.Root(), Agents: []agentView{}, Notes: []string{}, now: time.Now()}
	list, err := l.Inspect(ctx)
	if err != nil {
		v.Notes = append(v.Notes, "tmux: "+err.Error())
	}
	for _, s := range list {
		if s.Forgotten {
			continue
		}
		row := viewOf(s)
		row.Strays, row.stray, _ = l.Bus.Strays(s.Agent) // what can't be read is told by its counts
		v.Agents = append(v.Agents, row)
	}
	if on, err := l.TickerUp(ctx); err == nil {
		v.Ticker = on
	}
	v.Daemon = a.daemonView(ctx, l.Home)
	switch {
	case v.Daemon.socketless:
		v.Notes = append(v.Notes, "the daemon runs without its socket: it is starting, or run/ was removed and it is making it anew (within a second or two); if that lasts, `netsky daemon stop`, then `netsky up`")
	case v.Daemon.State == "hung":
		v.Notes = append(v.Notes, "the daemon does not answer; if that lasts, `netsky daemon stop`, then `netsky up`")
	case v.Daemon.Wanted && v.Daemon.State != "running":
		v.Notes = append(v.Notes, "the daemon is not running, though it should be: outboxes and history wait (`netsky up` starts it)")
	}
	v.Notes = append(v.Notes, versionNotes(v.Daemon)...)
	v.Notes = append(v.Notes, buildNotes(list)...)
	if t, err := l.Home.LoadTicker(); err == nil && t.Alive() {
		switch {
		case home.Removed(t.Binary):
			v.Notes = append(v.Notes, "the ticker can't start the daemon: its program "+t.Binary+" is gone (`netsky up` starts another ticker)")
		case t.Error != "":
			v.Notes = append(v.Notes, fmt.Sprintf("the ticker could not start the daemon %s ago: %s", ago(v.now.Sub(time.UnixMilli(t.TickMS))), t.Error))
		}
	}
	if why := v.Daemon.Web.Error; why != "" {
		v.Notes = append(v.Notes, "the dashboard is not served: "+why)
	}
	if n, err := a.unread(l); err == nil {
		v.Unread = n
	} else {
		v.Notes = append(v.Notes, "mail: "+err.Error())
	}
	if list, err := l.Home.Approvals(); err == nil {
		v.Asked = len(list)
		needNobodyThere(v.Agents, list)
	} else {
		v.Notes = append(v.Notes, "approvals: "+err.Error())
	}
	if s, err := store.SpoolSize(l.Home); err == nil && s.Files+s.Bad > 0 {
		v.Spooled = s.Files
		v.Notes = append(v.Notes, fmt.Sprintf("%d records wait in state/spool for the database, %d could not be read", s.Files, s.Bad))
	}
	if err := readable(ctx, l.Home); err != nil {
		note := "the records can't be read: " + err.Error()
		if store.Damaged(err) {
			note += "; " + repairRecords(l.Home)
		}
		v.Notes = append(v.Notes, note)
	}
	return v, nil
}

// readable reports what is wrong with the records, nil if there are none yet.
func readable(ctx context.Context, h home.Dir) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	db, err := store.OpenRead(ctx, h)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Logs(ctx, store.LogFilter{Page: store.Page{Limit: 1}})
	return err
}

func viewOf(s spawn.Status) agentView {
	v := agentView{
		Agent: s.Agent, State: s.State, Evidence: s.Evidence, Detail: s.Detail, Runtime: s.Runtime, Model: s.Model,
		Dir: s.Dir, Start: s.Start, PID: s.PID, Pane: s.Pane(), Version: s.Build, Wanted: s.Wanted,
		Inbox: s.Inbox, Claimed: s.Claimed, Outbox: s.Outbox, Poison: s.Poison, asks: s.Asks(),
	}
	if !s.Since.IsZero() {
		v.Since = store.At(s.Since)
	}
	return v
}

func (a *app) daemonView(ctx context.Context, h home.Dir) daemonView {
	d, _ := h.LoadDesired(agent.DaemonName)
	v := daemonView{State: "stopped", Wanted: d.Up}
	switch p, err := daemon.Ping(ctx, h); {
	case err == nil:
		v.State, v.PID, v.Version, v.Since = "running", p.PID, p.Version, store.Time(p.StartMS)
		v.Web, v.Binary = p.Web, p.Binary
	case errors.Is(err, daemon.ErrHung):
		v.State = "hung"
	default: // without its socket it routes all the same
		if who, ok := h.LockHolder(agent.DaemonName); ok {
			v.State, v.PID = "hung", who.PID
			_, err := os.Lstat(h.Path(home.DaemonSocket))
			v.socketless = errors.Is(err, fs.ErrNotExist)
		}
	}
	return v
}

// versionNotes say that the running daemon is of another program than this one.
func versionNotes(d daemonView) (notes []string) {
	const how = "`netsky daemon stop`, then `netsky up`; agents and their mail go on meanwhile"
	switch {
	case d.State != "running":
	case home.Removed(d.Binary):
		notes = append(notes, "the daemon's program "+d.Binary+" is gone: `netsky up` starts another")
	case d.Version != Version:
		notes = append(notes, fmt.Sprintf("the daemon is version %s, this netsky %s: %s", d.Version, Version, how))
	}
	return notes
}

// buildNotes say, in one line at most, which agents run on another netsky than this
// one: what is in their panes stays what it was when they were started.
func buildNotes(list spawn.Statuses) []string {
	var names, versions []string
	for _, st := range list {
		if st.Build == "" || st.Build == Version {
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
	who, verb := names[0], "runs"
	if len(names) > 1 {
		who, verb = strings.Join(names[:len(names)-1], ", ")+" and "+names[len(names)-1], "run"
	}
	words := strings.Join(names, " ")
	if len(names) > 6 {
		who, words = fmt.Sprintf("%d agents", len(names)), "--all"
	}
	how := "`netsky down " + words + " && netsky up " + words + "` starts them anew, with their conversations"
	if words == "--all" {
		how = "`netsky down --all`, then `netsky up N`, starts them anew, with their conversations"
	}
	return []string{fmt.Sprintf("%s still %s netsky %s, and this is %s: %s", who, verb, strings.Join(versions, " and "), Version, how)}
}

func (a *app) watchStatus(c *cli.Context) error {
	if _, ok := terminal(a.out); !ok {
		return usagef("status --watch: not a terminal")
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		v, err := a.view(c.Context)
		if err != nil {
			return err
		}
		a.clear()
		width, height := screenSize(a.out)
		fmt.Fprint(a.out, strings.Join(a.screenOf(v, c.Bool("verbose")).fit(width, height, a.colors()), "\n"))
		select {
		case <-c.Context.Done():
			fmt.Fprintln(a.out)
			return nil
		case <-tick.C:
		}
	}
}

// The marks that stand before an agent, as systemctl does it.
var marks = map[agent.State]struct{ sign, color string }{
	agent.Idle:         {"●", "32"},
	agent.Busy:         {"●", "36"},
	agent.Starting:     {"◌", "36"},
	agent.Waiting:      {"◆", "33"},
	agent.Blocked:      {"◆", "33"},
	agent.Hung:         {"✗", "31"},
	agent.Dead:         {"✗", "31"},
	agent.CrashLooping: {"✗", "31"},
	agent.Unknown:      {"?", "33"},
	agent.Down:         {"○", "2"},
}

// urgency orders states by how much they need a person, the first the most.
var urgency = []agent.State{
	agent.Waiting, agent.Blocked, agent.Dead, agent.CrashLooping, agent.Hung, agent.Unknown, agent.Starting, agent.Busy, agent.Idle, agent.Down,
}

// calm is the place in urgency from which on nobody is needed.
const calm = 6

// blocked is an agent that can't work, and what there is to do about it.
func (v view) blocked() (id agent.ID, what string, ok bool) {
	i := slices.IndexFunc(v.Agents, func(s agentView) bool { return s.State == agent.Blocked })
	if i < 0 {
		return "", "", false
	}
	id = v.Agents[i].Agent
	if strings.HasPrefix(v.Agents[i].Detail, "context full") {
		return id, fmt.Sprintf("`netsky attach %s`, then /compact; or `netsky agent %s --fresh` begins a clean conversation", id, id.N()), true
	}
	return id, fmt.Sprintf("`netsky attach %s` goes to its pane; its mail waits", id), true
}

// atPane is an agent that waits for a person at its pane.
func (v view) atPane() (agent.ID, bool) {
	i := slices.IndexFunc(v.Agents, func(s agentView) bool { return s.asks })
	if i < 0 {
		return "", false
	}
	return v.Agents[i].Agent, true
}

func daemonWords(v view) string {
	switch v.Daemon.State {
	case "hung":
		if v.Daemon.socketless {
			return "without its socket"
		}
		return "hung"
	case "running":
		return fmt.Sprintf("running, pid %d, for %s", v.Daemon.PID, ago(v.now.Sub(v.Daemon.Since.Time())))
	}
	if v.Daemon.Wanted {
		return "NOT RUNNING"
	}
	return "stopped"
}

// agentWords is what there is to say about an agent beside its state: what it
// is at, then what waits.
func agentWords(s agentView) string {
	var words []string
	if s.Detail != "" {
		words = append(words, s.Detail)
	}
	if s.State == agent.Unknown || (s.State == agent.Dead && s.Detail == "") {
		words = append(words, s.Evidence)
	}
	for _, c := range []struct {
		n    int
		word string
	}{{s.Inbox, "waiting"}, {s.Claimed, "in hand"}, {s.Outbox, "in outbox"}, {s.Poison, "poisoned"}} {
		if c.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", c.n, c.word))
		}
	}
	return strings.Join(words, ", ")
}
